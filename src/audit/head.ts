import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';

/**
 * The end of the chain is sealed under the key ring, in the transaction that appends. An attacker who can
 * write to the database but lacks the key ring can cut or rewrite the chain, but cannot seal its end.
 */

/** The end of a chain: the newest entry, or the hash before the first one. */
export type End = { readonly sequence: bigint; readonly hash: Buffer };

/** The name under which the end is sealed. */
const OWNER = 'audit head';

export async function sealEnd(tx: Queries, keys: KeyRing, end: End): Promise<void> {
  await tx.query(sql`
    insert into audit_head (sealed) values (${keys.sealText(OWNER, textOf(end))})
    on conflict (only_row) do update set sealed = excluded.sealed`);
}

/** Returns the sealed end in the database; undefined if nothing was ever appended, or if it was removed. */
export async function readSealed(db: Queries): Promise<Buffer | undefined> {
  const [row] = await db.query<{ sealed: Buffer }>(sql`select sealed from audit_head`);
  return row?.sealed;
}

/** Returns whether an end is the sealed one. A chain without entries has none. */
export function isSealed(keys: KeyRing, sealed: Buffer | undefined, end: End): boolean {
  if (!sealed) return end.sequence === 0n;
  try {
    return keys.openText(OWNER, sealed) === textOf(end);
  } catch {
    // The seal was changed, or made under a key that the key ring lacks.
    return false;
  }
}

function textOf({ sequence, hash }: End): string {
  return `${sequence} ${hash.toString('hex')}`;
}
