import { closing, type DayEnd } from '../books/close.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, type Sql, sql } from '../db/sql.ts';
import { idAt, newId } from '../ledger/id.ts';
import { listOf, type MovementKind, withReversals } from '../ledger/kinds.ts';
import { tableOf } from '../operation.ts';

/** Commission: what the operator keeps of redemptions, and the VAT on it. It is booked as a day is closed. */

const MILLION = 1_000_000n;

/**
 * Returns a share of an amount, in parts per million. It is rounded to whole minor units, half away from
 * zero. Nothing else is rounded when money is booked.
 */
export function shareOf(minor: bigint, ppm: number): bigint {
  const size = ((minor < 0n ? -minor : minor) * BigInt(ppm) + MILLION / 2n) / MILLION;
  return minor < 0n ? -size : size;
}

/** What a merchant redeemed of a product in a currency, with the terms of that day and the accounts. */
type Net = {
  /** The day of the redemptions. */
  readonly ofDay: string;
  readonly merchantId: number;
  readonly productId: number;
  readonly currency: string;
  readonly netMinor: bigint;
  readonly commissionPpm: number;
  readonly vatPpm: number;
  readonly settlementAccount: bigint;
  readonly feesAccount: bigint;
  readonly vatAccount: bigint;
};

/**
 * Lists each merchant's redemptions of a day less reversals, by product and by the day of the redemption,
 * with the terms of that day and the accounts to book on. What takes the place of an earlier redemption
 * belongs to the day of that one. Terms of the product take precedence over terms of the merchant. Merchants
 * without terms are left out. Sealed slices are read from their sums, the rest of the day from the journal.
 */
const listNets = (day: string, startsAt: Date, endsAt: Date): Sql => sql`
with sealed as (
  select greatest(coalesce(sealed_until, ${startsAt}::timestamptz), ${startsAt}::timestamptz) as until
  from books
), corrected as (
  select original_day, merchant_id, product_id, currency, again_minor - amount_minor as minor
  from book_reversals where day = ${day}::date
  union all
  select e.original_day, e.merchant_id, e.product_id, e.currency, e.again_minor - e.amount_minor
  from sealed cross join lateral earlier_reversals(sealed.until, ${endsAt}, ${startsAt}) e
), moved as (
  select ${day}::date as of_day, merchant_id, product_id, currency,
    case kind when 'REDEMPTION' then amount_minor else -amount_minor end as minor
  from movements(${startsAt}, ${endsAt}) where kind in ${listOf(withReversals('REDEMPTION'))}
  union all
  select ${day}::date, merchant_id, product_id, currency, -minor from corrected
  union all
  select original_day, merchant_id, product_id, currency, minor from corrected
)
select n.of_day::text as "ofDay", n.merchant_id as "merchantId", n.product_id as "productId", n.currency,
  n.net_minor as "netMinor", t.commission_ppm as "commissionPpm", t.vat_ppm as "vatPpm",
  s.id as "settlementAccount", f.id as "feesAccount", v.id as "vatAccount"
from (
  select of_day, merchant_id, product_id, currency, sum(minor)::bigint as net_minor
  from moved group by 1, 2, 3, 4 having sum(minor) <> 0
) n
cross join lateral (
  select r.commission_ppm, r.vat_ppm from settlement_terms r
  where r.merchant_id = n.merchant_id and r.product_id in (0, n.product_id) and r.valid_from <= n.of_day
  order by r.product_id = 0, r.valid_from desc limit 1
) t
left join accounts s on s.kind = 'SETTLEMENT' and s.merchant_id = n.merchant_id and s.currency = n.currency
left join accounts f on f.kind = 'FEES' and f.merchant_id = 0 and f.currency = n.currency
left join accounts v on v.kind = 'VAT' and v.merchant_id = 0 and v.currency = n.currency
order by n.merchant_id, n.product_id, n.currency, n.of_day`;

/** The commission on an amount, and the movements that book it; null: nothing to book. */
type Fee = Net & {
  readonly feeMinor: bigint;
  readonly vatMinor: bigint;
  readonly feeId: string | null;
  readonly vatId: string | null;
};

type Movement = {
  readonly id: string;
  readonly kind: MovementKind;
  readonly debit: bigint;
  readonly credit: bigint;
  readonly amountMinor: bigint;
  readonly merchantId: number;
};

/**
 * Books the commission of a day and the VAT on it: one movement for each merchant, product and currency,
 * stamped with the last millisecond of the day. A correction of an earlier redemption follows the terms of
 * the day of that redemption. If reversals exceed the redemptions of the day, commission is returned.
 * Commission that is already booked is kept.
 * @param tx a transaction that holds the lock on the books, before the day's last slice is sealed
 */
const bookDay: DayEnd = async ({ service }, tx, { day, startsAt, endsAt }) => {
  if (await isBooked(tx, day)) return;
  const stamp = new Date(endsAt.getTime() - 1);
  const movements: Movement[] = [];
  const nets = await tx.query<Net>(listNets(day, startsAt, endsAt));
  const groups = Map.groupBy(nets, (net) => `${net.merchantId} ${net.productId} ${net.currency}`);
  const fees = [...groups.values()].flatMap((group): Fee[] => {
    const { settlementAccount, feesAccount, vatAccount, merchantId } = group[0] as Net;
    const move = (kind: 'FEE' | 'FEE_VAT', account: bigint, minor: bigint) => {
      if (minor === 0n) return null;
      const id = idAt(newId(service.clock()), stamp);
      movements.push({ id, merchantId, ...sidesOf(kind, settlementAccount, account, minor) });
      return id;
    };
    const computed = group.map((net) => {
      const feeMinor = shareOf(net.netMinor, net.commissionPpm);
      return { ...net, feeMinor, vatMinor: shareOf(feeMinor, net.vatPpm) };
    });
    const sum = (of: 'feeMinor' | 'vatMinor') => computed.reduce((total, each) => total + each[of], 0n);
    const feeId = move('FEE', feesAccount, sum('feeMinor'));
    const vatId = move('FEE_VAT', vatAccount, sum('vatMinor'));
    return computed.map((each) => ({ ...each, feeId, vatId }));
  });
  if (fees.length === 0) return;
  await recordFees(tx, day, fees);
  await bookFees(tx, day, movements, stamp);
};

/** The bookings that belong to the close of each day. */
export const DAY_ENDS: readonly DayEnd[] = [bookDay];

export const closeDay = closing(DAY_ENDS);

export const OPERATIONS = tableOf(closeDay);

/**
 * Returns whether an earlier transaction booked the commission of a day.
 * @throws while its rows cannot be read yet
 */
async function isBooked(tx: Queries, day: string): Promise<boolean> {
  const fees = await tx.query<{ feeId: string | null; vatId: string | null }>(sql`
select fee_id as "feeId", vat_id as "vatId" from settlement_fees where day = ${day}::date`);
  const ids = new Set(fees.flatMap(({ feeId, vatId }) => [feeId, vatId]).filter((id) => id !== null));
  if (ids.size === 0) return fees.length > 0;
  const [found] = await tx.query<{ rows: bigint }>(sql`
select count(*) as rows from journal where id = any (${plainArray([...ids])}::uuid[])`);
  if (Number(found?.rows) !== ids.size) throw new Error(`commission of ${day} is not readable yet`);
  return true;
}

/** Returns the sides of a movement: from the settlement account, or back to it if the amount is negative. */
function sidesOf(kind: 'FEE' | 'FEE_VAT', settlement: bigint, own: bigint, minor: bigint) {
  if (minor > 0n) return { kind, debit: settlement, credit: own, amountMinor: minor };
  return { kind: `${kind}_REVERSAL`, debit: own, credit: settlement, amountMinor: -minor } as const;
}

/** Records the figures from which the commission of a day was computed. */
async function recordFees(tx: Queries, day: string, fees: readonly Fee[]): Promise<void> {
  const column = (name: keyof Fee) => plainArray(fees.map((fee) => fee[name]));
  await tx.query(sql`
insert into settlement_fees (day, of_day, merchant_id, product_id, currency, net_minor, commission_ppm,
  vat_ppm, fee_minor, vat_minor, fee_id, vat_id)
select ${day}::date, u.*
from unnest(
  ${column('ofDay')}::date[], ${column('merchantId')}::int[], ${column('productId')}::int[],
  ${column('currency')}::text[], ${column('netMinor')}::bigint[], ${column('commissionPpm')}::int[],
  ${column('vatPpm')}::int[], ${column('feeMinor')}::bigint[], ${column('vatMinor')}::bigint[],
  ${column('feeId')}::uuid[], ${column('vatId')}::uuid[]
) as u`);
}

/** Books commission and VAT (sql/015-booking.sql). @throws if a movement is declined */
async function bookFees(
  tx: Queries,
  day: string,
  movements: readonly Movement[],
  stamp: Date,
): Promise<void> {
  const column = (name: keyof Movement) => plainArray(movements.map((movement) => movement[name]));
  const [declined] = await tx.query<{ id: string; outcome: string }>(sql`
select b.id, b.outcome from (
  select u.id, book(u.kind, u.id, u.debit, u.credit, u.amount, u.merchant, null, null, null, ${stamp})
    as outcome
  from unnest(
    ${column('id')}::uuid[], ${column('kind')}::entry_kind[], ${column('debit')}::bigint[],
    ${column('credit')}::bigint[], ${column('amountMinor')}::bigint[], ${column('merchantId')}::int[]
  ) as u (id, kind, debit, credit, amount, merchant)
  offset 0
) b where b.outcome <> 'ok'`);
  if (declined) throw new Error(`commission ${declined.id} of ${day} was declined: ${declined.outcome}`);
}
