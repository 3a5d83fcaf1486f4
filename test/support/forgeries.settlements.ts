import { append, joinLast, leafHash, type Subtree } from '../../src/books/merkle.ts';
import { textOfClosing, wordOf } from './forgeries.ts';

/** Proofs of settlements as a forger works on them: all parts can be changed, and all hashes made again. */

export type ForgedSettlement = {
  settlement: Record<string, string>;
  account: string;
  proof: string[];
  checkpoint: { note: string; before: string[]; after: string[] };
  payments: { kind: string; amount: string }[];
};

/** A tree, of which subtrees are added. */
class Leaves {
  readonly #subtrees: Subtree[] = [];
  count = 0;

  add(hash: Buffer, size = 1): void {
    append(this.#subtrees, { first: this.count, size, hash });
    this.count += size;
  }

  /** Adds a hidden part, which stands at the end of the tree. */
  addHidden(text: string): void {
    const [leaves = '', base64 = ''] = text.split(' ');
    const hashes = Buffer.from(base64, 'base64');
    let left = Number(leaves);
    for (let at = 0; at < hashes.length; at += 32) {
      let size = 1;
      while (2 * size <= left && this.count % (2 * size) === 0) size *= 2;
      if (at + 32 === hashes.length) size = left;
      this.add(hashes.subarray(at, at + 32), size);
      left -= size;
    }
  }

  root(): Buffer {
    return joinLast(this.#subtrees)[0]?.hash ?? Buffer.alloc(0);
  }
}

import { cents } from './reports.ts';

function textOf(minor: bigint): string {
  const digits = String(minor < 0n ? -minor : minor).padStart(3, '0');
  return `${minor < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

const isRow = (line: string) => line.startsWith('row ');

/** Changes a value of a row. */
export function change(line: string, at: number, made: (value: string) => string): string {
  const [, row] = wordOf(line);
  return `row ${row
    .split('|')
    .map((value, index) => (index === at ? made(value) : value))
    .join('|')}`;
}

/** The places of the rows of a proof among its lines. */
export const placesOf = ({ proof }: ForgedSettlement) =>
  proof.flatMap((line, at) => (isRow(line) ? [at] : []));

/**
 * Makes all hashes and figures of a proof right again, as a forger without the signing key can. Slices whose
 * rows were changed in number have no hidden rows.
 * @param note makes the checkpoint of a size and a root
 */
export function remake(forged: ForgedSettlement, note: (size: number, root: Buffer) => string): void {
  const { settlement, account, proof, checkpoint } = forged;
  const own = new Leaves();
  const days = new Leaves();
  for (const line of checkpoint.before) days.addHidden(wordOf(line)[1]);
  let slices = new Leaves();
  let rows: { at: number; start: string; tree: Leaves } | undefined;
  let closing = cents(settlement['carried']);
  let previous: Buffer | undefined;
  const endSlice = () => {
    if (!rows) return;
    const { at, start, tree } = rows;
    proof[at] = `slice ${start}|${tree.count}`;
    slices.add(leafHash(`${start}|${tree.count}|${tree.root().toString('hex')}`));
    rows = undefined;
  };
  for (const [at, line] of proof.entries()) {
    const [word, text] = wordOf(line);
    if (word === 'slice') {
      endSlice();
      rows = { at, start: text.slice(0, text.indexOf('|')), tree: new Leaves() };
    } else if (word === 'row') {
      own.add(leafHash(text));
      rows?.tree.add(leafHash(text));
      const [, , , credit, amount] = text.split('|');
      closing += credit === account ? cents(amount) : -cents(amount);
    } else if (word === '-') {
      endSlice();
      slices.addHidden(text);
    } else if (word === 'closing') {
      endSlice();
      const values = text.split('|');
      if (previous) values[1] = previous.toString('base64');
      values[9] = slices.root().toString('base64');
      proof[at] = `closing ${values.join('|')}`;
      previous = leafHash(textOfClosing(values));
      days.add(previous);
      slices = new Leaves();
    }
  }
  for (const line of checkpoint.after) days.addHidden(wordOf(line)[1]);
  Object.assign(settlement, { root: own.root().toString('hex'), closingHash: previous?.toString('hex') });
  settlement['closing'] = textOf(closing);
  if (settlement['payable'] !== '0.00')
    settlement['payable'] = textOf(closing - cents(settlement['outstanding']));
  checkpoint.note = note(days.count, days.root());
}
