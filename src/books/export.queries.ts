import { plainArray, type Sql, sql } from '../db/sql.ts';

/** Lists the closed days of an interval that ends before `to`, in order. */
export function listClosings(from: string, to: string): Sql {
  return sql`
select day::text, starts_at, ends_at, zone, closed_at, hash,
  (day - (select min(day) from book_closings)) + 1 as number
from book_closings where day >= ${from}::date and day < ${to}::date order by day`;
}

/** Lists the balances of all accounts at the end of a day, credit minus debit. */
export function listBalances(day: string): Sql {
  return sql`
select account_kind, currency, merchant_id, issuer_id, product_id, balance_minor
from book_balances where day = ${day}::date and balance_minor <> 0
order by currency, account_kind, merchant_id, issuer_id, product_id`;
}

/** Sums the movements of a closed day. 0 means no merchant or no product. */
export function listMovements(day: string): Sql {
  return sql`
select null::uuid as id, null::timestamptz as occurred_at, null::timestamptz as booked_at, kind::text,
  currency, debit_kind, credit_kind,
  merchant_id, issuer_id, product_id, rows, amount_minor, null::bigint as serial_number,
  null::text as reference, null::uuid as original_id
from book_movements where day = ${day}::date
order by currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id`;
}

/** Lists the sealed slices of an interval, with the number and the hash of their rows. */
export function listSlices(from: Date, to: Date): Sql {
  return sql`
select starts_at, rows, hash from book_seals where starts_at >= ${from} and starts_at < ${to}
order by starts_at`;
}

/** Returns ids of a slice from its listing, in the order of time and id. */
export function listSealed(sliceAt: Date, skipped: number, limit: number): Sql {
  return sql`
select encode(substring(s.listing from 20 * i.at + 1 for 16), 'hex')::uuid as id
from book_seals s, generate_series(${skipped}::integer, ${skipped}::integer + ${limit}::integer - 1) as i (at)
where s.starts_at = ${sliceAt} and i.at < s.rows order by i.at`;
}

/**
 * Returns the ids of the rows that were booked in an interval on floats and settlement accounts, account by
 * account, in the order of time and id: 16 bytes each.
 * @param merchantId only the accounts of this merchant; null: all
 */
export function listByAccount(from: Date, to: Date, merchantId: number | null): Sql {
  return sql`
select string_agg(uuid_send(r.id), ''::bytea order by r.booked_at, r.id) as ids
from (
  select j.id, j.booked_at, j.currency, coalesce(d.merchant_id, c.merchant_id) as merchant_id,
    coalesce(d.kind, c.kind) as kind
  from book_rows j
  left join accounts d on d.id = j.debit_account and d.kind in ('FLOAT', 'SETTLEMENT')
  left join accounts c on c.id = j.credit_account and c.kind in ('FLOAT', 'SETTLEMENT')
  where coalesce(d.id, c.id) is not null and j.place >= id_floor(${from}::timestamptz, '-1 hour')
    and j.place < id_floor(${to}::timestamptz, '1 hour')
    and j.booked_at >= ${from} and j.booked_at < ${to}
    and (${merchantId}::integer is null or ${merchantId} in (d.merchant_id, c.merchant_id))
) r
group by r.currency, r.merchant_id, r.kind order by r.currency, r.merchant_id, r.kind::text`;
}

/**
 * Returns rows by their ids, in any order. Account numbers of reserves begin at 5,000,000,000, those of
 * vouchers at 10,000,000,000.
 */
export function listRows(ids: readonly string[]): Sql {
  return sql`
select j.id, j.occurred_at, j.booked_at, j.kind::text as kind, j.currency, 1::bigint as rows,
  j.amount_minor, j.serial_number, j.reference, j.original_id,
  case
    when j.debit_account >= 10000000000 then 'VOUCHER'
    when j.debit_account >= 5000000000 then 'RESERVE'
    else d.kind::text
  end as debit_kind,
  case
    when j.credit_account >= 10000000000 then 'VOUCHER'
    when j.credit_account >= 5000000000 then 'RESERVE'
    else c.kind::text
  end as credit_kind,
  coalesce(nullif(greatest(d.merchant_id, c.merchant_id), 0), j.merchant_id, 0) as merchant_id,
  coalesce(n.merchant_id, 0) as issuer_id, coalesce(n.product_id, 0) as product_id
from book_rows j
left join accounts d on d.id = j.debit_account
left join accounts c on c.id = j.credit_account
left join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
left join batches n on n.id = coalesce(v.batch_id, j.batch_id)
where j.id = any (${plainArray(ids)}::uuid[])`;
}

/** Lets a statement read a whole day, which can take longer than a request. */
export const allowWholeDay: readonly Sql[] = [
  sql`set transaction read only`,
  sql`set local statement_timeout = '2h'`,
  sql`set local enable_bitmapscan = on`,
];

/** Returns the texts of rows that are hashed, by their ids and in any order. */
export function listLines(ids: readonly string[]): Sql {
  return sql`select id, line from book_rows where id = any (${plainArray(ids)}::uuid[])`;
}
