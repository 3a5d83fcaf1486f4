import { hash } from 'node:crypto';
import type { Database } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { addDays } from '../time.ts';
import { type ClosedDay, textsOf } from './export.rows.ts';
import { append, joinLast, leafHash, type Subtree } from './merkle.ts';
import { type Closing, listClosings, listSlices, type Slice, textOfSlice } from './seal.ts';

/** The proof of closed days, which others verify without Scrip (docs/reference/proof.md). */

/** The version of the file. */
const FORMAT = 2;

const ROW = 'row ';

/** The rows that a proof shows. Of the others it contains only hashes. */
type Shown = {
  readonly merchantId?: number | undefined;
  readonly transactionId?: string | undefined;
  /** The rows on an account, and the beginnings of their slices: no other slice is read. */
  readonly account?: { readonly number: string; readonly slices: ReadonlySet<number> };
};

/** The account of a float, a settlement, or the operator. */
type Account = { readonly kind: string; readonly merchantId: number };

/** A leaf of a tree: the lines that show it, or its hash if the proof does not show it. */
type Leaf = { readonly lines: Iterable<string> | AsyncIterable<string> } | { readonly hash: Buffer };

/**
 * Writes the texts from which the hashes of closed days are computed, piece by piece.
 * @param shown without one, all rows and totals
 */
export async function* writeProof(
  db: Database,
  days: readonly ClosedDay[],
  shown: Shown,
): AsyncGenerator<string> {
  for await (const line of linesOf(db, days, shown)) yield `${line}\n`;
}

/** Returns the lines of a proof. */
export async function* linesOf(
  db: Database,
  days: readonly ClosedDay[],
  shown: Shown,
): AsyncGenerator<string> {
  const { merchantId, transactionId, account } = shown;
  const isWhole = merchantId === undefined && transactionId === undefined && account === undefined;
  const isRead = ({ startsAt }: Slice) => account?.slices.has(startsAt.getTime()) ?? true;
  const accounts = await readAccounts(db);
  const show = (text: string) => isWhole || isShown(text, shown, accounts);
  const named = new Set<string>();
  const [from, to] = [days[0]?.day ?? '', addDays(days.at(-1)?.day ?? '', 1)];
  yield `scrip proof ${FORMAT} ${isWhole ? 'all' : 'some'} ${from} ${to}`;
  for (const day of days) {
    for await (const line of withHidden(slicesOf(db, day, { show, isRead, isWhole }))) {
      if (isWhole) yield* nameAccounts(line, accounts, named);
      yield line;
    }
    const [closing] = (await db.query(listClosings(day.day, addDays(day.day, 1)))) as [Closing];
    if (isWhole) yield `totals ${closing.totals}`;
    yield lineOfClosing(closing);
  }
}

/** The line of a closing: the values of its text, without the first one, which is always the same. */
function lineOfClosing(closing: Closing): string {
  const { version, day, startsAt, endsAt, zone, rows, firstId, lastId, root, totals, closedAt } = closing;
  const values = [
    ...[version, inBase64(closing.previousHash), day, startsAt.toISOString(), endsAt.toISOString(), zone],
    ...[rows, firstId, lastId, inBase64(root), inBase64(hash('sha256', totals, 'buffer'))],
    closedAt.toISOString(),
  ];
  return `closing ${values.join('|')}`;
}

const inBase64 = (bytes: Buffer) => bytes.toString('base64');

/** Returns the lines of the leaves that are shown, and the hashes of the subtrees between them. */
export async function* withHidden(leaves: AsyncIterable<Leaf> | Iterable<Leaf>): AsyncGenerator<string> {
  let hidden: Subtree[] = [];
  let first = 0;
  for await (const leaf of leaves) {
    if ('lines' in leaf) {
      yield* lineOfHidden(hidden);
      hidden = [];
      yield* leaf.lines;
    } else append(hidden, { first, size: 1, hash: leaf.hash });
    first++;
  }
  yield* lineOfHidden(joinLast(hidden));
}

function lineOfHidden(subtrees: readonly Subtree[]): string[] {
  if (subtrees.length === 0) return [];
  const leaves = subtrees.reduce((sum, { size }) => sum + size, 0);
  return [`- ${leaves} ${inBase64(Buffer.concat(subtrees.map((each) => each.hash)))}`];
}

/** Which rows are shown, which slices can have such rows, and whether all are shown. */
type Selection = {
  readonly show: (text: string) => boolean;
  readonly isRead: (slice: Slice) => boolean;
  readonly isWhole: boolean;
};

async function* slicesOf(
  db: Database,
  day: ClosedDay,
  { show, isRead, isWhole }: Selection,
): AsyncGenerator<Leaf> {
  for (const slice of await db.query<Slice>(listSlices(day))) {
    const text = textOfSlice(slice);
    if (!isRead(slice)) {
      yield { hash: leafHash(text) };
      continue;
    }
    const rows = withHidden(rowsOf(textsOf(db, day, slice), show));
    if (isWhole) yield { lines: after(`slice ${text}`, rows) };
    else {
      const lines = await Array.fromAsync(rows);
      const shows = lines.some((line) => line.startsWith(ROW));
      const head = `slice ${slice.startsAt.toISOString()}|${slice.rows}`;
      yield shows ? { lines: [head, ...lines] } : { hash: leafHash(text) };
    }
  }
}

async function* after(first: string, lines: AsyncIterable<string>): AsyncGenerator<string> {
  yield first;
  yield* lines;
}

async function* rowsOf(texts: AsyncIterable<string>, show: (text: string) => boolean): AsyncGenerator<Leaf> {
  for await (const text of texts) yield show(text) ? { lines: [`${ROW}${text}`] } : { hash: leafHash(text) };
}

/** Yields the accounts of a row before the first row that names them. */
function* nameAccounts(
  line: string,
  accounts: ReadonlyMap<string, Account>,
  named: Set<string>,
): Generator<string> {
  if (!line.startsWith(ROW)) return;
  for (const account of line.split('|', 4).slice(2)) {
    const kind = accounts.get(account)?.kind;
    if (kind === undefined || named.has(account)) continue;
    named.add(account);
    yield `account ${account} ${kind}`;
  }
}

/** Whether a row is shown: the wanted one, or one that names the merchant or moves one of its accounts. */
function isShown(text: string, shown: Shown, accounts: ReadonlyMap<string, Account>): boolean {
  const [id, , debit = '', credit = '', , , , , , merchant] = text.split('|', 10);
  const merchants = [merchant, ...[debit, credit].map((account) => accounts.get(account)?.merchantId)];
  const { transactionId, merchantId, account } = shown;
  return (
    (account === undefined || account.number === debit || account.number === credit) &&
    (transactionId === undefined || id === transactionId) &&
    (merchantId === undefined || merchants.map(String).includes(String(merchantId)))
  );
}

async function readAccounts(db: Database): Promise<Map<string, Account>> {
  const rows = await db.query<Account & { readonly id: string }>(
    sql`select id::text as id, kind::text as kind, merchant_id as "merchantId" from accounts`,
  );
  return new Map(rows.map((row) => [row.id, row]));
}
