-- 033: the movements of an interval by currency and kind alone, for the totals that consoles show all day. A
-- row of the journal does not name the issuer and the product of its voucher: to find the voucher takes four
-- times as long as to read the row. Rows are also summed before their accounts are looked up. Functions only:
-- it locks nothing and takes milliseconds.
-- Works from: 032

-- Returns the sums of the rows that are booked in an interval, with the columns of `book_slices`.
-- p_in_total: `merchant_id`, `issuer_id` and `product_id` are 0.
create function slice_movements(
  p_from timestamptz, p_to timestamptz, p_in_total boolean
) returns table (
  slice_at timestamptz, currency text, kind entry_kind, debit_kind text, credit_kind text,
  merchant_id integer, issuer_id integer, product_id integer, rows bigint, amount_minor bigint
)
language plpgsql stable set search_path = scrip, pg_temp set plan_cache_mode = force_custom_plan as $$
#variable_conflict use_column
begin
  return query
  select s.slice_at, s.currency, s.kind, coalesce(d.kind::text, s.debit_kind, 'UNKNOWN'),
    coalesce(c.kind::text, s.credit_kind, 'UNKNOWN'), s.merchant_id, coalesce(b.merchant_id, 0),
    coalesce(b.product_id, 0), sum(s.rows)::bigint, sum(s.amount_minor)::bigint
  from (
    select r.slice_at, r.currency, r.kind, case when p_in_total then 0 else coalesce(r.merchant_id, 0) end
      as merchant_id,
      case when not p_in_total then coalesce(r.batch_id, v.batch_id) end as batch_id,
      case when r.debit_account < 5000000000 then r.debit_account end as debit_account,
      case
        when r.debit_account > 10000000000 then 'VOUCHER' when r.debit_account >= 5000000000 then 'RESERVE'
      end as debit_kind,
      case when r.credit_account < 5000000000 then r.credit_account end as credit_account,
      case
        when r.credit_account > 10000000000 then 'VOUCHER' when r.credit_account >= 5000000000 then 'RESERVE'
      end as credit_kind,
      count(*) as rows, sum(r.amount_minor) as amount_minor
    from book_rows r
    left join vouchers v on not p_in_total and r.batch_id is null and v.bucket = r.bucket
      and v.serial_number = r.serial_number
    where r.place >= id_floor(p_from, '-1 hour') and r.place < id_floor(p_to, '1 hour')
      and r.booked_at >= p_from and r.booked_at < p_to
    group by 1, 2, 3, 4, 5, 6, 7, 8, 9
  ) s
  left join accounts d on d.id = s.debit_account
  left join accounts c on c.id = s.credit_account
  left join batches b on b.id = s.batch_id
  group by 1, 2, 3, 4, 5, 6, 7, 8;
end $$;

create or replace function slice_movements(
  p_from timestamptz, p_to timestamptz
) returns table (
  slice_at timestamptz, currency text, kind entry_kind, debit_kind text, credit_kind text,
  merchant_id integer, issuer_id integer, product_id integer, rows bigint, amount_minor bigint
)
language sql stable as $$
  select * from slice_movements(p_from, p_to, false)
$$;

-- Returns the movements of an interval: those of its closed days, of its sealed slices, and of later rows.
-- p_in_total: `merchant_id`, `issuer_id` and `product_id` are 0.
create function movements(
  p_from timestamptz, p_to timestamptz, p_in_total boolean
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
    from edge e cross join lateral slice_movements(e.at, p_to, p_in_total) l
    where e.at < p_to
  )
  select p.currency, p.kind, p.debit_kind, p.credit_kind, case when p_in_total then 0 else p.merchant_id end,
    case when p_in_total then 0 else p.issuer_id end, case when p_in_total then 0 else p.product_id end,
    sum(p.rows)::bigint, sum(p.amount_minor)::bigint
  from parts p group by 1, 2, 3, 4, 5, 6, 7
$$;

create or replace function movements(
  p_from timestamptz, p_to timestamptz
) returns table (
  currency text, kind entry_kind, debit_kind text, credit_kind text, merchant_id integer, issuer_id integer,
  product_id integer, rows bigint, amount_minor bigint
)
language sql stable as $$
  select * from movements(p_from, p_to, false)
$$;
