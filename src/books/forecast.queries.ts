import { type Sql, sql } from '../db/sql.ts';

/**
 * What each float of a merchant paid for since a time, less what came back of it, and for how many days
 * it has been in use. Sealed slices are read from their sums, the rest from the journal.
 */
export function listUse(merchantId: number, since: Date, now: Date): Sql {
  return sql`
with sealed as (
  select greatest(coalesce(sealed_until, ${since}::timestamptz), ${since}::timestamptz) as until from books
), moved as (
  select s.currency, case s.debit_kind when 'FLOAT' then s.amount_minor
    else -s.amount_minor end as amount_minor
  from book_slices s, sealed
  where s.starts_at >= ${since} and s.starts_at < sealed.until and s.merchant_id = ${merchantId}
    and 'FLOAT' in (s.debit_kind, s.credit_kind)
    and s.kind in ('RESERVATION', 'RELEASE', 'ACTIVATION', 'HOLD', 'HOLD_RELEASE', 'IMPORT')
  union all
  select j.currency, case when j.debit_account = f.account_id then j.amount_minor else -j.amount_minor end
  from sealed
  join floats f on f.merchant_id = ${merchantId}
  join journal j on j.merchant_id = f.merchant_id and j.currency = f.currency
    and f.account_id in (j.debit_account, j.credit_account)
    and j.id >= id_floor(sealed.until - interval '1 hour') and j.occurred_at >= sealed.until
    and j.kind in ('RESERVATION', 'RELEASE', 'ACTIVATION', 'HOLD', 'HOLD_RELEASE', 'IMPORT')
)
select f.currency, coalesce((select sum(m.amount_minor) from moved m where m.currency = f.currency),
  0)::bigint as used_minor,
  extract(epoch from ${now}::timestamptz - m.created_at) / 86400 as days
from floats f join merchants m on m.id = f.merchant_id
where f.merchant_id = ${merchantId}`;
}

/** Floats below their mark, merchant by merchant, behind a float. */
export function listLowFloats(merchantId: number, currency: string, count: number): Sql {
  return sql`
select f.merchant_id, m.name as merchant, f.currency,
  coalesce(f.low_minor, f.topped_up_minor / 10) as low_minor
from floats f join merchants m on m.id = f.merchant_id
where (f.merchant_id, f.currency) > (${merchantId}, ${currency})
  and f.balance_minor < coalesce(f.low_minor, f.topped_up_minor / 10)
order by f.merchant_id, f.currency limit ${count}`;
}
