import { append, leafHash, type Subtree } from '../../src/books/merkle.ts';

/** Proofs of settlements as a forger works on them: all parts can be changed, and all hashes made again. */

type Line = Record<string, string | number>;
export type ForgedSettlement = {
  settlement: Record<string, string>;
  account: string;
  proof: Line[];
  checkpoint: { note: string; before: Line[]; after: Line[] };
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

  addLine({ hidden, size }: Line): void {
    this.add(Buffer.from(String(hidden), 'hex'), Number(size));
  }

  root(): Buffer {
    const [last = Buffer.alloc(0), ...others] = this.#subtrees.map(({ hash }) => hash).reverse();
    return others.reduce((right, left) => nodeOf(left, right), last);
  }
}

function nodeOf(left: Buffer, right: Buffer): Buffer {
  const subtrees: Subtree[] = [];
  for (const [first, hash] of [left, right].entries()) append(subtrees, { first, size: 1, hash });
  return subtrees[0]?.hash ?? left;
}

const minorOf = (text: string | undefined) => BigInt((text ?? '').replace('.', ''));

function textOf(minor: bigint): string {
  const digits = String(minor < 0n ? -minor : minor).padStart(3, '0');
  return `${minor < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

/** The rows of a proof in their order, by their lines. */
export const rowsOf = ({ proof }: ForgedSettlement) => proof.filter((line) => 'row' in line);

/** Changes a value of a row. */
export function change(line: Line, at: number, made: (value: string) => string): void {
  const values = String(line['row']).split('|');
  values[at] = made(values[at] ?? '');
  line['row'] = values.join('|');
}

/**
 * Makes all hashes and figures of a proof right again, as a forger without the signing key can. Slices whose
 * rows were changed in number have no hidden rows.
 * @param note makes the checkpoint of a size and a root
 */
export function remake(forged: ForgedSettlement, note: (size: number, root: Buffer) => string): void {
  const { settlement, account, proof, checkpoint } = forged;
  const own = new Leaves();
  const days = new Leaves();
  for (const line of checkpoint.before) days.addLine(line);
  let slices = new Leaves();
  let rows: { line: Line; tree: Leaves } | undefined;
  let closing = minorOf(settlement['carried']);
  let previous: string | undefined;
  const endSlice = () => {
    if (!rows) return;
    const [start] = String(rows.line['slice']).split('|');
    rows.line['slice'] = [start, rows.tree.count, rows.tree.root().toString('hex')].join('|');
    slices.add(leafHash(rows.line['slice']));
    rows = undefined;
  };
  for (const line of proof) {
    if ('slice' in line) {
      endSlice();
      rows = { line, tree: new Leaves() };
    } else if ('row' in line) {
      const text = String(line['row']);
      own.add(leafHash(text));
      rows?.tree.add(leafHash(text));
      const [, , , credit, amount] = text.split('|');
      closing += credit === account ? minorOf(amount) : -minorOf(amount);
    } else if ('hidden' in line) {
      endSlice();
      slices.addLine(line);
    } else if ('closing' in line) {
      endSlice();
      const values = JSON.parse(String(line['closing']));
      if (previous) values[1] = previous;
      values[9] = slices.root().toString('hex');
      line['closing'] = JSON.stringify(values);
      const leaf = leafHash(line['closing']);
      previous = leaf.toString('hex');
      days.add(leaf);
      slices = new Leaves();
    }
  }
  for (const line of checkpoint.after) days.addLine(line);
  Object.assign(settlement, { root: own.root().toString('hex'), closingHash: previous });
  settlement['closing'] = textOf(closing);
  checkpoint.note = note(days.count, days.root());
}
