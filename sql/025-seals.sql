-- 025: how slices are sealed (docs/explanation/books.md). A slice leaves behind the proof of its rows, their
-- sums, and the changes of the vouchers' ages. Functions only: it locks nothing and takes milliseconds.

-- Returns the earliest expiry that has not been swept; null if there is none.
create function first_unswept() returns timestamptz
language plpgsql volatile set search_path = scrip, pg_temp as $$
declare
  -- A constant: a volatile function would be called for each row, and could not be compared by an index.
  until constant timestamptz := database_time();
  batch_at timestamptz;
  voucher_at timestamptz;
begin
  select min(b.expires_at) into batch_at from batches b
  where b.status = 'COMPLETED' and b.swept_at is null and b.expires_at <= until;
  select min(e.due_at) into voucher_at from voucher_expiries e where e.due_at <= until;
  return least(batch_at, voucher_at);
end $$;

-- Returns the time up to which slices may be sealed; null if there is none yet. Every transaction with an
-- earlier time has ended, no new row gets an earlier time, and every voucher that expired before it has been
-- swept.
create function sealable_until() returns timestamptz
language sql volatile set search_path = scrip, pg_temp as $$
  select date_bin('15 minutes', least(
    database_time() - make_interval(mins => b.grace_minutes),
    b.passed_at - make_interval(secs => b.grace_minutes * 30),
    first_unswept()
  ), 'epoch')
  from books b where b.passed_at is not null
$$;

-- Returns the sums of the movements of vouchers in an interval by the month of activation, in a time
-- zone, and by the expiry policy of their batch, with the columns of `book_cohorts`. Replacements are
-- left out: a replacement voucher belongs to the same cohort.
create function cohort_movements(p_from timestamptz, p_to timestamptz, p_zone text) returns table (
  currency text, product_id integer, issuer_id integer, expiry_policy expiry_policy, issue_month date,
  kind entry_kind, is_credit boolean, rows bigint, amount_minor bigint
)
language sql stable as $$
  select b.currency, b.product_id, b.merchant_id, b.expiry_policy,
    date_trunc('month', v.activated_at at time zone p_zone)::date, r.kind,
    r.credit_account = v.serial_number, count(*), sum(r.amount_minor)::bigint
  from book_rows r
  join vouchers v on v.bucket = r.bucket and v.serial_number = r.serial_number
  join batches b on b.id = v.batch_id
  where r.place >= id_floor(p_from, '-1 hour') and r.place < id_floor(p_to, '1 hour')
    and r.booked_at >= p_from and r.booked_at < p_to and r.kind <> 'REPLACEMENT'
    and v.serial_number in (r.debit_account, r.credit_account)
  group by 1, 2, 3, 4, 5, 6, 7
$$;

-- Returns how the vouchers that moved or were extended in an interval change `book_ages`: what they held at
-- its beginning is subtracted, and what they held at its end is added. The balance of a voucher is the sum of
-- its rows; one that was replaced holds nothing from then on. A redemption with a voucher that it replaced is
-- a use, a correction is none. `at` is a quarter of an hour, also of `idle` (age_of). `differing`: vouchers
-- whose present balance is not the sum of all their rows.
create function moved_ages_of(p_bucket integer, p_from timestamptz, p_to timestamptz) returns table (
  currency text, product_id integer, issuer_id integer, basis text, at timestamptz, vouchers bigint,
  amount_minor bigint, differing bigint[]
)
language sql stable set plan_cache_mode = force_custom_plan as $$
  with recursive moved as (
    select s.serial_number
    from book_rows r
    cross join lateral (values (r.debit_account), (r.credit_account)) as s (serial_number)
    where r.bucket = p_bucket and r.place >= id_floor(p_from, '-1 hour') and r.place < id_floor(p_to, '1 hour')
      and r.booked_at >= p_from and r.booked_at < p_to and s.serial_number > 10000000000
    union
    select e.serial_number from voucher_extensions e
    where e.bucket = p_bucket and e.extended_at >= p_from and e.extended_at < p_to
  ), walked as materialized (
    -- The bound is computed once for each voucher.
    select v.serial_number, v.last_use_id, id_floor(v.activated_at, '-1 hour') as earliest
    from moved m join vouchers v on v.bucket = p_bucket and v.serial_number = m.serial_number
  ), uses as (
    select w.earliest, r.*
    from walked w join journal r on r.bucket = p_bucket and r.id = w.last_use_id
    union all
    select u.earliest, r.* from uses u cross join lateral (
      select * from journal j where j.bucket = p_bucket and j.id = u.previous_use_id limit 1
    ) r
  ), rows as (
    select u.id, u.serial_number, u.debit_account, u.credit_account, u.amount_minor, u.occurred_at,
      true as is_use
    from uses u where u.id >= u.earliest
    union all
    select j.id, j.serial_number, j.debit_account, j.credit_account, j.amount_minor, j.occurred_at, false
    from walked w
    join journal j on j.bucket = p_bucket and j.serial_number = w.serial_number and j.id >= w.earliest
    where j.kind <> 'REDEMPTION' or j.original_id is not null
  ), sums as (
    select d.serial_number, coalesce(sum(d.minor) filter (where d.booked_at < p_from), 0) as from_minor,
      coalesce(sum(d.minor) filter (where d.booked_at < p_to), 0) as to_minor,
      sum(d.minor) as all_minor,
      max(d.occurred_at) filter (where d.is_use and d.booked_at < p_from) as from_use,
      max(d.occurred_at) filter (where d.is_use and d.booked_at < p_to) as to_use
    from (
      select r.serial_number, r.occurred_at, r.is_use, coalesce(l.slice_at, r.occurred_at) as booked_at,
        case r.serial_number
          when r.credit_account then r.amount_minor when r.debit_account then -r.amount_minor else 0
        end as minor
      from rows r left join book_late_rows l on l.id = r.id
    ) d
    group by d.serial_number
  ), held as (
    select b.currency, b.product_id, b.merchant_id as issuer_id, t.sign, t.minor,
      case
        when v.replaced_at is null and v.balance_minor <> h.all_minor then v.serial_number
      end as differing,
      coalesce((
        select (array_agg(e.expired_at order by e.id))[1] from voucher_extensions e
        where e.bucket = p_bucket and e.serial_number = v.serial_number and e.extended_at >= t.at
      ), v.expires_at) as expires_at,
      greatest(v.activated_at, v.earlier_use_at, t.used_at) as used_at
    from moved m
    join vouchers v on v.bucket = p_bucket and v.serial_number = m.serial_number
    join batches b on b.id = v.batch_id
    left join sums s on s.serial_number = m.serial_number
    cross join lateral (
      select coalesce(s.from_minor, 0) as from_minor, coalesce(s.to_minor, 0) as to_minor,
        coalesce(s.all_minor, 0) as all_minor, s.from_use, s.to_use
    ) h
    cross join lateral (values (-1, p_from, h.from_minor, h.from_use), (1, p_to, h.to_minor, h.to_use))
      as t (sign, at, minor, used_at)
    where (v.replaced_at < t.at) is not true
  )
  select h.currency, h.product_id, h.issuer_id, a.basis, date_bin('15 minutes', a.at, 'epoch'),
    coalesce(sum(h.sign) filter (where h.minor > 0), 0),
    coalesce(sum(h.sign * h.minor) filter (where h.minor > 0), 0)::bigint,
    (array_agg(h.differing) filter (where h.differing is not null))[1:10]
  from held h
  cross join lateral (values ('expires', h.expires_at), ('idle', h.used_at)) as a (basis, at)
  where h.minor > 0 or h.differing is not null
  group by 1, 2, 3, 4, 5
$$;

-- The same for all buckets.
create function moved_ages(p_from timestamptz, p_to timestamptz) returns table (
  currency text, product_id integer, issuer_id integer, basis text, at timestamptz, vouchers bigint,
  amount_minor bigint, differing bigint[]
)
language plpgsql stable as $$
declare
  each record;
begin
  for each in select p.bucket from bucket_positions p loop
    return query select * from moved_ages_of(each.bucket, p_from, p_to);
  end loop;
end $$;

-- Returns the vouchers of a bucket with rows from an id on, each with its balance and the sum of all its
-- rows.
create function touched_vouchers_of(p_bucket integer, p_since uuid) returns table (
  serial_number bigint, balance_minor bigint, closed voucher_closure, batch_currency text,
  amount_minor numeric, currency text, other_currency text
)
language sql stable set plan_cache_mode = force_custom_plan as $$
  with recursive touched as (
    select distinct r.serial_number from journal r
    where r.bucket = p_bucket and r.id >= p_since and r.serial_number is not null
  ), uses as (
    select r.*
    from touched t
    join vouchers v on v.bucket = p_bucket and v.serial_number = t.serial_number
    join journal r on r.bucket = p_bucket and r.id = v.last_use_id
    union all
    select r.* from uses u cross join lateral (
      select * from journal j where j.bucket = p_bucket and j.id = u.previous_use_id limit 1
    ) r
  ), rows as (
    select * from uses
    union all
    select j.*
    from touched t join journal j on j.bucket = p_bucket and j.serial_number = t.serial_number
    where j.kind <> 'REDEMPTION' or j.original_id is not null
  ), sums as (
    select r.serial_number,
      sum(case r.serial_number when r.credit_account then r.amount_minor else -r.amount_minor end)
        as amount_minor,
      min(r.currency) as currency, max(r.currency) as other_currency
    from rows r where r.serial_number in (r.credit_account, r.debit_account)
    group by r.serial_number
  )
  select t.serial_number, v.balance_minor, v.closed, b.currency, coalesce(s.amount_minor, 0), s.currency,
    s.other_currency
  from touched t
  left join sums s on s.serial_number = t.serial_number
  left join vouchers v on v.bucket = p_bucket and v.serial_number = t.serial_number
  left join batches b on b.id = v.batch_id
$$;

-- The same for all buckets.
create function touched_vouchers(p_since uuid) returns table (
  serial_number bigint, balance_minor bigint, closed voucher_closure, batch_currency text,
  amount_minor numeric, currency text, other_currency text
)
language plpgsql stable as $$
declare
  each record;
begin
  for each in select p.bucket from bucket_positions p loop
    return query select * from touched_vouchers_of(each.bucket, p_since);
  end loop;
end $$;

-- Over shards, no function of a bucket is open to everybody (sql/citus/functions.sql).
revoke execute on function moved_ages_of, touched_vouchers_of from public;
grant execute on function moved_ages_of, touched_vouchers_of to scrip_service;

-- Returns what `book_ages` must contain at a time, in another way: all vouchers, with their present balances
-- less the movements since. A reconciliation compares the two.
create function held_ages(p_at timestamptz) returns table (
  currency text, product_id integer, issuer_id integer, basis text, at timestamptz, vouchers bigint,
  amount_minor bigint
)
language sql stable as $$
  with since as (
    select r.bucket, s.serial_number, sum(s.minor)::bigint as minor
    from book_rows r
    cross join lateral (values (r.credit_account, r.amount_minor), (r.debit_account, -r.amount_minor))
      as s (serial_number, minor)
    where r.place >= id_floor(p_at, '-1 hour') and r.booked_at >= p_at and s.serial_number > 10000000000
    group by 1, 2
  ), used as (
    select j.bucket, j.serial_number, max(j.occurred_at) as used_at
    from journal j left join book_late_rows l on l.id = j.id
    where j.kind = 'REDEMPTION' and j.original_id is null and coalesce(l.slice_at, j.occurred_at) < p_at
    group by 1, 2
  ), held as (
    select b.currency, b.product_id, b.merchant_id as issuer_id,
      v.balance_minor - coalesce(s.minor, 0) as minor,
      coalesce((
        select (array_agg(e.expired_at order by e.id))[1] from voucher_extensions e
        where e.bucket = v.bucket and e.serial_number = v.serial_number and e.extended_at >= p_at
      ), v.expires_at) as expires_at,
      greatest(v.activated_at, v.earlier_use_at, u.used_at) as used_at
    from vouchers v
    join batches b on b.id = v.batch_id
    left join since s on s.bucket = v.bucket and s.serial_number = v.serial_number
    left join used u on u.bucket = v.bucket and u.serial_number = v.serial_number
    where (v.balance_minor > 0 or s.minor <> 0) and v.balance_minor - coalesce(s.minor, 0) > 0
  )
  select h.currency, h.product_id, h.issuer_id, a.basis, date_bin('15 minutes', a.at, 'epoch'), count(*),
    sum(h.minor)::bigint
  from held h
  cross join lateral (values ('expires', h.expires_at), ('idle', h.used_at)) as a (basis, at)
  group by 1, 2, 3, 4, 5
$$;

-- Returns the column `at` of `book_ages` for a quarter of an hour: of `idle` the beginning of its day of the
-- books. Days before the first one, on which another system sold vouchers, are those of its time zone.
create function age_of(basis text, at timestamptz) returns timestamptz language sql stable as $$
  select case when basis = 'expires' then at else coalesce(
    (select max(d.starts_at) from book_days d where d.starts_at <= at),
    (
      select date_trunc('day', age_of.at, d.zone) from book_days d order by d.day limit 1
    )
  ) end
$$;

-- Returns the root of a Merkle tree (RFC 6962, section 2.1) from the hashes of its leaves, one after the
-- other. Each round joins pairs of neighbors to the level above. A last hash without a neighbor moves up.
create function merkle_root(leaves bytea) returns bytea
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  level bytea := leaves;
begin
  if length(level) = 0 then return sha256(level); end if;
  while length(level) > 32 loop
    select string_agg(
        case length(p.pair) when 64 then sha256('\x01'::bytea || p.pair) else p.pair end,
        ''::bytea order by p.at)
    into level
    from (
      select i.at, substring(level from i.at + 1 for 64) as pair
      from generate_series(0, length(level) - 1, 64) as i (at)
    ) p;
  end loop;
  return level;
end $$;

-- Seals the slices from the last sealed one up to a time, within the oldest day that is not closed. It stores
-- the proof and the sums of their rows, and the ages of the vouchers. Returns the number of rows. It locks
-- the books, so that no voucher is swept and no commission is booked meanwhile.
create function seal(p_until timestamptz) returns bigint
language plpgsql security definer set search_path = scrip, pg_temp set plan_cache_mode = force_custom_plan
as $$
#variable_conflict use_column
declare
  day book_days;
  sealed timestamptz; -- the end of the last sealed slice
  found_rows bigint;
begin
  select b.sealed_until into strict sealed from books b for update;
  select d.* into strict day from book_days d
  where not exists (select from book_closings c where c.day = d.day) order by d.day limit 1;
  sealed := coalesce(sealed, day.starts_at);
  if p_until <= sealed then return 0; end if;
  if (p_until <= day.ends_at and p_until <= sealable_until()) is not true then
    raise exception 'slices until % cannot be sealed yet', p_until;
  end if;
  insert into book_seals (starts_at, rows, root, listing)
  select r.slice_at, count(*), merkle_root(string_agg(r.leaf, ''::bytea order by r.occurred_at, r.id)),
    string_agg(uuid_send(r.id) || substring(r.leaf from 1 for 4), ''::bytea order by r.occurred_at, r.id)
  from book_rows r
  where r.place >= id_floor(sealed, '-1 hour') and r.place < id_floor(p_until, '1 hour')
    and r.booked_at >= sealed and r.booked_at < p_until
  group by r.slice_at;
  insert into book_slices (starts_at, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id,
    product_id, rows, amount_minor)
  select * from slice_movements(sealed, p_until);
  insert into book_cohorts as c (day, currency, product_id, issuer_id, expiry_policy, issue_month, kind,
    is_credit, rows, amount_minor)
  select day.day, m.* from cohort_movements(sealed, p_until, day.zone) m
  on conflict on constraint book_cohorts_pkey do update
  set rows = c.rows + excluded.rows, amount_minor = c.amount_minor + excluded.amount_minor;
  insert into book_reversals as c (day, original_day, currency, merchant_id, product_id, rows, amount_minor,
    again_minor)
  select day.day, r.* from earlier_reversals(sealed, p_until, day.starts_at) r
  on conflict on constraint book_reversals_pkey do update
  set rows = c.rows + excluded.rows, amount_minor = c.amount_minor + excluded.amount_minor,
    again_minor = c.again_minor + excluded.again_minor;
  with moved as materialized (
    select * from moved_ages(sealed, p_until)
  ), aged as (
    insert into book_ages as c (currency, product_id, issuer_id, basis, at, vouchers, amount_minor)
    select a.currency, a.product_id, a.issuer_id, a.basis, age_of(a.basis, a.at), sum(a.vouchers),
      sum(a.amount_minor)
    from moved a group by 1, 2, 3, 4, 5 having sum(a.vouchers) <> 0 or sum(a.amount_minor) <> 0
    on conflict on constraint book_ages_pkey do update
    set vouchers = c.vouchers + excluded.vouchers, amount_minor = c.amount_minor + excluded.amount_minor
  )
  update book_seals s set differing = d.serials
  from (
    select array_agg(distinct u.serial) as serials from moved m cross join unnest(m.differing) as u (serial)
  ) d
  where d.serials is not null
    and s.starts_at = (select max(l.starts_at) from book_seals l where l.starts_at < p_until);
  if p_until = day.ends_at then delete from book_ages a where a.vouchers = 0 and a.amount_minor = 0; end if;
  update books set sealed_until = p_until;
  select coalesce(sum(s.rows), 0) into found_rows from book_seals s
  where s.starts_at >= sealed and s.starts_at < p_until;
  return found_rows;
end $$;

revoke execute on function seal from public;
grant execute on function seal, sealable_until, first_unswept to scrip_service;
