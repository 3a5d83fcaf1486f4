import Type, { type Static } from 'typebox';
import { type Sql, sql } from '../db/sql.ts';
import { moved, none } from '../figure.ts';
import { listOf } from '../ledger/kinds.ts';
import { listingAll } from '../listing.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { tableOf } from '../operation.ts';
import { SEE_VOUCHERS } from '../principal.ts';
import { Count, Day, MerchantId, Money, Opening, Text } from '../schema.ts';
import { openDays } from './days.ts';

/** What a merchant redeemed, day by day, for the first page of its portal. */

const DAYS = 30;
const DAYS_MAX = 92;

const TAKEN = ['REDEMPTION', 'REDEMPTION_REVERSAL', 'REFUND'] as const;
const REDEEMED = moved({
  account: 'SETTLEMENT',
  merchantId: '{merchantId}',
  kind: TAKEN.join(),
  from: '{day}',
  to: '{day}',
});

const RedeemedSchema = Type.Object({
  day: Day,
  currency: Text,
  redemptions: Opening(none('Redemptions less reversals; the entries are behind the amount.'), Count),
  redeemed: Money(REDEEMED, 'Without what was reversed or refunded on that day.'),
});
type Redeemed = Static<typeof RedeemedSchema>;

const KINDS = listOf(TAKEN);

/** Sums redemptions, less what took them back. @param rows how many movements a row stands for */
const sums = (rows: Sql): Sql => sql`
  sum(case m.kind when 'REDEMPTION' then ${rows} when 'REDEMPTION_REVERSAL' then -${rows} else 0 end)::integer
    as redemptions,
  sum(case m.kind when 'REDEMPTION' then m.amount_minor else -m.amount_minor end)::bigint as redeemed`;

/**
 * Closed days are read from their sums, later ones from the merchant's rows of the journal. A row that
 * arrived after the close of its day counts when the day is closed to which it was added.
 */
export const redeemedDays = listingAll({
  name: 'books.redeemed',
  summary: 'Sum what a merchant redeemed, day by day, newest first; days without redemptions are left out',
  path: '/books/redeemed',
  input: {
    merchantId: MerchantId,
    days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: DAYS_MAX,
        default: DAYS,
        description: 'How many days, up to today.',
      }),
    ),
  },
  item: RedeemedSchema,
  roles: SEE_VOUCHERS,
  async rows(caller, { merchantId, days = DAYS }) {
    const { db, clock } = caller.service;
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    await openDays(db);
    const [span] = await db.query<{ first: string | null; since: Date | null }>(sql`
select min(d.day)::text as first,
  greatest(min(d.starts_at), (select max(ends_at) from book_closings)) as since
from (
  select day, starts_at from book_days where starts_at <= ${clock()} order by day desc limit ${days}
) d`);
    if (!span?.first || !span.since) return [];
    const closed = db.query<Redeemed>(sql`
select m.day::text as day, m.currency, ${sums(sql`m.rows`)}
from book_movements m
where m.merchant_id = ${id} and m.day >= ${span.first}::date and m.kind in ${KINDS}
group by m.day, m.currency`);
    const later = db.query<Redeemed>(sql`
select d.day::text as day, m.currency, ${sums(sql`1`)}
from (
  select kind, currency, amount_minor, occurred_at from journal
  where merchant_id = ${id} and batch_id is null and kind in ('REDEMPTION', 'REDEMPTION_REVERSAL')
    and id >= id_floor(${span.since}::timestamptz, '-1 hour') and occurred_at >= ${span.since}
  union all
  select kind, currency, amount_minor, occurred_at from journal
  where merchant_id = ${id} and kind = 'REFUND'
    and id >= id_floor(${span.since}::timestamptz, '-1 hour') and occurred_at >= ${span.since}
) m
join book_days d on d.starts_at <= m.occurred_at and d.ends_at > m.occurred_at
group by d.day, m.currency`);
    const order = (one: Redeemed, other: Redeemed) =>
      other.day.localeCompare(one.day) || one.currency.localeCompare(other.currency);
    return (await Promise.all([closed, later])).flat().sort(order);
  },
});

export const OPERATIONS = tableOf(redeemedDays);
