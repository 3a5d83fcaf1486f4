-- Redemptions spread evenly over a day, each reversed a second later, so that balances do not change.
create function bench.fill_day(p_day timestamptz, p_rows integer, p_merchant integer) returns void
language sql set search_path = scrip, pg_temp as $$
  with sold as (
    select serial_number, row_number() over (order by serial_number) - 1 as place
    from vouchers where activated_at is not null
  ), size as (
    select count(*) as vouchers from sold
  ), paid as (
    select n, p_day + n * (interval '86000 seconds' / (p_rows / 2)) as at, md5(n::text) as noise
    from generate_series(0, p_rows / 2 - 1) as n
  ), named as (
    select p.*, s.serial_number,
      (left(id_floor(p.at)::text, 13) || '-7' || substr(noise, 1, 3) || '-8' || substr(noise, 4, 3)
        || '-' || substr(noise, 7, 12))::uuid as id
    from paid p cross join size join sold s on s.place = p.n % size.vouchers
  ), account as (
    select id from accounts where kind = 'SETTLEMENT' and merchant_id = p_merchant and currency = 'USD'
  ), used as (
    -- No row is older than the activation of its voucher.
    update vouchers v set last_use_id = l.id, activated_at = least(v.activated_at, p_day - interval '1 day')
    from (select distinct on (serial_number) serial_number, id from named order by serial_number, at desc) l
    where v.serial_number = l.serial_number
  )
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, original_id, previous_use_id, occurred_at)
  select n.id, 'REDEMPTION'::entry_kind, n.serial_number, a.id, 100, 'USD', p_merchant, n.serial_number,
    null::uuid, coalesce(lag(n.id) over (partition by n.serial_number order by n.at), v.last_use_id), n.at
  from named n join vouchers v on v.serial_number = n.serial_number cross join account a
  union all
  select id_at(gen_random_uuid(), n.at + interval '1 second'), 'REDEMPTION_REVERSAL', a.id, n.serial_number,
    100, 'USD', p_merchant, n.serial_number, n.id, null, n.at + interval '1 second'
  from named n cross join account a
$$;

-- The balances and the ages of vouchers when a day begins, as the close of the day before leaves them behind.
create function bench.open_books(p_day timestamptz) returns void
language sql set search_path = scrip, pg_temp as $$
  insert into book_balances (day, currency, account_kind, merchant_id, issuer_id, product_id, balance_minor)
  select (p_day - interval '1 day')::date, m.currency, e.account_kind, e.owner_id, e.by_issuer, e.by_product,
    sum(e.credit_minor - e.debit_minor)
  from movements('epoch', p_day) m
  cross join lateral effects(
    m.debit_kind, m.credit_kind, m.merchant_id, m.issuer_id, m.product_id, m.amount_minor) e
  group by 1, 2, 3, 4, 5, 6;
  insert into book_ages (currency, product_id, issuer_id, basis, at, vouchers, amount_minor)
  select currency, product_id, issuer_id, basis, age_of(basis, at), sum(vouchers), sum(amount_minor)
  from held_ages(p_day) group by 1, 2, 3, 4, 5;
  insert into book_closings (day, starts_at, ends_at, zone, rows, root, totals, version, closed_at,
    previous_hash, hash)
  select (p_day - interval '1 day')::date, p_day - interval '1 day', p_day, 'UTC', 0, '', '{}', 1, now(),
    sha256(''), sha256('1')
$$;

-- Aggregates of earlier days, as a network with this number of merchants leaves them behind.
create function bench.fill_year(p_day date, p_days integer, p_merchants integer) returns void
language sql set search_path = scrip, pg_temp as $$
  insert into book_closings (day, starts_at, ends_at, zone, rows, root, totals, version, closed_at,
    previous_hash, hash)
  select d::date, d at time zone 'UTC', (d + interval '1 day') at time zone 'UTC', 'UTC', 0, '', '{}', 1,
    now(), sha256(convert_to((d - interval '1 day')::text, 'UTF8')), sha256(convert_to(d::text, 'UTF8'))
  from generate_series(p_day - p_days, p_day - 1, interval '1 day') d
  on conflict do nothing;
  insert into book_days (day, starts_at, ends_at, zone)
  select day, starts_at, ends_at, zone from book_closings where day < p_day on conflict do nothing;
  insert into book_movements (day, currency, kind, debit_kind, credit_kind, merchant_id, issuer_id,
    product_id, rows, amount_minor)
  select c.day, 'USD', k.kind, k.debit, k.credit, m, m, 1 + m % 3, 1000, 100000
  from book_closings c
  cross join generate_series(1, p_merchants) m
  cross join (values
    ('ACTIVATION'::entry_kind, 'RESERVE', 'VOUCHER'), ('REDEMPTION', 'VOUCHER', 'SETTLEMENT'),
    ('REDEMPTION_REVERSAL', 'SETTLEMENT', 'VOUCHER'), ('FEE', 'SETTLEMENT', 'FEES'),
    ('TOP_UP', 'FUNDING', 'FLOAT'), ('RESERVATION', 'FLOAT', 'RESERVE')) k (kind, debit, credit)
  where c.day < p_day;
  insert into book_balances (day, currency, account_kind, merchant_id, issuer_id, product_id, balance_minor)
  select c.day, 'USD', k.kind, case when k.kind = 'VOUCHER' then 0 else m end,
    case when k.kind = 'VOUCHER' then m else 0 end, case when k.kind = 'VOUCHER' then 1 + m % 3 else 0 end,
    100
  from book_closings c
  cross join generate_series(1, p_merchants) m
  cross join (values ('VOUCHER'), ('FLOAT'), ('SETTLEMENT')) k (kind)
  where c.day < p_day on conflict do nothing;
  insert into book_reversals (day, original_day, currency, merchant_id, product_id, rows, amount_minor,
    again_minor)
  select c.day, c.day - back, 'USD', m, 1 + m % 3, 10, 1000, 0
  from book_closings c
  cross join generate_series(1, p_merchants) m cross join generate_series(1, 5) back
  where c.day < p_day
$$;
