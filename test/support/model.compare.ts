export type Entry = {
  id: string;
  type: 'ACTIVATION' | 'REDEMPTION' | 'REDEMPTION_REVERSAL';
  operation: 'activate' | 'redeem' | null;
  merchant: number;
  serial: string;
  minor: number;
  reference: string | null;
  original: string | null;
};

/** Whether a transaction of an answer is an entry. */
// biome-ignore lint/suspicious/noExplicitAny: it comes from an answer.
export function sameEntry(shown: any, entry: Entry, refundStatus: string | null): boolean {
  return (
    shown?.transactionType === entry.type &&
    Math.round(shown.amount * 100) === entry.minor &&
    (shown.transactionId === entry.id || entry.id.startsWith('made ')) &&
    (shown.serialNumber === undefined || shown.serialNumber === entry.serial) &&
    shown.reference === entry.reference &&
    (shown.refundStatus === undefined || shown.refundStatus === refundStatus)
  );
}

export function sameSet(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && new Set([...one, ...other]).size === one.length;
}

/**
 * Whether a list of transactions holds each entry once and nothing else. The order is checked where the list
 * is received.
 */
export function showsAll(
  shown: readonly object[],
  entries: readonly Entry[],
  refundOf: (entry: Entry) => string | null,
): boolean {
  const left = [...entries];
  for (const one of shown) {
    const at = left.findIndex((entry) => sameEntry(one, entry, refundOf(entry)));
    if (at < 0) return false;
    left.splice(at, 1);
  }
  return left.length === 0;
}
