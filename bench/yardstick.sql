-- The yardstick: one redemption as one call of one stored function. It decides and books the same as the
-- service, on the same tables and indexes, and finds its voucher more cheaply, by its number.
create schema if not exists bench;
create or replace function bench.redeem(
  of_merchant int, of_number bigint, of_reference text, amount bigint
) returns text
language plpgsql set search_path = scrip as $$
declare
  v record;
  settlement bigint;
  prior record;
  new_id uuid := uuidv7();
begin
  select c.id, c.serial_number, c.fingerprint into prior from claims c
  where c.merchant_id = of_merchant and c.operation = 'redeem' and c.reference = of_reference;
  if found then
    if prior.serial_number / 64 <> of_number or prior.fingerprint <> (amount * 100)::text then
      return '94';
    end if;
    return prior.id::text;
  end if;
  select c.*, b.currency, b.scope, b.merchant_id as issuer into v
  from vouchers c join batches b on b.id = c.batch_id and b.status = 'COMPLETED'
  where c.serial_number >= of_number * 64 and c.serial_number < (of_number + 1) * 64 for update of c;
  if not found then return '14'; end if;
  if v.pin_locked_until > now() then return '75'; end if;
  if v.closed is not null then return '44'; end if;
  if v.blocked_at is not null then return '43'; end if;
  if v.expires_at <= now() then return '54'; end if;
  if v.activated_at is null then return '40'; end if;
  if v.scope = 'issuer' and v.issuer <> of_merchant then return '47'; end if;
  if v.balance_minor < amount then return '51'; end if;
  select a.id into settlement from accounts a
  where a.merchant_id = of_merchant and a.kind = 'SETTLEMENT' and a.currency = v.currency;
  insert into claims (id, serial_number, merchant_id, operation, reference, fingerprint)
  values (new_id, v.serial_number, of_merchant, 'redeem', of_reference, (amount * 100)::text);
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, key_id,
    serial_number, reference, previous_use_id, occurred_at)
  values (new_id, 'REDEMPTION', v.serial_number, settlement, amount, v.currency, of_merchant,
    'key_bDxTqHDikohFuaAj', v.serial_number, of_reference, v.last_use_id, now());
  update vouchers set balance_minor = balance_minor - amount, last_use_id = new_id
  where serial_number = v.serial_number;
  return '00';
end $$;
-- Redemptions that were made before: of one cent each, spread over some vouchers.
create or replace function bench.redeem_many(
  of_merchant int, serials bigint[], prefix text, count int
) returns void
language plpgsql set search_path = scrip as $$
begin
  insert into accounts (kind, merchant_id, currency, decimals) values ('SETTLEMENT', of_merchant, 'USD', 2)
  on conflict do nothing;
  create temp table past on commit drop as
  select uuidv7() as id, serials[1 + n % cardinality(serials)] as serial,
    prefix || '-' || n as reference
  from generate_series(0, count - 1) n;
  insert into claims (id, serial_number, merchant_id, operation, reference, fingerprint)
  select id, serial, of_merchant, 'redeem', reference, '100' from past;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, reference, previous_use_id, occurred_at)
  select p.id, 'REDEMPTION', p.serial, a.id, 1, 'USD', of_merchant, p.serial, p.reference,
    coalesce(lag(p.id) over (partition by p.serial order by p.id), v.last_use_id), now()
  from past p join vouchers v on v.serial_number = p.serial cross join accounts a
  where a.merchant_id = of_merchant and a.kind = 'SETTLEMENT' and a.currency = 'USD';
  update vouchers v set balance_minor = balance_minor - t.count, last_use_id = t.id
  from (select serial, count(*) as count, max(id::text)::uuid as id from past group by 1) t
  where v.serial_number = t.serial;
end $$;
-- A UUID of version 7 of a time.
create or replace function bench.id_at(at timestamptz) returns uuid language sql volatile as $$
  select (left(scrip.id_floor(at)::text, 14) || '7' || substr(gen_random_uuid()::text, 16))::uuid
$$;
