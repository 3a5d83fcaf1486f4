import { type Sql, sql } from '../db/sql.ts';

/**
 * What each float of some merchants paid for since a time, less what came back of it, and for how many days
 * it has been in use: from the sums of sealed slices, so without the last hour or two.
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
