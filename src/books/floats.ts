import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import type { Operator, Service } from '../context.ts';
import { sql } from '../db/sql.ts';
import { balance, ENTRY, none, SETTING } from '../figure.ts';
import { listOf, withReversals } from '../ledger/kinds.ts';
import { listing } from '../listing.ts';
import { currencyOf, FloatCurrency } from '../merchants/floats.ts';
import { listFloats, ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { toMinor, toSum } from '../money.ts';
import { type Asked, changing, tableOf, twoPeople } from '../operation.ts';
import type { Position } from '../page.ts';
import { MONEY, SEE_VOUCHERS } from '../principal.ts';
import { Refusal } from '../refusal.ts';
import {
  Amount,
  At,
  Major,
  MerchantId,
  Money,
  minorOf,
  Nullable,
  Opening,
  Positional,
  pastTime,
  Reference,
  requireDecimals,
  Text,
  Titled,
  TransactionId,
} from '../schema.ts';
import { DAY_MS } from '../time.ts';
import { type Booked, Booking, moveOnce } from './once.ts';

/** The operator's deductions from a float: refunds of unused prepayment, and corrections of wrong top-ups. */

type Refund = {
  readonly merchantId: number;
  readonly currency: string;
  readonly amountMinor: bigint;
  readonly reference: string;
};

/**
 * Pays unused prepayment back to a merchant: FLOAT_REFUND, from its float to funding.
 * @throws Refusal `18`, `94`, `50`
 */
export function refundFloat(operator: Operator, refund: Refund): Promise<Booked> {
  const { merchantId, currency, amountMinor } = refund;
  return moveOnce(operator, {
    ...refund,
    ...{ kind: 'FLOAT_REFUND', operation: 'float-refund', debit: 'FLOAT', credit: 'FUNDING' },
    ...{ ownerId: merchantId, fingerprint: `${currency} ${amountMinor}` },
    change: { action: 'float.refund', subject: `merchant ${merchantId}` },
  });
}

type ToppedUp = {
  readonly id: string;
  readonly merchantId: number;
  readonly currency: string;
  readonly amount: bigint;
};

/** Returns a top-up by its transaction id. @throws Refusal `60` */
export async function getTopUp({ service }: Operator, transactionId: string): Promise<ToppedUp> {
  // A row of the journal by its id, in any bucket.
  const [found] = await service.db.query<ToppedUp>(sql`
select id, merchant_id as "merchantId", currency, amount_minor as amount
from journal where id = ${transactionId}::uuid and kind = 'TOP_UP'`);
  if (!found)
    throw new Refusal('60', { message: 'Transaction not found: no top-up has this transaction id' });
  return found;
}

/**
 * Reverses a wrong top-up in full or in part: FLOAT_CORRECTION, once for each top-up.
 * @param amountMinor at most the amount of the top-up
 * @throws Refusal `18`, `94`, `60`, `13`, `58`, `50`
 */
export function correctTopUp(
  operator: Operator,
  { topUp, ...wanted }: { topUp: ToppedUp; amountMinor: bigint; reference: string },
): Promise<Booked> {
  const { id: originalId, merchantId, currency, amount } = topUp;
  return moveOnce(operator, {
    ...{ ...wanted, merchantId, ownerId: merchantId, currency, originalId },
    ...{ kind: 'FLOAT_CORRECTION', operation: 'float-correct', debit: 'FLOAT', credit: 'FUNDING' },
    fingerprint: `${originalId} ${wanted.amountMinor}`,
    change: {
      ...{ action: 'float.correct', subject: `merchant ${merchantId}` },
      before: { topUp: originalId, amount: toSum(currency, amount) },
    },
  });
}

/** One large order of a new merchant says nothing about its use. */
const FORECAST_AFTER_DAYS = 7;

export const FORECAST = none('An estimate from the use of the last 28 days.');

const FloatSchema = Type.Object({
  merchantId: MerchantId,
  merchant: Text,
  currency: Text,
  balance: Money(balance({ account: 'FLOAT', merchantId: '{merchantId}', to: '{at}' })),
  usePerDay: Titled(
    'Used per day',
    Money(FORECAST, 'The mean use per day over the last 28 days, or since the merchant was created.'),
  ),
  daysLeft: Nullable(
    Opening(
      FORECAST,
      Type.Integer({
        title: 'Lasts for',
        description:
          "The days that the float will last at that use; null without any use, and in a merchant's first week.",
      }),
    ),
  ),
  low: Nullable(
    Money(
      SETTING,
      'The threshold at which the merchant is warned; null before the first top-up, and at a past time.',
    ),
  ),
});

type ListedFloat = Static<typeof FloatSchema>;

const USE_DAYS = 28;
const ID_MAX = 2 ** 31 - 1;
/** The kinds of movements that a float pays for, and those that return it. */
const USE = listOf([...withReversals('RESERVATION'), ...withReversals('HOLD'), 'ACTIVATION', 'IMPORT']);

/**
 * Returns a page of floats, merchant by merchant, each with its mean use and the days that it lasts. Use
 * means orders and activations, less released amounts. It is read from sealed slices, so the last hour or two
 * are not included.
 * @param merchantId the only merchant; null: all
 * @param at the time at which they are seen, whose thresholds are not known; left out: now
 * @param after the page begins after the float of this merchant in this currency
 */
export async function pageOfFloats(
  { db, clock }: Pick<Service, 'db' | 'clock'>,
  {
    merchantId,
    isLow,
    at,
  }: { readonly merchantId: number | null; readonly isLow: boolean; readonly at?: Date | undefined },
  [id = 0, currency = '']: Position,
  count: number,
): Promise<ListedFloat[]> {
  const [least, most] = merchantId === null ? [0, ID_MAX] : [merchantId, merchantId];
  const now = at ?? clock();
  const since = new Date(now.getTime() - USE_DAYS * DAY_MS);
  const balance = at === undefined ? sql`f.balance_minor` : sql`coalesce(t.balance_minor, 0)::bigint`;
  const atTime = sql`
left join (
  select merchant_id, currency, balance_minor from balances_at(${at}) where account_kind = 'FLOAT'
) t on t.merchant_id = f.merchant_id and t.currency = f.currency`;
  return db.query(sql`
select f.merchant_id::text as "merchantId", m.name as merchant, f.currency, ${balance} as balance,
  div(u.used, d.days)::bigint as "usePerDay",
  case when u.used > 0 and d.days > ${FORECAST_AFTER_DAYS}
    then div(${balance} * d.days, u.used)::float8 end as "daysLeft",
  ${at === undefined ? sql`f.low` : sql`null::bigint`} as low
from (
  select r.*, coalesce(r.low_minor, r.topped_up_minor / 10) as low from floats r
  where (r.merchant_id, r.currency) > (${id}::integer, ${currency})
    and r.merchant_id between ${least} and ${most}
    and (not ${isLow} or r.balance_minor < coalesce(r.low_minor, r.topped_up_minor / 10))
  order by r.merchant_id, r.currency limit ${count}
) f
join merchants m on m.id = f.merchant_id${at === undefined ? sql`` : atTime}
cross join lateral (
  select greatest(coalesce(sum(
      case s.debit_kind when 'FLOAT' then s.amount_minor else -s.amount_minor end
    ), 0), 0) as used
  from book_slices s
  where s.merchant_id = f.merchant_id and s.currency = f.currency and s.starts_at >= ${since}
    and s.starts_at < ${now}
    and (s.debit_kind = 'FLOAT' or s.credit_kind = 'FLOAT') and s.kind in ${USE}
) u
cross join lateral (
  select ceil(least(${USE_DAYS}, greatest(1, extract(epoch from ${now}::timestamptz - m.created_at) / 86400)))
    as days
) d
order by f.merchant_id, f.currency`);
}

/** Returns what was taken off a float, and the float before and after it. */
async function floatLeft(asked: Asked<unknown>, merchantId: number) {
  const amount = String(changeIn(asked).after['amount']);
  const [currency = '', sum = ''] = amount.split(' ');
  const floats = await listFloats(asked.caller.service.db, merchantId);
  const minor = floats.find((each) => each.currency === currency)?.balance;
  if (minor === undefined) throw new Error('money was taken off a float that is not there');
  const before = minor + toMinor(Number(sum), requireDecimals(currency));
  return { amount, before: toSum(currency, before), after: toSum(currency, minor) };
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
    const booked = await refundFloat(caller, { merchantId: id, currency, amountMinor, reference });
    return { merchantId, currency, amount, ...booked };
  },
});

const correct = changing({
  name: 'float.correct',
  title: 'Correct the top-up',
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
    amount: Money(ENTRY),
    ...Booking,
  }),
  roles: MONEY,
  approval: twoPeople({ why: 'Money is taken off the float of a merchant.' }),
  agreement: {
    sentence: 'Take {amount} of a top-up of {topUp} off the float of {merchant}: {before} → {after}',
    async of(asked) {
      const { transactionId, reference } = asked.input;
      const { merchantId } = await getTopUp(asked.caller, transactionId);
      const about = await ofMerchant(asked, merchantId);
      const left = await floatLeft(asked, merchantId);
      return { ...about, ...left, topUp: changeIn(asked).before['amount'], transactionId, reference };
    },
  },
  async run(caller, { transactionId, amount, reference }) {
    const topUp = await getTopUp(caller, transactionId);
    const { id, merchantId, currency } = topUp;
    const amountMinor = amount === undefined ? topUp.amount : minorOf(amount, currency, 'amount');
    const booked = await correctTopUp(caller, { topUp, amountMinor, reference });
    return { topUp: id, merchantId: String(merchantId), currency, amount: amountMinor, ...booked };
  },
});

const showFloats = listing({
  name: 'float.show',
  summary: 'List floats, merchant by merchant: those of one merchant, or of all',
  path: '/floats',
  item: FloatSchema,
  filters: { merchantId: Type.Optional(MerchantId), at: At },
  roles: SEE_VOUCHERS,
  async rows(caller, { merchantId, at: text }, after, count) {
    const merchant = merchantId === undefined ? null : await requireMerchant(caller, merchantId);
    const at = pastTime(text, caller.service.clock());
    return pageOfFloats(caller.service, { merchantId: merchant?.id ?? null, isLow: false, at }, after, count);
  },
  position: ({ merchantId, currency }) => [Number(merchantId), currency],
});

const lowFloats = listing({
  name: 'float.low',
  summary: 'List the floats that are below their threshold, merchant by merchant',
  path: '/floats/low',
  item: FloatSchema,
  roles: SEE_VOUCHERS,
  rows: ({ service }, _filters, after, count) =>
    pageOfFloats(service, { merchantId: null, isLow: true }, after, count),
  position: ({ merchantId, currency }) => [Number(merchantId), currency],
});

export const floats = { show: showFloats, low: lowFloats };

export const OPERATIONS = tableOf(showFloats, lowFloats, refund, correct);
