import type { Operator, Service } from '../context.ts';
import { getAccount, post } from '../ledger/journal.ts';
import { findEntry } from '../ledger/queries.ts';
import { type Money, toSum } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { DAY_MS } from '../time.ts';
import { type FloatFilter, listFloatPage, listUse } from './days.queries.ts';
import { type Booked, bookOnce } from './sweep.ts';

/** The operator's deductions from a float: refunds of unused prepayment, and corrections of wrong top-ups. */

type Refund = {
  readonly merchantId: number;
  readonly currency: string;
  readonly amountMinor: bigint;
  readonly decimals: number;
  readonly reference: string;
};

/**
 * Pays unused prepayment back to a merchant: FLOAT_REFUND, from its float to funding.
 * @throws Refusal `18`, `94`, `50`
 */
export function refundFloat(operator: Operator, refund: Refund): Promise<Booked> {
  const { merchantId, currency, amountMinor, decimals, reference } = refund;
  const fingerprint = `${currency} ${amountMinor}`;
  const wanted = { merchantId, operation: 'float-refund', reference, fingerprint } as const;
  return bookOnce(operator, wanted, async ({ tx, id, now }) => {
    const debit = await getAccount(tx, merchantId, currency, 'FLOAT');
    const credit = await getAccount(tx, 0, currency, 'FUNDING');
    await post(tx, { kind: 'FLOAT_REFUND', id, debit, credit, amountMinor, merchantId, reference, now });
    return {
      action: 'float.refund',
      subject: `merchant ${merchantId}`,
      after: { amount: toSum(currency, { minor: amountMinor, decimals }) },
      moved: [{ currency, minor: amountMinor }],
    };
  });
}

export type Entry = {
  readonly id: string;
  readonly kind: string;
  readonly bucket: number;
  readonly debit_account: bigint;
  readonly credit_account: bigint;
  readonly amount_minor: bigint;
  readonly currency: string;
  readonly decimals: number;
  readonly merchant_id: number | null;
  readonly serial_number: bigint | null;
  readonly reference: string | null;
  readonly original_id: string | null;
};

/** Returns a top-up by its transaction id. @throws Refusal `60` */
export async function getTopUp({ service }: Operator, transactionId: string): Promise<Entry> {
  const [entry] = await service.db.query<Entry>(findEntry(transactionId));
  if (entry?.kind !== 'TOP_UP')
    throw new Refusal('60', { message: 'Transaction not found: no top-up has this transaction id' });
  return entry;
}

/**
 * Reverses a wrong top-up in full or in part: FLOAT_CORRECTION, once for each top-up.
 * @param amountMinor at most the amount of the top-up
 * @throws Refusal `18`, `94`, `60`, `13`, `58`, `50`
 */
export async function correctTopUp(
  operator: Operator,
  { topUp, amountMinor, reference }: { topUp: Entry; amountMinor: bigint; reference: string },
): Promise<Booked> {
  const { currency, decimals } = topUp;
  const merchantId = topUp.merchant_id as number;
  const fingerprint = `${topUp.id} ${amountMinor}`;
  const wanted = { merchantId, operation: 'float-correct', reference, fingerprint } as const;
  return bookOnce(operator, wanted, async ({ tx, id, now }) => {
    const [debit, credit] = [topUp.credit_account, topUp.debit_account];
    const originalId = topUp.id;
    const movement = { kind: 'FLOAT_CORRECTION', id, debit, credit, amountMinor, merchantId, now };
    await post(tx, { ...movement, originalId, reference });
    return {
      action: 'float.correct',
      subject: `merchant ${merchantId}`,
      before: { topUp: topUp.id, amount: toSum(currency, { minor: topUp.amount_minor, decimals }) },
      after: { amount: toSum(currency, { minor: amountMinor, decimals }) },
      moved: [{ currency, minor: amountMinor }],
    };
  });
}

/** A float with its mean daily use, and the number of days that it lasts at that rate. */
type Forecast = {
  readonly currency: string;
  readonly balance: Money;
  /**
   * The mean use of a day, over the last 28 days or since the merchant was created if that is later. The last
   * hour or two are not included.
   */
  readonly usePerDay: Money;
  /** Null if nothing was used. */
  readonly daysLeft: number | null;
};

const USE_DAYS = 28;

type UseRow = {
  merchant_id: number;
  currency: string;
  decimals: number;
  balance_minor: bigint;
  used_minor: bigint;
  days: string;
};

async function forecastsOf({ db, clock }: Service, merchantIds: readonly number[]) {
  const now = clock();
  const rows = await db.query<UseRow>(listUse(merchantIds, new Date(now.getTime() - USE_DAYS * DAY_MS), now));
  return rows.map((row) => ({ merchantId: row.merchant_id, forecast: toForecast(row) }));
}

function toForecast({ currency, decimals, balance_minor: minor, used_minor, days: since }: UseRow): Forecast {
  const usedMinor = used_minor > 0n ? used_minor : 0n;
  const days = BigInt(Math.ceil(Math.min(USE_DAYS, Math.max(1, Number(since)))));
  return {
    currency,
    balance: { minor, decimals },
    usePerDay: { minor: usedMinor / days, decimals },
    daysLeft: usedMinor === 0n ? null : Number((minor * days) / usedMinor),
  };
}

/** A float of a merchant with its warning threshold, which is null before the first top-up. */
type ListedFloat = Forecast & {
  readonly merchantId: number;
  readonly merchant: string;
  readonly low: Money | null;
};

type ListedRow = { merchant_id: number; merchant: string; currency: string; low_minor: bigint | null };

/**
 * Returns a page of floats, merchant by merchant, each with its forecast. Use means orders and activations,
 * less released amounts.
 * @param after the page begins after this float
 */
export async function pageOfFloats(
  service: Service,
  filter: FloatFilter,
  after: { readonly merchantId: number; readonly currency: string },
  count: number,
): Promise<ListedFloat[]> {
  const rows = await service.db.query<ListedRow>(
    listFloatPage(filter, after.merchantId, after.currency, count),
  );
  const forecasts = await forecastsOf(service, [...new Set(rows.map(({ merchant_id }) => merchant_id))]);
  const byFloat = new Map(
    forecasts.map(({ merchantId, forecast }) => [`${merchantId} ${forecast.currency}`, forecast]),
  );
  return rows.flatMap(({ merchant_id: merchantId, merchant, currency, low_minor: minor }) => {
    const float = byFloat.get(`${merchantId} ${currency}`);
    if (!float) return [];
    const low = minor === null ? null : { minor, decimals: float.balance.decimals };
    return [{ ...float, merchantId, merchant, low }];
  });
}
