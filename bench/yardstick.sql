-- The yardstick: what one redemption costs when it is one call of one stored function. It decides and books the same as the
-- service, on the same tables and indexes, and even finds its voucher more cheaply, by the serial number.
create schema if not exists bench;
create or replace function bench.redeem(of_merchant int, of_serial bigint, of_reference text, amount bigint) returns text
language plpgsql set search_path = scrip as $$
declare
  v record;
  settlement bigint;
  prior record;
begin
  select j.id, j.serial_number, j.amount_minor into prior from journal j
  where j.merchant_id = of_merchant and j.operation = 'redeem'
    and (coalesce(j.reference, j.id::text) collate "C") = of_reference;
  if found then
    if prior.serial_number <> of_serial or prior.amount_minor <> amount then return '94'; end if;
    return prior.id::text;
  end if;
  select c.*, b.currency, b.scope, b.merchant_id as issuer into v
  from vouchers c join batches b on b.id = c.batch_id and b.status = 'COMPLETED'
  where c.serial_number = of_serial for update of c;
  if not found then return '14'; end if;
  if v.pin_locked_until > now() then return '75'; end if;
  if v.closed is not null then return '44'; end if;
  if v.blocked_at is not null then return '43'; end if;
  if v.expires_at <= now() then return '54'; end if;
  if v.activated_at is null then return '40'; end if;
  if v.scope = 'issuer' and v.issuer <> of_merchant then return '47'; end if;
  if v.balance_minor < amount then return '51'; end if;
  select a.id into settlement from accounts a
  where coalesce(a.merchant_id, 0) = of_merchant and a.kind = 'SETTLEMENT' and a.currency = v.currency;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number,
    operation, reference, occurred_at)
  values (gen_random_uuid(), 'REDEMPTION', of_serial, settlement, amount, v.currency, of_merchant, of_serial,
    'redeem', of_reference, now());
  update vouchers set balance_minor = balance_minor - amount, version = version + 1 where serial_number = of_serial;
  return '00';
end $$;
-- Redemptions that were made before: of one cent each, spread over the vouchers from a serial number on.
create or replace function bench.redeem_many(of_merchant int, first_serial bigint, vouchers int, prefix text, count int) returns void
language sql set search_path = scrip as $$
  insert into accounts (kind, merchant_id, currency, decimals) values ('SETTLEMENT', of_merchant, 'USD', 2)
  on conflict do nothing;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number,
    operation, reference, occurred_at)
  select gen_random_uuid(), 'REDEMPTION', first_serial + n % vouchers, a.id, 1, 'USD', of_merchant,
    first_serial + n % vouchers, 'redeem', prefix || '-' || n, now()
  from generate_series(0, count - 1) n, accounts a
  where a.merchant_id = of_merchant and a.kind = 'SETTLEMENT' and a.currency = 'USD';
  update vouchers v set balance_minor = balance_minor - t.count, version = version + 1
  from (select first_serial + n % vouchers as serial_number, count(*) as count from generate_series(0, count - 1) n group by 1) t
  where v.serial_number = t.serial_number;
$$;
-- Vouchers with so many journal rows each (their activation, and redemptions), for the figures of growth. Their seals do not
-- open: what needs the code of a voucher draws from others.
create or replace function bench.fill(first int, last int, of_pin text, entries int) returns void
language plpgsql set search_path = scrip, bench as $$
declare
  k record;
  settlement bigint;
  reserve bigint;
begin
  select * into k from bench.fill_keys;
  select a.id into settlement from accounts a where a.merchant_id = k.merchant_id and a.kind = 'SETTLEMENT' and a.currency = 'USD';
  select b.reserve_account into reserve from batches b where b.id = k.batch_id;
  create temp table if not exists filled (serial_number bigint, code text) on commit delete rows;
  insert into filled select nextval('voucher_serials'), (900000000000 + n)::text from generate_series(first, last) n;
  insert into vouchers (serial_number, batch_id, code_key, pin_key, sealed, value_minor, balance_minor, activated_at, expires_at, version)
  select serial_number, k.batch_id,
    encode(substr(hmac(code::bytea, k.lookup, 'sha256'), 1, 16), 'hex')::uuid,
    encode(substr(hmac((code || ':' || of_pin)::bytea, k.pin, 'sha256'), 1, 16), 'hex')::uuid,
    decode(repeat('00', 54), 'hex'), 100000, 100000 - (entries - 1), now(), now() + interval '1 year', entries - 1
  from filled order by serial_number;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, batch_id, occurred_at)
  select uuidv7(), 'ACTIVATION', reserve, serial_number, 100000, 'USD', k.merchant_id, serial_number, k.batch_id, now() from filled;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, operation, reference, occurred_at)
  select uuidv7(), 'REDEMPTION', serial_number, settlement, 1, 'USD', k.merchant_id, serial_number, 'redeem',
    'fill-' || code || '-' || n, now()
  from generate_series(2, entries) n, filled;
end $$;
