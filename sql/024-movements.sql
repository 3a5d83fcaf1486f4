-- 024: the movements of an interval and the balances at a time, from the tables of 014-books.sql and later
-- rows of the journal. A view and functions: it locks nothing and takes milliseconds.

-- The rows of the journal with the time at which they are booked: their own, or for a late row that of the
-- slice to which it was added. Ids are within an hour of the row's time, and a late row has a place within
-- that slice. A query for an interval of `booked_at` therefore also limits `place`, so that it uses the
-- primary key. `leaf` is the leaf hash of `line` (docs/reference/proof.md). This is a view
-- because Citus rejects functions that return rows of the journal.
create view book_rows as
select q.*, sha256('\x00'::bytea || convert_to(q.line, 'UTF8')) as leaf
from (
  select p.*,
    concat(p.id, '|', p.kind, '|', p.debit_account, '|', p.credit_account, '|', p.amount_minor, '|',
      p.currency, '|', (extract(epoch from p.occurred_at) * 1000000)::bigint, '|', p.serial_number, '|',
      p.original_id, '|', p.merchant_id, '|', p.batch_id, '|', p.key_id, '|', p.reference) as line
  from (
    select j.id as place, j.occurred_at as booked_at,
      date_bin('15 minutes', j.occurred_at, 'epoch') as slice_at, j.*
    from journal j where not exists (select from book_late_rows l where l.id = j.id)
    union all
    select id_floor(l.slice_at), l.slice_at, l.slice_at, j.*
    from book_late_rows l join journal j on j.id = l.id
  ) p
) q;

-- Returns their sums, with the columns of `book_slices`.
create function slice_movements(
  p_from timestamptz, p_to timestamptz
) returns table (
  slice_at timestamptz, currency text, kind entry_kind, debit_kind text, credit_kind text,
  merchant_id integer, issuer_id integer, product_id integer, rows bigint, amount_minor bigint
)
language sql stable as $$
  select r.slice_at, r.currency, r.kind, k.debit, k.credit, coalesce(r.merchant_id, 0),
    coalesce(b.merchant_id, 0), coalesce(b.product_id, 0), count(*), sum(r.amount_minor)::bigint
  from book_rows r
  left join accounts d on d.id = r.debit_account
  left join accounts c on c.id = r.credit_account
  left join vouchers v on r.batch_id is null and v.bucket = r.bucket and v.serial_number = r.serial_number
  left join batches b on b.id = coalesce(r.batch_id, v.batch_id)
  cross join lateral (
    select
      coalesce(d.kind::text, case
        when r.debit_account > 10000000000 then 'VOUCHER'
        when r.debit_account >= 5000000000 then 'RESERVE'
        else 'UNKNOWN'
      end) as debit,
      coalesce(c.kind::text, case
        when r.credit_account > 10000000000 then 'VOUCHER'
        when r.credit_account >= 5000000000 then 'RESERVE'
        else 'UNKNOWN'
      end) as credit
  ) k
  where r.place >= id_floor(p_from, '-1 hour') and r.place < id_floor(p_to, '1 hour')
    and r.booked_at >= p_from and r.booked_at < p_to
  group by 1, 2, 3, 4, 5, 6, 7, 8
$$;

-- Returns the reversals of an interval whose redemptions were booked before it, or before an earlier time.
-- A redemption that names an original takes the place of one that is reversed in the same step. A refund
-- reduces it like one that takes back a part.
create function earlier_reversals(
  p_from timestamptz, p_to timestamptz, p_before timestamptz default null
) returns table (
  original_day date, currency text, merchant_id integer, product_id integer, rows bigint,
  amount_minor bigint, again_minor bigint
)
language sql stable as $$
  select (select d.day from book_days d where d.starts_at <= s.original_at order by d.starts_at desc limit 1),
    s.currency, s.merchant_id, s.product_id, sum(s.rows)::bigint, sum(s.amount_minor)::bigint,
    sum(s.again_minor)::bigint
  from (
    select coalesce(l.slice_at, o.occurred_at) as original_at, r.currency, r.merchant_id, b.product_id,
      count(*) filter (where r.kind = 'REDEMPTION_REVERSAL') as rows,
      coalesce(sum(r.amount_minor) filter (where r.kind = 'REDEMPTION_REVERSAL'), 0) as amount_minor,
      coalesce(sum(case r.kind when 'REFUND' then -r.amount_minor else r.amount_minor end)
        filter (where r.kind in ('REDEMPTION', 'REFUND')), 0) as again_minor
    from book_rows r
    join journal o on o.bucket = r.bucket and o.id = r.original_id
    left join book_late_rows l on l.id = o.id
    join vouchers v on v.bucket = r.bucket and v.serial_number = r.serial_number
    join batches b on b.id = v.batch_id
    where r.place >= id_floor(p_from, '-1 hour') and r.place < id_floor(p_to, '1 hour')
      and r.booked_at >= p_from and r.booked_at < p_to
      and r.kind in ('REDEMPTION_REVERSAL', 'REDEMPTION', 'REFUND')
      and coalesce(l.slice_at, o.occurred_at) < coalesce(p_before, p_from)
    group by 1, 2, 3, 4
  ) s
  group by 1, 2, 3, 4
$$;

-- Returns the movements of any interval that begins with a slice: of the closed days in it, of the sealed
-- slices outside those days, and of the rows after the last slice that ends in the interval.
create function movements(
  p_from timestamptz, p_to timestamptz
) returns table (
  currency text, kind entry_kind, debit_kind text, credit_kind text, merchant_id integer, issuer_id integer,
  product_id integer, rows bigint, amount_minor bigint
)
language sql stable as $$
  with closed as (
    select min(c.starts_at) as starts_at, max(c.ends_at) as ends_at from book_closings c
    where c.starts_at >= p_from and c.ends_at <= p_to
  ), edge as (
    select greatest(p_from,
        least(coalesce(b.sealed_until, p_from), date_bin('15 minutes', p_to, 'epoch'))) as at
    from books b
  ), parts as (
    select m.currency, m.kind, m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.rows,
      m.amount_minor
    from book_movements m join book_closings c on c.day = m.day
    where c.starts_at >= p_from and c.ends_at <= p_to
    union all
    select s.currency, s.kind, s.debit_kind, s.credit_kind, s.merchant_id, s.issuer_id, s.product_id, s.rows,
      s.amount_minor
    from book_slices s, closed c, edge e
    where s.starts_at >= p_from and s.starts_at < e.at
      and (c.starts_at is null or s.starts_at < c.starts_at or s.starts_at >= c.ends_at)
    union all
    select l.currency, l.kind, l.debit_kind, l.credit_kind, l.merchant_id, l.issuer_id, l.product_id, l.rows,
      l.amount_minor
    from edge e cross join lateral slice_movements(e.at, p_to) l
    where e.at < p_to
  )
  select p.currency, p.kind, p.debit_kind, p.credit_kind, p.merchant_id, p.issuer_id, p.product_id,
    sum(p.rows)::bigint, sum(p.amount_minor)::bigint
  from parts p group by 1, 2, 3, 4, 5, 6, 7
$$;

-- Returns the effect of a movement on the balances: each account kind with the merchant, or the issuer and
-- product, by which its balances are kept.
create function effects(
  debit_kind text, credit_kind text, merchant_id integer, issuer_id integer, product_id integer,
  amount_minor bigint
) returns table (
  account_kind text, owner_id integer, by_issuer integer, by_product integer, debit_minor bigint,
  credit_minor bigint
)
language sql immutable parallel safe as $$
  select s.kind,
    case when s.kind in ('FLOAT', 'SETTLEMENT') then merchant_id else 0 end,
    case when s.kind in ('VOUCHER', 'RESERVE') then issuer_id else 0 end,
    case when s.kind in ('VOUCHER', 'RESERVE') then product_id else 0 end,
    s.debit, s.credit
  from (values (debit_kind, amount_minor, 0::bigint), (credit_kind, 0::bigint, amount_minor))
    as s (kind, debit, credit)
$$;

-- Returns the balances at a time: those of the last day closed by then, and the movements since.
create function balances_at(
  p_at timestamptz
) returns table (
  currency text, account_kind text, merchant_id integer, issuer_id integer, product_id integer,
  balance_minor bigint
)
language sql stable as $$
  with base as (
    select c.day, c.ends_at from book_closings c where c.ends_at <= p_at order by c.day desc limit 1
  ), parts as (
    select b.currency, b.account_kind, b.merchant_id, b.issuer_id, b.product_id, b.balance_minor
    from book_balances b join base on base.day = b.day
    union all
    select m.currency, e.account_kind, e.owner_id, e.by_issuer, e.by_product, e.credit_minor - e.debit_minor
    from movements(coalesce((select ends_at from base), '1970-01-01T00:00Z'), p_at) m
    cross join lateral effects(
      m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.amount_minor
    ) e
  )
  select p.currency, p.account_kind, p.merchant_id, p.issuer_id, p.product_id, sum(p.balance_minor)::bigint
  from parts p group by 1, 2, 3, 4, 5 having sum(p.balance_minor) <> 0
$$;

-- Returns, for each amount of the operator's setting `network`, what was paid in its currency in the last
-- twelve months: redemptions, less what was taken back or refunded. `near` begins at 80 %.
create function network_payments(
  p_now timestamptz
) returns table (currency text, amount_minor bigint, paid_minor bigint, state text)
language sql stable as $$
  select n.key, n.value::bigint, p.minor,
    case when p.minor > n.value::bigint then 'passed' when p.minor >= 0.8 * n.value::bigint then 'near'
      else 'below' end
  from operator_settings s
  cross join lateral json_each_text(s.value::json) n
  cross join lateral (
    select coalesce(sum(case m.kind when 'REDEMPTION' then m.amount_minor else -m.amount_minor end), 0)::bigint
      as minor
    from movements(date_bin('15 minutes', p_now - interval '12 months', 'epoch'), p_now) m
    where m.currency = n.key and m.kind in ('REDEMPTION', 'REDEMPTION_REVERSAL', 'REFUND')
  ) p
  where s.name = 'network'
$$;

grant select on book_rows to scrip_service;
