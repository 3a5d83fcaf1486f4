import { type Sql, sql } from '../db/sql.ts';

/**
 * What each float of some merchants paid for since a time, less what came back of it, and for how many days
 * it has been in use. Sealed slices are read from their sums, the rest from the journal, each kind along its
 * index.
 */
export function listUse(merchantIds: readonly number[], since: Date, now: Date): Sql {
  const unsealed = `
    select case j.debit_account when f.account_id then j.amount_minor else -j.amount_minor end as amount_minor
    from journal j
    where j.merchant_id = f.merchant_id and j.currency = f.currency
      and f.account_id in (j.debit_account, j.credit_account)
      and j.id >= id_floor(b.until - interval '1 hour') and j.occurred_at >= b.until`;
  return {
    text: `
select f.merchant_id, f.currency, f.decimals, f.balance_minor,
  coalesce(u.used_minor, 0)::bigint as used_minor,
  extract(epoch from $3::timestamptz - m.created_at) / 86400 as days
from unnest($1::integer[]) w (id)
-- \`offset 0\` keeps these look-ups: else the sums of all merchants may be made before these are picked.
cross join lateral (select r.created_at from merchants r where r.id = w.id offset 0) m
cross join lateral (select r.* from floats r where r.merchant_id = w.id offset 0) f
cross join (select greatest(coalesce(sealed_until, $2), $2) as until from books) b
cross join lateral (
  select sum(a.amount_minor) as used_minor from (
    select case s.debit_kind when 'FLOAT' then s.amount_minor else -s.amount_minor end as amount_minor
    from book_slices s
    where s.merchant_id = f.merchant_id and s.currency = f.currency
      and s.starts_at >= $2 and s.starts_at < b.until
      and (s.debit_kind = 'FLOAT' or s.credit_kind = 'FLOAT')
      and s.kind in ('RESERVATION', 'RELEASE', 'ACTIVATION', 'HOLD', 'HOLD_RELEASE', 'IMPORT')
    union all ${unsealed}
      and j.kind in ('RESERVATION', 'RELEASE', 'HOLD', 'HOLD_RELEASE', 'IMPORT')
    union all ${unsealed}
      and j.batch_id is null and j.kind = 'ACTIVATION'
  ) a
) u
order by f.merchant_id, f.currency`,
    values: [merchantIds, since, now],
  };
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
