import Type from 'typebox';
import type { Service } from '../context.ts';
import { sql } from '../db/sql.ts';
import { columnsOf } from '../row.ts';
import { BROKEN } from './audit.ts';
import { type End, GENESIS, hashOf, isSealed, type Link, readSealed, SaidRow } from './chain.ts';

export type Verification = {
  readonly ok: boolean;
  /** The number of entries that were checked and are correct. */
  readonly entries: number;
  /** The hash of the last of them; null for an empty chain. */
  readonly head: string | null;
  /** The first error. Nothing after it is proven. */
  readonly broken: { readonly sequence: bigint | null; readonly problem: string } | null;
};

type Row = Link & { readonly hash: Buffer };

/** The number of entries that are read at a time. */
const PAGE = 1_000;

/**
 * Reads the whole chain and finds the first entry that was changed, deleted, moved or inserted. Then it
 * compares the end with the one that was sealed under the key ring.
 * @param published the hash (hex) of an end of the chain that was published earlier, which must be the hash
 *   of an entry. Without it, a chain that somebody with the key ring rewrote, or an older database that was
 *   restored, cannot be detected.
 * @param after proves only the entries after this one
 */
export async function verifyAudit(
  { db, keys }: Pick<Service, 'db' | 'keys'>,
  published: string | null,
  after?: End,
): Promise<Verification> {
  let last: End = after ?? { sequence: 0n, hash: GENESIS };
  let found = published === null;
  const result = (problem: string | null, sequence: bigint | null = null): Verification => ({
    ok: problem === null,
    entries: Number(last.sequence),
    head: last.sequence === 0n ? null : last.hash.toString('hex'),
    broken: problem === null ? null : { sequence, problem },
  });
  // Numbers below the first one must not exist either.
  let read = after?.sequence ?? -(2n ** 63n);
  let sealed: Buffer | undefined;
  for (;;) {
    const rows = await db.query<Row>(sql`
select ${columnsOf(Type.Omit(SaidRow, ['occurredAt']))}, previous_hash as "previousHash", hash,
  to_char(occurred_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as "occurredAt"
from audit where sequence > ${read} order by sequence limit ${PAGE}`);
    for (const row of rows) {
      const problem = problemOf(row, last);
      if (problem) return result(problem, row.sequence);
      last = { sequence: row.sequence, hash: row.hash };
      read = row.sequence;
      if (row.hash.toString('hex') === published) found = true;
    }
    if (rows.length === PAGE) continue;
    const newest = await readSealed(db);
    if (isSealed(keys, newest, last)) break;
    // If another process has just appended, the walk continues. If not, this is the end.
    if (!newest || sealed?.equals(newest))
      return result(
        'the chain does not end with the entry that was sealed: it was cut off at the end, or rewritten',
      );
    sealed = newest;
  }
  return result(
    found ? null : 'the published head is not in the chain: entries were cut off at the end, or rewritten',
  );
}

function problemOf(row: Row, last: End): string | null {
  if (row.sequence !== last.sequence + 1n)
    return `entry ${last.sequence + 1n} is missing, or is not in its place`;
  if (!row.previousHash.equals(last.hash))
    return 'it does not follow the entry before it: one of them was replaced';
  if (!row.hash.equals(hashOf(row))) return 'it was changed';
  if (row.action === BROKEN)
    return 'it says that the chain before it did not end with the entry that was sealed';
  return null;
}
