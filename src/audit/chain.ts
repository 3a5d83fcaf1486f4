import { hash } from 'node:crypto';
import type { Sum } from '../money.ts';

/** The columns of an entry, without its hash. */
export type Link = {
  readonly sequence: bigint;
  /** The time in UTC with microseconds, as the database returns it. */
  readonly occurredAt: string;
  readonly actorKind: string;
  readonly actorId: string | null;
  readonly actor: string;
  readonly origin: string;
  readonly requestId: string | null;
  readonly action: string;
  readonly subject: string;
  readonly reason: string | null;
  readonly before: string | null;
  readonly after: string | null;
  /** JSON: the digests of what is set of the subjects of the change (states.queries.ts). */
  readonly states: string | null;
  readonly previousHash: Buffer;
};

/** The hash before the first entry. */
export const GENESIS = Buffer.alloc(32);

/**
 * Returns the hash of an entry: SHA-256 over the hash before it and its columns, written as one JSON array in
 * a fixed order. Different entries always have different arrays.
 */
export function hashOf(link: Link): Buffer {
  const { sequence, occurredAt, actor, origin, action, subject, reason, before, after, previousHash } = link;
  const by = [link.actorKind, link.actorId, actor, origin, link.requestId];
  const columns = [String(sequence), occurredAt, ...by, action, subject, reason, before, after, link.states];
  return hash(
    'sha256',
    Buffer.concat([previousHash, Buffer.from(JSON.stringify(['scrip audit 1', ...columns]))]),
    'buffer',
  );
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
  | 'closing'
  | 'maxValue'
  | 'minValue'
  | 'payable'
  | 'refunded'
  | 'released'
  | 'value'
  | 'worth';

/** Writes details as canonical JSON: names in order, times in ISO 8601, large numbers as text. */
export function writeDetails(details: Details): string {
  return JSON.stringify(sorted(details));
}

function sorted(detail: Detail): unknown {
  if (detail instanceof Date) return detail.toISOString();
  if (typeof detail === 'bigint') return String(detail);
  if (Array.isArray(detail)) return detail.map(sorted);
  if (detail === null || typeof detail !== 'object') return detail;
  const entries = Object.entries(detail as Details).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([name, value]) => [name, sorted(value)]));
}
