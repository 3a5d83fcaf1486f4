-- A business of some years, for the lists of the operator: merchants, batches, vouchers, journal and claims
-- spread over the twelve months before now, and what people did. Made by statements over whole ranges.
create table if not exists bench.merchants (place integer primary key, id integer, settlement bigint);
create table if not exists bench.batches (place integer primary key, id integer, merchant_id integer);

-- A number between 0 and 1 that depends only on n.
create or replace function bench.spread(n bigint, salt integer) returns float8
language sql immutable parallel safe as $$
  select (hashint8extended(n, salt) & 1048575) / 1048576::float8
$$;

create or replace function bench.fill_desk_merchants(p_merchants integer) returns void
language sql set search_path = scrip, bench as $$
  with made as (
    insert into scrip.merchants (name, default_product_id, created_at)
    select
      (array['Corner', 'Harbor', 'Garden', 'Station', 'Market', 'River', 'Castle', 'Sunny', 'Old Town'])
        [1 + (n * 7) % 9]
      || ' '
      || (array['Books', 'Bakery', 'Flowers', 'Coffee', 'Bikes', 'Toys', 'Wine'])[1 + (n * 5) % 7]
      || ' ' || n,
      1, now()
    from generate_series(1, p_merchants) n
    returning id
  ), settled as (
    insert into accounts (kind, merchant_id, currency, decimals)
    select k.kind, m.id, 'USD', 2
    from made m cross join (values ('SETTLEMENT'::account_kind), ('FLOAT')) k (kind)
    returning id, merchant_id, kind
  ), floats as (
    insert into floats (account_id, merchant_id, currency, decimals, balance_minor, topped_up_minor)
    select id, merchant_id, 'USD', 2, 1000 + (merchant_id * 7919) % 1000000, 1000000
    from settled where kind = 'FLOAT'
  )
  insert into bench.merchants
  select row_number() over (order by merchant_id) - 1, merchant_id, id from settled where kind = 'SETTLEMENT'
$$;

-- Few merchants have most of the batches.
create or replace function bench.fill_desk_batches(p_batches integer, p_vouchers integer) returns void
language sql set search_path = scrip, bench as $$
  with made as (
    insert into scrip.batches (transaction_id, merchant_id, reference, product_id, quantity, produced,
      value_minor, expires_at, currency, decimals, activation, scope, status, accepted_at, progressed_at,
      ended_at)
    select gen_random_uuid(), m.id, 'desk ' || n, p.id, p_vouchers / p_batches, p_vouchers / p_batches,
      100000, now() + interval '1 year', 'USD', 2, 'immediate', 'network', 'COMPLETED', t.at, t.at, t.at
    from generate_series(0, p_batches - 1) n
    join (select count(*) as count from bench.merchants) c on true
    join bench.merchants m on m.place = floor(c.count * bench.spread(n, 1) ^ 3)::integer
    cross join lateral (select now() - interval '360 days' * (1 - n::float8 / p_batches) as at) t
    join products p on p.id = 1
    returning id, merchant_id
  )
  insert into bench.batches select row_number() over (order by id) - 1, id, merchant_id from made
$$;

-- Vouchers from one number to another. Of two hundred in a row one is blocked, one expired, one replaced,
-- one without money and one without a value; the others carry money.
create or replace function bench.fill_desk(
  p_first integer, p_all integer, p_serials bigint[], p_code_keys uuid[], p_pin_keys uuid[], p_sealed bytea[]
) returns void
language plpgsql set search_path = scrip, bench as $$
declare
  kinds bigint;
begin
  select count(*) into kinds from bench.merchants;
  create temp table if not exists made (n integer, serial bigint, batch_id integer, issuer integer,
    born timestamptz, sold boolean) on commit delete rows;
  insert into made
  select n.n, p_serials[n.n - p_first + 1], b.id, b.merchant_id,
    now() - interval '360 days' * (1 - n.n::float8 / p_all), n.n % 200 <> 5
  from generate_series(p_first, p_first + cardinality(p_serials) - 1) n
  join bench.batches b on b.place = n.n::bigint * (select count(*) from bench.batches) / p_all;
  -- Four redemptions, and every other voucher's last one is reversed.
  create temp table if not exists spent (id uuid, serial bigint, reference text, at timestamptz,
    merchant_id integer, settlement bigint, reversal uuid) on commit delete rows;
  insert into spent
  select uuidv7(t.at - now()), serial, 'desk-' || n || '-' || i, t.at, m.id, m.settlement,
    case when i = 4 and n % 2 = 1 then uuidv7(t.at + interval '1 minute' - now()) end
  from made cross join generate_series(1, 4) i
  cross join lateral (
    select born + (now() - born) * bench.spread(n::bigint * 8 + i, 2) * 0.999 as at
  ) t
  join bench.merchants m on m.place = floor(kinds * bench.spread(n::bigint * 8 + i, 3) ^ 3)::integer
  where sold;
  insert into scrip.vouchers (serial_number, batch_id, code_key, pin_key, sealed, value_minor, balance_minor,
    last_use_id, activated_at, expires_at, payer_id, blocked_at, closed)
  select serial, batch_id, u.code_key, u.pin_key, u.sealed,
    case when sold then 100000 end,
    case when not sold or n % 200 in (3, 4) then 0 else 100000 - 4 + n % 2 end,
    used.id, case when sold then born end,
    case when n % 200 = 2 then born + interval '1 second' else now() + interval '1 year' end, issuer,
    case when n % 200 = 1 then now() end,
    case when n % 200 = 3 then 'REPLACED'::voucher_closure end
  from unnest(p_serials, p_code_keys, p_pin_keys, p_sealed) with ordinality
    as u (serial, code_key, pin_key, sealed, ord)
  join made using (serial)
  left join (select distinct on (serial) serial, id from spent order by serial, at desc) used using (serial)
  order by serial;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, batch_id, occurred_at)
  select uuidv7(born - now()), 'ACTIVATION', reserve_of(batch_id), serial, 100000, 'USD', issuer, serial,
    batch_id, born
  from made where sold;
  insert into claims (id, serial_number, merchant_id, operation, reference, fingerprint)
  select id, serial, merchant_id, 'redeem', reference, '100' from spent;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, reference, previous_use_id, occurred_at)
  select id, 'REDEMPTION', serial, settlement, 1, 'USD', merchant_id, serial, reference,
    lag(id) over (partition by serial order by at), at
  from spent;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, original_id, occurred_at)
  select reversal, 'REDEMPTION_REVERSAL', settlement, serial, 1, 'USD', merchant_id, serial, id,
    at + interval '1 minute'
  from spent where reversal is not null;
  insert into redemption_updates (original_id, reversal_id, new_minor, updated_at)
  select id, reversal, 0, at + interval '1 minute' from spent where reversal is not null;
end $$;
