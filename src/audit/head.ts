import type { Queries } from '../db/pool.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { findSealedHead, setSealedHead } from './queries.ts';

/**
 * The end of the chain, sealed under the key ring in the transaction that appends: who writes into the
 * database without the key ring can cut the chain or write it anew, but not seal its end.
 */

/** The end of a chain: the newest entry, or what the first one follows. */
export type End = { readonly sequence: bigint; readonly hash: Buffer };

/** What a sealed end belongs to: it opens as nothing else. */
const OWNER = 'audit head';

export async function sealEnd(tx: Queries, keys: KeyRing, end: End): Promise<void> {
  await tx.query(setSealedHead(keys.sealText(OWNER, textOf(end))));
}

/**
 * The sealed end as it stands in the database; undefined where nothing was ever appended, or somebody
 * took it away.
 */
export async function readSealed(db: Queries): Promise<Buffer | undefined> {
  const [row] = await db.query<{ sealed: Buffer }>(findSealedHead());
  return row?.sealed;
}

/** Whether an end is the one that was sealed. Of a chain without entries nothing is. */
export function isSealed(keys: KeyRing, sealed: Buffer | undefined, end: End): boolean {
  if (!sealed) return end.sequence === 0n;
  try {
    return keys.openText(OWNER, sealed) === textOf(end);
  } catch {
    // Changed, or sealed under a key that the key ring does not hold.
    return false;
  }
}

function textOf({ sequence, hash }: End): string {
  return `${sequence} ${hash.toString('hex')}`;
}
