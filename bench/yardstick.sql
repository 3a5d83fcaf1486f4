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
