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

/** A complete subtree: the number of its first leaf, and of its leaves, which is a power of two. */
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

/** Returns the root of the tree of leaves. The root without leaves is the hash of nothing. */
export function rootOf(leaves: readonly Buffer[]): Buffer {
  const subtrees: Subtree[] = [];
  for (const [first, leaf] of leaves.entries()) append(subtrees, { first, size: 1, hash: leaf });
  const [last, ...others] = subtrees.map((each) => each.hash).reverse();
  if (!last) return hash('sha256', Buffer.alloc(0), 'buffer');
  return others.reduce((right, left) => nodeHash(left, right), last);
}
