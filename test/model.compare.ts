import type { Entry } from './model.state.ts';

/** Whether a transaction that was told is an entry. */
// biome-ignore lint/suspicious/noExplicitAny: it comes from an answer.
export function sameEntry(told: any, entry: Entry, refundStatus: string | null): boolean {
  return (
    told?.transactionType === entry.type &&
    Math.round(told.amount * 100) === entry.minor &&
    (told.transactionId === entry.id || entry.id.startsWith('made ')) &&
    (told.serialNumber === undefined || told.serialNumber === entry.serial) &&
    told.reference === entry.reference &&
    (told.refundStatus === undefined || told.refundStatus === refundStatus)
  );
}

export function sameSet(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && new Set([...one, ...other]).size === one.length;
}

/**
 * Whether a list of transactions holds each entry once and nothing else. Their order is looked at where
 * they are received.
 */
export function showsAll(
  told: readonly object[],
  entries: readonly Entry[],
  refundOf: (entry: Entry) => string | null,
): boolean {
  const left = [...entries];
  for (const one of told) {
    const at = left.findIndex((entry) => sameEntry(one, entry, refundOf(entry)));
    if (at < 0) return false;
    left.splice(at, 1);
  }
  return left.length === 0;
}
