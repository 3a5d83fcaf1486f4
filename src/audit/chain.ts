import { hash } from 'node:crypto';
import Type, { type Static } from 'typebox';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import type { Sum } from '../money.ts';
import { NullableText, Text } from '../schema.ts';

/** What an entry says, in the order in which it is hashed. */
export const SaidRow = Type.Object({
  sequence: Type.BigInt(),
  /** In UTC with microseconds, as text: a Date would lose them. */
  occurredAt: Text,
  actorKind: Text,
  actorId: NullableText,
  actor: Text,
  origin: Text,
  requestId: NullableText,
  action: Text,
  subject: Text,
  reason: NullableText,
  before: NullableText,
  after: NullableText,
  /** JSON: the digests of what operators set on the subjects of the change (states.ts). */
  states: NullableText,
});
const SAID = Object.keys(SaidRow.properties) as (keyof Static<typeof SaidRow>)[];

/** An entry, without its hash. */
export type Link = Static<typeof SaidRow> & { readonly previousHash: Buffer };

/** The hash before the first entry. */
export const GENESIS = Buffer.alloc(32);

/**
 * Returns the hash of an entry: SHA-256 over the hash before it and what it says, written as one JSON array.
 * Different entries always have different arrays.
 */
export function hashOf(link: Link): Buffer {
  const said = SAID.map((name) => (name === 'sequence' ? String(link.sequence) : link[name]));
  const text = Buffer.from(JSON.stringify(['scrip audit 1', ...said]));
  return hash('sha256', Buffer.concat([link.previousHash, text]), 'buffer');
}

/** The values before or after a change. */
export type Details = { readonly [name: string]: Detail } & Amounts;
type Detail = string | number | bigint | boolean | null | Date | readonly Detail[] | Details;

/**
 * Amounts are written with their currency, as major units: `EUR 12.50`. The audit is read long after the
 * subject has changed, and 5000 without a currency is 50 euros, 5,000 yen or 5 dinars.
 */
type Amounts = { readonly [name: `${string}Minor`]: never } & {
  readonly [Name in AmountName]?: Sum | null;
};
type AmountName =
  | 'amount'
  | 'balance'
  | 'below'
  | 'cashOutBelow'
  | 'closing'
  | 'maxValue'
  | 'minValue'
  | 'outstandingMax'
  | 'payable'
  | 'refunded'
  | 'released'
  | 'value'
  | 'worth';

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
