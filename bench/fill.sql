-- Many vouchers at once, for benchmarks on a large database.

-- Vouchers of the merchant's last batch with a value. Their journal rows, an activation and redemptions,
-- spread over the time since `p_since`.
create or replace function bench.fill(
  p_first int, p_entries int, p_merchant int, p_serials bigint[], p_code_keys uuid[], p_pin_keys uuid[],
  p_sealed bytea[], p_since timestamptz
) returns void
language plpgsql set search_path = scrip, bench as $$
declare
  filled_batch int;
  settlement bigint;
begin
  select max(id) into filled_batch from batches where merchant_id = p_merchant and value_minor is not null;
  select a.id into settlement from accounts a
  where a.merchant_id = p_merchant and a.kind = 'SETTLEMENT' and a.currency = 'USD';
  create temp table if not exists filled (serial bigint, born timestamptz) on commit delete rows;
  insert into filled
  select serial,
    now() - (now() - p_since) * (1 - (p_first + place - 1)::float8 / greatest(p_first + place, 10000000))
  from unnest(p_serials) with ordinality u (serial, place);
  create temp table if not exists spent (id uuid, serial bigint, reference text, at timestamptz)
    on commit delete rows;
  insert into spent
  select bench.id_at(born + (now() - born) * i / (p_entries + 1)), serial, gen_random_uuid(),
    born + (now() - born) * i / (p_entries + 1)
  from generate_series(2, p_entries) i, filled;
  insert into vouchers (serial_number, batch_id, code_key, pin_key, sealed, value_minor, balance_minor,
    last_use_id, activated_at, expires_at, payer_id)
  select serial, filled_batch, u.code_key, u.pin_key, u.sealed, 100000, 100000 - (p_entries - 1),
    used.id, born,
    now() + interval '1 year', p_merchant
  from unnest(p_serials, p_code_keys, p_pin_keys, p_sealed) u (serial, code_key, pin_key, sealed)
  join filled using (serial)
  left join (select distinct on (serial) serial, id from spent order by serial, at desc) used using (serial)
  order by serial;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, batch_id, occurred_at)
  select bench.id_at(born), 'ACTIVATION', reserve_of(filled_batch), serial, 100000, 'USD', p_merchant, serial,
    filled_batch, born
  from filled;
  insert into claims (id, serial_number, merchant_id, operation, reference, fingerprint)
  select id, serial, p_merchant, 'redeem', reference, '100' from spent;
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, reference, previous_use_id, occurred_at)
  select id, 'REDEMPTION', serial, settlement, 1, 'USD', p_merchant, serial, reference,
    lag(id) over (partition by serial order by at), at
  from spent;
end $$;

-- Indexes of the tables that are filled are made at the end, which is many times faster.
create table if not exists bench.dropped (place serial, statement text);
create or replace function bench.drop_indexes() returns void
language plpgsql set search_path = scrip, bench as $$
declare
  each record;
begin
  for each in
    select c.conrelid::regclass as owner, c.conname, pg_get_constraintdef(c.oid) as definition
    from pg_constraint c
    where c.conrelid in
        ('journal'::regclass, 'claims'::regclass, 'redemption_updates'::regclass, 'vouchers'::regclass)
      and c.contype in ('p', 'u')
  loop
    insert into bench.dropped (statement)
    values (format('alter table scrip.%s add constraint %I %s', each.owner, each.conname, each.definition));
    execute format('alter table scrip.%s drop constraint %I', each.owner, each.conname);
  end loop;
  for each in
    select i.indexrelid::regclass as name, pg_get_indexdef(i.indexrelid) as definition
    from pg_index i
    where i.indrelid in ('journal'::regclass, 'claims'::regclass, 'vouchers'::regclass)
  loop
    insert into bench.dropped (statement) values (each.definition);
    execute format('drop index scrip.%s', each.name);
  end loop;
end $$;
