import { plainArray, type Sql, sql } from '../db/sql.ts';

/** The statements for unclaimed money (escheat.ts, reports/tax.ts). */

/** An expired amount that is unclaimed. Days are those of the zone of the books. */
export type UnclaimedRow = {
  readonly serialNumber: bigint;
  readonly product: string;
  readonly currency: string;
  readonly amount: bigint;
  readonly issuedOn: string;
  readonly lastUsedOn: string;
  readonly expiredOn: string;
};

/**
 * Lists the amounts that expired before a time, and were unclaimed at an instant: neither given back nor paid
 * to a state by then.
 */
export function listUnclaimed(wanted: {
  readonly currency: string | null;
  /** Null: all. */
  readonly expiredBefore: Date | null;
  /** Null: now. */
  readonly at: Date | null;
  readonly zone: string;
  readonly countMax: number;
}): Sql {
  const { currency, zone, countMax } = wanted;
  const [before, at] = [wanted.expiredBefore, wanted.at].map((time) => time?.toISOString() ?? 'infinity');
  return sql`
select j.serial_number as "serialNumber", p.code as product, j.currency, j.amount_minor as amount,
  (v.activated_at at time zone ${zone})::date::text as "issuedOn",
  (greatest(u.used_at, v.earlier_use_at, v.activated_at) at time zone ${zone})::date::text as "lastUsedOn",
  (j.occurred_at at time zone ${zone})::date::text as "expiredOn"
from batches b
join products p on p.id = b.product_id
join vouchers v on v.batch_id = b.id and v.activated_at is not null
join journal j on j.bucket = v.bucket and j.serial_number = v.serial_number and j.kind = 'EXPIRY'
left join lateral (
  select max(r.occurred_at) as used_at from journal r
  where r.bucket = v.bucket and r.serial_number = v.serial_number and r.kind = 'REDEMPTION'
    and r.original_id is null and r.occurred_at < ${at}::timestamptz
) u on true
left join (
  select e.expiry_id from escheated_expiries e where e.escheated_at < ${at}::timestamptz
) s on s.expiry_id = j.id
where b.expiry_policy = 'unclaimed' and b.status = 'COMPLETED'
  and (${currency}::text is null or b.currency = ${currency})
  and j.occurred_at < ${before}::timestamptz and s.expiry_id is null
  and not exists (
    select from journal r
    where r.bucket = v.bucket and r.serial_number = v.serial_number and r.kind = 'REINSTATEMENT'
      and r.original_id = j.id and r.occurred_at < ${at}::timestamptz
  )
order by j.currency, j.serial_number, j.id limit ${countMax}`;
}

/** An escheat reads all vouchers whose money may be unclaimed, which takes longer than a request. */
export const allowLongEscheat = sql`set local statement_timeout = '10min'`;

export type EscheatedRow = {
  readonly serial_number: bigint;
  readonly amount_minor: bigint;
  readonly expired_at: Date;
};

/** Lists the amounts that a movement paid to a state. */
export function listEscheated(escheatId: string): Sql {
  return sql`
select serial_number, amount_minor, expired_at from escheated_expiries
where escheat_id = ${escheatId} order by serial_number, expired_at`;
}

/** Records the amounts that a movement paid to a state, in columns of equal length. */
export function insertEscheated(
  escheatId: string,
  now: Date,
  columns: {
    readonly ids: readonly string[];
    readonly serials: readonly bigint[];
    readonly amounts: readonly bigint[];
    readonly times: readonly Date[];
  },
): Sql {
  const { ids, serials, amounts, times } = columns;
  return sql`
insert into escheated_expiries (expiry_id, escheat_id, serial_number, amount_minor, expired_at, escheated_at)
select u.id, ${escheatId}, u.serial_number, u.amount_minor, u.expired_at, ${now}
from unnest(${plainArray(ids)}::uuid[], ${plainArray(serials)}::bigint[], ${plainArray(amounts)}::bigint[],
  ${plainArray(times.map((time) => time.toISOString()))}::timestamptz[])
  as u (id, serial_number, amount_minor, expired_at)`;
}
