import type { Queries } from '../db/pool.ts';
import { newId } from '../ledger/id.ts';
import { toNumber } from '../money.ts';
import { announce } from '../webhooks/announce.ts';

/** A float behind a debit; the threshold is null where it was never topped up and has no limit of its own. */
export type DebitedFloat = { id: bigint; balance_minor: bigint; threshold_minor: bigint | null };

type Debit = {
  readonly merchantId: number;
  readonly currency: string;
  readonly decimals: number;
  readonly float: DebitedFloat;
  /** What was taken. */
  readonly amountMinor: bigint;
  readonly now: Date;
};

/** Tells a merchant that its float is low: by the debit that took it below its threshold, and by no later one. */
export async function announceLow(tx: Queries, debit: Debit): Promise<void> {
  const { merchantId, currency, decimals, float, amountMinor, now } = debit;
  const balance = float.balance_minor;
  const threshold = float.threshold_minor;
  if (threshold === null || balance >= threshold || balance + amountMinor < threshold) return;
  await announce(tx, {
    merchantId,
    type: 'float.low',
    eventId: newId(now),
    subjectId: null,
    data: {
      currency,
      balance: toNumber({ minor: balance, decimals }),
      threshold: toNumber({ minor: threshold, decimals }),
    },
    now,
  });
}
