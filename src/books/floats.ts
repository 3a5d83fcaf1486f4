import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import type { Operator, Service } from '../context.ts';
import { type Sql, sql } from '../db/sql.ts';
import { getAccount, post } from '../ledger/journal.ts';
import { listFloats, ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { type Money, toMinor, toNumber, toSum } from '../money.ts';
import { type Asked, type Caller, changing, reading, tableOf, twoPeople } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MONEY, SEE_VOUCHERS } from '../principal.ts';
import { currencyOf, FloatCurrency } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import {
  Amount,
  Major,
  MerchantId,
  minorOf,
  Nullable,
  Positional,
  Reference,
  requireDecimals,
  Text,
  TransactionId,
} from '../schema.ts';
import { DAY_MS } from '../time.ts';
import { type Booked, bookOnce } from './sweep.ts';

/**
 * Returns what each float of some merchants paid for since a time, less what was returned to it, and the
 * age of the merchant in days. It reads sealed slices, so the last hour or two are missing.
 */
export function listUse(merchantIds: readonly number[], since: Date, now: Date): Sql {
  return sql`
select f.merchant_id, f.currency, f.decimals, f.balance_minor,
  coalesce(u.used_minor, 0)::bigint as used_minor,
  extract(epoch from ${now}::timestamptz - m.created_at) / 86400 as days
from unnest(${merchantIds}::integer[]) w (id)
-- \`offset 0\` keeps these look-ups: else the sums of all merchants may be made before these are picked.
cross join lateral (select r.created_at from merchants r where r.id = w.id offset 0) m
cross join lateral (select r.* from floats r where r.merchant_id = w.id offset 0) f
cross join lateral (
  select sum(case s.debit_kind when 'FLOAT' then s.amount_minor else -s.amount_minor end) as used_minor
  from book_slices s
  where s.merchant_id = f.merchant_id and s.currency = f.currency and s.starts_at >= ${since}
    and (s.debit_kind = 'FLOAT' or s.credit_kind = 'FLOAT')
    and s.kind in ('RESERVATION', 'RELEASE', 'ACTIVATION', 'HOLD', 'HOLD_RELEASE', 'IMPORT')
) u
order by f.merchant_id, f.currency`;
}

/** Selects the floats of one merchant or of all, and only those that are low or all. */
export type FloatFilter = { readonly merchantId: number | null; readonly isLow: boolean };

const ID_MAX = 2 ** 31 - 1;

/** Lists floats after a given one, merchant by merchant. */
export function listFloatPage(
  { merchantId, isLow }: FloatFilter,
  afterId: number,
  currency: string,
  count: number,
): Sql {
  const [least, most] = merchantId === null ? [0, ID_MAX] : [merchantId, merchantId];
  return sql`
select f.merchant_id, m.name as merchant, f.currency,
  coalesce(f.low_minor, f.topped_up_minor / 10) as low_minor
from floats f join merchants m on m.id = f.merchant_id
where (f.merchant_id, f.currency) > (${afterId}, ${currency}) and f.merchant_id between ${least} and ${most}
  and (not ${isLow} or f.balance_minor < coalesce(f.low_minor, f.topped_up_minor / 10))
order by f.merchant_id, f.currency limit ${count}`;
}

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
  // A row of the journal by its id, in any bucket.
  const [entry] = await service.db.query<Entry>(sql`
select j.id, j.kind, j.bucket, j.debit_account, j.credit_account, j.amount_minor, j.currency, j.merchant_id,
  j.serial_number, j.reference, j.original_id,
  (select min(a.decimals) from accounts a where a.currency = j.currency) as decimals
from journal j where j.id = ${transactionId}::uuid`);
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

/** What a booking under a reference returns. */
const Booking = { transactionId: TransactionId, replayed: Type.Boolean() };

/** Returns what was taken off a float, and the float before and after it. */
async function floatLeft(asked: Asked<unknown>, merchantId: number) {
  const amount = String(changeIn(asked).after['amount']);
  const [currency = '', sum = ''] = amount.split(' ');
  const floats = await listFloats(asked.caller.service.db, merchantId);
  const minor = floats.find((each) => each.currency === currency)?.balance;
  if (minor === undefined) throw new Error('money was taken off a float that is not there');
  const decimals = requireDecimals(currency);
  const before = { minor: minor + (toMinor(Number(sum), decimals) ?? 0n), decimals };
  return { amount, before: toSum(currency, before), after: toSum(currency, { minor, decimals }) };
}

const refund = changing({
  name: 'float.refund',
  summary: 'Book an unused prepayment that was paid back to a merchant',
  path: '/floats/refund',
  input: {
    merchantId: MerchantId,
    amount: Amount('In major units.'),
    currency: FloatCurrency,
    reference: Reference,
  },
  output: Type.Object({ merchantId: MerchantId, currency: Text, amount: Major(), ...Booking }),
  roles: MONEY,
  approval: twoPeople({ why: 'Money leaves the operator.' }),
  agreement: {
    sentence: 'Book {amount} of the float of {merchant} as paid back to it: {before} → {after}',
    async of(asked) {
      const { merchantId, reference } = asked.input;
      const left = await floatLeft(asked, Number(merchantId));
      return { ...(await ofMerchant(asked, merchantId)), ...left, reference };
    },
  },
  async run(caller, { merchantId, amount, currency: given, reference }) {
    const { id, product } = await requireMerchant(caller, merchantId, 'merchantId');
    const currency = await currencyOf(caller, given, product);
    const amountMinor = minorOf(amount, currency, 'amount');
    const decimals = requireDecimals(currency);
    const booked = await refundFloat(caller, { merchantId: id, currency, amountMinor, decimals, reference });
    return { merchantId, currency, amount, ...booked };
  },
});

const correct = changing({
  name: 'float.correct',
  summary: 'Take back a wrong top-up or a part of it, once for each top-up',
  path: '/floats/correct',
  input: {
    transactionId: Positional(TransactionId),
    amount: Type.Optional(Amount('In major units; left out: all of it.')),
    reference: Reference,
  },
  output: Type.Object({
    topUp: TransactionId,
    merchantId: Nullable(MerchantId),
    currency: Text,
    amount: Major(),
    ...Booking,
  }),
  roles: MONEY,
  approval: twoPeople({ why: 'Money is taken off the float of a merchant.' }),
  agreement: {
    sentence: 'Take {amount} of a top-up of {topUp} off the float of {merchant}: {before} → {after}',
    async of(asked) {
      const { transactionId, reference } = asked.input;
      const { merchant_id: merchantId } = await getTopUp(asked.caller, transactionId);
      const about = await ofMerchant(asked, merchantId as number);
      const left = await floatLeft(asked, merchantId as number);
      return { ...about, ...left, topUp: changeIn(asked).before['amount'], transactionId, reference };
    },
  },
  async run(caller, { transactionId, amount, reference }) {
    const topUp = await getTopUp(caller, transactionId);
    const { currency, decimals } = topUp;
    const amountMinor = amount === undefined ? topUp.amount_minor : minorOf(amount, currency, 'amount');
    const booked = await correctTopUp(caller, { topUp, amountMinor, reference });
    return {
      topUp: topUp.id,
      merchantId: topUp.merchant_id === null ? null : String(topUp.merchant_id),
      currency,
      amount: toNumber({ minor: amountMinor, decimals }),
      ...booked,
    };
  },
});

const FloatSchema = Type.Object({
  merchantId: MerchantId,
  merchant: Text,
  currency: Text,
  balance: Major(),
  usePerDay: Major('The mean use per day over the last 28 days, or since the merchant was created.'),
  daysLeft: Nullable(
    Type.Integer({ description: 'The days that the float will last at that use; null without any use.' }),
  ),
  low: Nullable(Major('The threshold at which the merchant is warned; null before the first top-up.')),
});

type FloatUse = Static<typeof FloatSchema>;

const showFloats = reading({
  name: 'float.show',
  summary: 'List floats, merchant by merchant: those of one merchant, or of all',
  path: '/floats',
  input: { ...PAGE, merchantId: Type.Optional(MerchantId) },
  output: Page(FloatSchema),
  roles: SEE_VOUCHERS,
  async run(caller, { merchantId, ...page }) {
    const merchant = merchantId === undefined ? null : await requireMerchant(caller, merchantId);
    return listUsed(caller, 'floats', { merchantId: merchant?.id ?? null, isLow: false }, page);
  },
});

const lowFloats = reading({
  name: 'float.low',
  summary: 'List the floats that are below their threshold, merchant by merchant',
  path: '/floats/low',
  input: { ...PAGE },
  output: Page(FloatSchema),
  roles: SEE_VOUCHERS,
  run: (caller, page) => listUsed(caller, 'low floats', { merchantId: null, isLow: true }, page),
});

async function listUsed(
  { service }: Caller,
  what: string,
  filter: FloatFilter,
  { cursor, limit = 50 }: { readonly cursor?: string; readonly limit?: number },
) {
  const given = { merchantId: filter.merchantId };
  const [id = 0, currency = ''] = readCursor(what, given, cursor) ?? [];
  const after = { merchantId: Number(id), currency: String(currency) };
  const found = await pageOfFloats(service, filter, after, limit + 1);
  const items = found.map(
    ({ merchantId, merchant, currency: of, balance, usePerDay, daysLeft, low }): FloatUse => ({
      merchantId: String(merchantId),
      merchant,
      currency: of,
      balance: toNumber(balance),
      usePerDay: toNumber(usePerDay),
      daysLeft,
      low: low && toNumber(low),
    }),
  );
  return pageOf(what, given, items, limit, (each) => [Number(each.merchantId), each.currency]);
}

export const floats = { show: showFloats, low: lowFloats };

export const FLOAT_MONEY = tableOf(showFloats, lowFloats, refund, correct);
