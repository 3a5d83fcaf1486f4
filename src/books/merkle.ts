import { hash } from 'node:crypto';

/** The Merkle trees of the books: those of RFC 6962, section 2.1 (docs/reference/proof.md). */

const LEAF = Buffer.from([0]);
const NODE = Buffer.from([1]);

/** Returns the hash of a leaf, which is a text. */
export function leafHash(text: string): Buffer {
  return hash('sha256', Buffer.concat([LEAF, Buffer.from(text)]), 'buffer');
}

function nodeHash(left: Buffer, right: Buffer): Buffer {
  return hash('sha256', Buffer.concat([NODE, left, right]), 'buffer');
}

/** A subtree: the number of its first leaf, and of its leaves, which is a power of two except at the end. */
export type Subtree = { readonly first: number; readonly size: number; readonly hash: Buffer };

/** Adds a subtree behind others, and joins the two halves of larger ones. */
export function append(subtrees: Subtree[], subtree: Subtree): void {
  const last = subtrees.at(-1);
  const size = 2 * subtree.size;
  if (last?.size !== subtree.size || last.first % size !== 0) {
    subtrees.push(subtree);
    return;
  }
  subtrees.pop();
  append(subtrees, { first: last.first, size, hash: nodeHash(last.hash, subtree.hash) });
}

/**
 * Replaces the subtrees at the end of a tree by one node, if larger ones are followed by smaller ones. The
 * hash of that node is the root of their leaves.
 */
export function joinLast(subtrees: readonly Subtree[]): Subtree[] {
  const at = subtrees.findIndex(({ first, size }) => first % (2 * size) === 0);
  if (at < 0) return [...subtrees];
  const [end, ...before] = subtrees.slice(at).reverse();
  const join = (right: Subtree, left: Subtree): Subtree => ({
    first: left.first,
    size: left.size + right.size,
    hash: nodeHash(left.hash, right.hash),
  });
  return [...subtrees.slice(0, at), ...(end ? [before.reduce(join, end)] : [])];
}

/** Returns the root of the tree of leaves. The root without leaves is the hash of nothing. */
export function rootOf(leaves: readonly Buffer[]): Buffer {
  const subtrees: Subtree[] = [];
  for (const [first, leaf] of leaves.entries()) append(subtrees, { first, size: 1, hash: leaf });
  return joinLast(subtrees)[0]?.hash ?? hash('sha256', Buffer.alloc(0), 'buffer');
}
