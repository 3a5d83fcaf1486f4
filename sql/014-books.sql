-- 014: the books: the days, and what a closed day leaves behind (docs/explanation/books.md).
-- New tables only: nothing is locked; milliseconds.

-- The installation's books: one row.
create table books (
  only_row boolean primary key default true constraint books_is_one_row check (only_row),
  zone text not null default 'UTC', -- of the days that have not begun
  grace_minutes integer not null default 15
    constraint books_grace_bounds check (grace_minutes between 5 and 60),
  sealed_until timestamptz, -- the slices before it are sealed: nothing is stamped into them; null: none yet
  marked_at timestamptz, -- when the marks of `book_marks` were made
  marked_before timestamptz, -- the marks before those, all of which have passed
  passed_at timestamptz -- nothing that was stamped before it is under way
);
insert into books default values;

-- The days, one after the other without a gap; a row is made when its day begins. 23, 24 or 25 hours, or more
-- where the zone changed.
create table book_days (
  day date primary key,
  starts_at timestamptz not null constraint book_days_starts_once unique,
  ends_at timestamptz not null,
  zone text not null,
  constraint book_days_have_length check (ends_at > starts_at)
);

-- The movements of a sealed slice: 15 minutes of UTC. 0 stands for none.
create table book_slices (
  starts_at timestamptz not null,
  currency text not null,
  kind entry_kind not null,
  debit_kind text not null, -- of the account, VOUCHER included
  credit_kind text not null,
  merchant_id integer not null,
  issuer_id integer not null, -- the merchant that generated the voucher
  product_id integer not null,
  rows bigint not null, amount_minor bigint not null,
  constraint book_slices_pkey
    primary key (starts_at, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id)
);

-- What floats paid for: their forecasts read four weeks of it.
create index book_slices_of_floats on book_slices (merchant_id, starts_at)
  where debit_kind = 'FLOAT' or credit_kind = 'FLOAT';

-- What proves the rows of a slice; a slice without rows has none. `listing` names each row, in order: its id
-- (16 bytes) and the first four bytes of its digest, so that one that was altered, removed or added can be
-- named.
create table book_seals (
  starts_at timestamptz primary key,
  rows bigint not null constraint book_seals_has_rows check (rows > 0),
  hash bytea not null, -- SHA-256 over the digests of the rows, in the order of time and id
  listing bytea not null
);
alter table book_seals alter column listing set storage external; -- random bytes do not compress

-- The same as book_slices for closed days.
create table book_movements (
  day date not null,
  currency text not null,
  kind entry_kind not null,
  debit_kind text not null, credit_kind text not null,
  merchant_id integer not null,
  issuer_id integer not null,
  product_id integer not null,
  rows bigint not null, amount_minor bigint not null,
  constraint book_movements_pkey
    primary key (day, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id, product_id)
);

-- Balances at the end of each closed day, credit minus debit: of floats and settlement accounts by merchant,
-- of vouchers and reserves by issuer and product, of all others by currency.
create table book_balances (
  day date not null,
  currency text not null,
  account_kind text not null,
  merchant_id integer not null,
  issuer_id integer not null,
  product_id integer not null,
  balance_minor bigint not null,
  constraint book_balances_pkey primary key (day, account_kind, currency, merchant_id, issuer_id, product_id)
);

-- Movements of vouchers on closed days by the month in which the voucher was activated.
create table book_cohorts (
  day date not null,
  currency text not null,
  product_id integer not null,
  issuer_id integer not null,
  issue_month date not null,
  kind entry_kind not null,
  is_credit boolean not null, -- towards the voucher
  rows bigint not null, amount_minor bigint not null,
  constraint book_cohorts_pkey
    primary key (day, currency, product_id, issuer_id, issue_month, kind, is_credit)
);

-- Reversals on closed days of redemptions of earlier days, by the day of the redemption: a settlement shows
-- those of earlier periods by themselves.
create table book_reversals (
  day date not null,
  original_day date not null,
  currency text not null,
  merchant_id integer not null,
  product_id integer not null,
  rows bigint not null, amount_minor bigint not null,
  constraint book_reversals_pkey primary key (day, original_day, currency, merchant_id, product_id),
  constraint book_reversals_are_earlier check (original_day < day)
);

-- Vouchers with a balance at the end of a closed day: by the days until they expire, by the days since they
-- were last used, and by the calendar month in which they expire (0: that of the day; 13: that and later).
create table book_aging (
  day date not null,
  currency text not null,
  product_id integer not null,
  issuer_id integer not null,
  basis text not null constraint book_aging_basis check (basis in ('expires', 'idle', 'month')),
  lower_bound integer not null, -- of the days, or of the months
  vouchers bigint not null,
  amount_minor bigint not null,
  constraint book_aging_pkey primary key (day, currency, product_id, issuer_id, basis, lower_bound)
);

-- The closing of a day. Each holds the hash of the closing before it: one that is changed, removed or
-- inserted later is found.
create table book_closings (
  day date primary key,
  starts_at timestamptz not null,
  ends_at timestamptz not null,
  zone text not null,
  rows bigint not null,
  first_id uuid,
  last_id uuid,
  rows_hash bytea not null, -- SHA-256 over the hashes of the slices, in order
  totals text not null, -- JSON, as it was hashed
  version integer not null, -- of how all this is computed
  closed_at timestamptz not null,
  previous_hash bytea not null constraint book_closings_links_once unique,
  hash bytea not null constraint book_closings_hash_once unique
);

-- Rows that were found in a slice after it was sealed: a break, and a movement of a later slice
-- (docs/explanation/books.md).
create table book_late_rows (
  id uuid primary key,
  occurred_at timestamptz not null,
  slice_at timestamptz not null, -- the slice that it is booked in
  found_in date not null
);

-- What part of the vouchers of a product is estimated never to be redeemed. Only added to: the newest row
-- counts.
create table book_breakage_rates (
  id integer generated by default as identity primary key,
  product_id integer not null constraint book_breakage_rates_product references products (id),
  rate_ppm integer not null constraint book_breakage_rates_bounds check (rate_ppm between 0 and 1000000),
  set_by text not null,
  reason text not null,
  set_at timestamptz not null
);

-- The rows of the journal with the time at which they are booked: their own, or that of the slice which a
-- late row belongs to. An id is of the hour around the time of its row, and a late row has a place of that
-- time: a query for an interval of `booked_at` names that of `place` too, so that the primary key leads to
-- the rows. `digest` proves a row. A view, since Citus takes no function that returns rows of the journal.
create view book_rows as
select p.*, sha256(convert_to(concat(p.id, '|', p.kind, '|', p.debit_account, '|', p.credit_account, '|',
  p.amount_minor, '|', p.currency, '|', (extract(epoch from p.occurred_at) * 1000000)::bigint, '|',
  p.serial_number, '|', p.original_id, '|', p.merchant_id, '|', p.batch_id, '|', p.reference), 'UTF8'))
    as digest
from (
  select j.id as place, j.occurred_at as booked_at,
    date_bin('15 minutes', j.occurred_at, 'epoch') as slice_at, j.*
  from journal j where not exists (select from book_late_rows l where l.id = j.id)
  union all
  select id_floor(l.slice_at), l.slice_at, l.slice_at, j.*
  from book_late_rows l join journal j on j.id = l.id
) p;

-- The same, summed up as `book_slices` has it.
create function slice_movements(p_from timestamptz, p_to timestamptz) returns table (
  slice_at timestamptz, currency text, kind entry_kind, debit_kind text, credit_kind text,
  merchant_id integer, issuer_id integer, product_id integer, rows bigint, amount_minor bigint
) language sql stable as $$
  select r.slice_at, r.currency, r.kind, k.debit, k.credit, coalesce(r.merchant_id, 0),
    coalesce(b.merchant_id, 0), coalesce(b.product_id, 0), count(*), sum(r.amount_minor)::bigint
  from book_rows r
  left join accounts d on d.id = r.debit_account
  left join accounts c on c.id = r.credit_account
  left join vouchers v on r.batch_id is null and v.bucket = r.bucket and v.serial_number = r.serial_number
  left join batches b on b.id = coalesce(r.batch_id, v.batch_id)
  cross join lateral (
    select coalesce(d.kind::text, case when r.debit_account > 10000000000 then 'VOUCHER'
        when r.debit_account >= 5000000000 then 'RESERVE' else 'UNKNOWN' end) as debit,
      coalesce(c.kind::text, case when r.credit_account > 10000000000 then 'VOUCHER'
        when r.credit_account >= 5000000000 then 'RESERVE' else 'UNKNOWN' end) as credit
  ) k
  where r.place >= id_floor(p_from - interval '1 hour') and r.place < id_floor(p_to + interval '1 hour')
    and r.booked_at >= p_from and r.booked_at < p_to
  group by 1, 2, 3, 4, 5, 6, 7, 8
$$;

-- The reversals of an interval whose redemptions came before it.
create function earlier_reversals(p_from timestamptz, p_to timestamptz) returns table (
  original_day date, currency text, merchant_id integer, product_id integer, rows bigint, amount_minor bigint
) language sql stable as $$
  select (select d.day from book_days d where d.starts_at <= s.original_at order by d.starts_at desc limit 1),
    s.currency, s.merchant_id, s.product_id, sum(s.rows)::bigint, sum(s.amount_minor)::bigint
  from (
    select o.occurred_at as original_at, r.currency, r.merchant_id, b.product_id, count(*) as rows,
      sum(r.amount_minor) as amount_minor
    from book_rows r
    join journal o on o.bucket = r.bucket and o.id = r.original_id
    join vouchers v on v.bucket = r.bucket and v.serial_number = r.serial_number
    join batches b on b.id = v.batch_id
    where r.place >= id_floor(p_from - interval '1 hour') and r.place < id_floor(p_to + interval '1 hour')
      and r.booked_at >= p_from and r.booked_at < p_to
      and r.kind = 'REDEMPTION_REVERSAL' and o.occurred_at < p_from
    group by 1, 2, 3, 4
  ) s
  group by 1, 2, 3, 4
$$;

-- The movements of any interval: of the closed days in it, of the sealed slices beside them, and of the rows
-- since.
create function movements(p_from timestamptz, p_to timestamptz) returns table (
  currency text, kind entry_kind, debit_kind text, credit_kind text, merchant_id integer, issuer_id integer,
  product_id integer, rows bigint, amount_minor bigint
) language sql stable as $$
  with closed as (
    select min(c.starts_at) as starts_at, max(c.ends_at) as ends_at from book_closings c
    where c.starts_at >= p_from and c.ends_at <= p_to
  ), edge as (
    select greatest(p_from, coalesce(b.sealed_until, p_from)) as at from books b
  ), parts as (
    select m.currency, m.kind, m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.rows,
      m.amount_minor
    from book_movements m join book_closings c on c.day = m.day
    where c.starts_at >= p_from and c.ends_at <= p_to
    union all
    select s.currency, s.kind, s.debit_kind, s.credit_kind, s.merchant_id, s.issuer_id, s.product_id, s.rows,
      s.amount_minor
    from book_slices s, closed c
    where s.starts_at >= p_from and s.starts_at < p_to
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

-- What a movement does to the balances: each account kind with the merchant, or the issuer and the product,
-- by which it is kept.
create function effects(debit_kind text, credit_kind text, merchant_id integer, issuer_id integer,
  product_id integer, amount_minor bigint
) returns table (
  account_kind text, owner_id integer, by_issuer integer, by_product integer, debit_minor bigint,
  credit_minor bigint
) language sql immutable parallel safe as $$
  select s.kind, case when s.kind in ('FLOAT', 'SETTLEMENT') then merchant_id else 0 end,
    case when s.kind in ('VOUCHER', 'RESERVE') then issuer_id else 0 end,
    case when s.kind in ('VOUCHER', 'RESERVE') then product_id else 0 end, s.debit, s.credit
  from (values (debit_kind, amount_minor, 0::bigint), (credit_kind, 0::bigint, amount_minor))
    as s (kind, debit, credit)
$$;

-- The balances at an instant: those of the last day closed by then, and what has moved since.
create function balances_at(p_at timestamptz) returns table (
  currency text, account_kind text, merchant_id integer, issuer_id integer, product_id integer,
  balance_minor bigint
) language sql stable as $$
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

grant select on books, book_rows, book_days, book_slices, book_seals, book_movements, book_balances,
  book_cohorts, book_reversals, book_aging, book_closings, book_late_rows, book_breakage_rates
  to scrip_service;
grant update on books to scrip_service;
grant insert on book_days, book_slices, book_seals, book_movements, book_balances, book_cohorts,
  book_reversals, book_aging, book_closings, book_late_rows, book_breakage_rates to scrip_service;
grant usage on sequence book_breakage_rates_id_seq to scrip_service;
