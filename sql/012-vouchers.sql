-- 012: the other functions that write vouchers and the journal: changes of single vouchers by operators,
-- generation of batches, rotation of the key ring, and movements between accounts other than vouchers. The
-- service's role can write these tables only through functions.

-- Locks a voucher for a change. Returns no row until the batch of the voucher is completed.
create function lock_voucher(p_bucket integer, p_serial bigint) returns table (
  batch_id integer, balance_minor bigint, value_minor bigint, activated_at timestamptz,
  expires_at timestamptz, blocked_at timestamptz, closed voucher_closure, payer_id integer,
  wrong_pins smallint, pin_locked_until timestamptz, currency text, decimals smallint
)
language plpgsql security definer set search_path = scrip, pg_temp as $$
#variable_conflict use_column
begin
  -- On several shards: the shard cannot move before this transaction ends.
  update buckets b set position = b.position where b.bucket = p_bucket and b.position < 0;
  perform from vouchers v where v.bucket = p_bucket and v.serial_number = p_serial for update;
  return query
    select v.batch_id, v.balance_minor, v.value_minor, v.activated_at, v.expires_at, v.blocked_at, v.closed,
      v.payer_id, v.wrong_pins, nullif(v.pin_locked_until, 'infinity'), b.currency, b.decimals
    from vouchers v join batches b on b.id = v.batch_id
    where v.bucket = p_bucket and v.serial_number = p_serial and b.status = 'COMPLETED';
end $$;

-- Blocks a voucher, or unblocks it (null). A voucher that is already blocked keeps its time.
create function set_voucher_block(p_bucket integer, p_serial bigint, p_blocked_at timestamptz) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  update vouchers
  set blocked_at = case when p_blocked_at is null then null else coalesce(blocked_at, p_blocked_at) end
  where bucket = p_bucket and serial_number = p_serial;
  if not found then raise exception 'there is no voucher % in bucket %', p_serial, p_bucket; end if;
end $$;

create function reset_voucher_pin(p_bucket integer, p_serial bigint) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  update vouchers set wrong_pins = 0, pin_locked_until = null
  where bucket = p_bucket and serial_number = p_serial;
  if not found then raise exception 'there is no voucher % in bucket %', p_serial, p_bucket; end if;
end $$;

create function set_voucher_expiry(
  p_bucket integer, p_serial bigint, p_expires_at timestamptz, p_id uuid, p_now timestamptz
) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  perform check_stamp(p_now);
  insert into voucher_extensions (id, bucket, serial_number, extended_at, expired_at, expires_at)
  select p_id, v.bucket, v.serial_number, p_now, v.expires_at, p_expires_at
  from vouchers v where v.bucket = p_bucket and v.serial_number = p_serial;
  update vouchers set expires_at = p_expires_at where bucket = p_bucket and serial_number = p_serial;
  if not found then raise exception 'there is no voucher % in bucket %', p_serial, p_bucket; end if;
  insert into voucher_expiries (bucket, serial_number, due_at) values (p_bucket, p_serial, p_expires_at)
  on conflict (serial_number, bucket) do update set due_at = excluded.due_at;
end $$;

-- Locks vouchers, and returns their expired amounts that were not given back, oldest first. It runs with the
-- rights of the owner: the calling transaction may have locked the vouchers in that role, and Citus does not
-- let a second role read them in the same transaction.
create function lock_expiries(p_bucket integer, p_serials bigint[]) returns table (
  serial_number bigint, id uuid, credit_account bigint, amount_minor bigint, expired_at timestamptz
)
language plpgsql security definer set search_path = scrip, pg_temp as $$
#variable_conflict use_column
begin
  -- On several shards: the shard cannot move before this transaction ends.
  update buckets b set position = b.position where b.bucket = p_bucket and b.position < 0;
  perform from vouchers v where v.bucket = p_bucket and v.serial_number = any (p_serials)
    order by v.serial_number for update;
  return query
    select j.serial_number, j.id, j.credit_account, j.amount_minor, least(j.occurred_at, v.expires_at)
    from journal j
    join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
    where j.bucket = p_bucket and j.serial_number = any (p_serials) and j.kind = 'EXPIRY'
      and not exists (
        select from journal r
        where r.bucket = p_bucket and r.serial_number = j.serial_number and r.kind = 'REINSTATEMENT'
          and r.original_id = j.id
      )
    order by j.id;
end $$;

-- Replaces a voucher by a new one in the same bucket. The balance, payer, activation, last use and expiry
-- move to the new voucher; a block and wrong PINs do not. The new voucher's value is the balance that it took
-- over. The caller has locked the old one. Returns false, without a change, if the new code exists already.
create function replace_voucher(
  p_bucket integer, p_serial bigint, p_new_serial bigint, p_code_key uuid, p_pin_key uuid, p_sealed bytea,
  p_entry_id uuid, p_now timestamptz
) returns boolean
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  old vouchers;
  batch_currency text;
  used_at timestamptz;
begin
  perform check_stamp(p_now);
  select * into strict old from vouchers where bucket = p_bucket and serial_number = p_serial;
  select b.currency into batch_currency from batches b where b.id = old.batch_id;
  select max(u.occurred_at) into used_at from uses_of(p_bucket, array[p_serial]) u;
  insert into vouchers (bucket, serial_number, batch_id, code_key, pin_key, sealed, value_minor,
    balance_minor, activated_at, earlier_use_at, payer_id, expires_at)
  values (p_bucket, p_new_serial, old.batch_id, p_code_key, p_pin_key, p_sealed,
    case when old.activated_at is not null then old.balance_minor end, old.balance_minor, old.activated_at,
    greatest(old.earlier_use_at, used_at), old.payer_id, old.expires_at)
  on conflict do nothing;
  if not found then return false; end if;
  insert into voucher_expiries (bucket, serial_number, due_at)
  select bucket, p_new_serial, due_at from voucher_expiries
  where bucket = p_bucket and serial_number = p_serial;
  update vouchers set closed = 'REPLACED', replaced_by = p_new_serial, replaced_at = p_now, balance_minor = 0
  where bucket = p_bucket and serial_number = p_serial;
  if not found then raise exception 'there is no voucher % in bucket %', p_serial, p_bucket; end if;
  if old.balance_minor > 0 then
    insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency,
      serial_number, occurred_at)
    values (p_bucket, p_entry_id, 'REPLACEMENT', p_serial, p_new_serial, old.balance_minor, batch_currency,
      p_new_serial, p_now);
    if not found then perform expect_rows('journal', 0, 1); end if;
  end if;
  return true;
end $$;

-- Decides under the lock of the voucher whether a merchant may void its activation: within a day, if it paid
-- the value, and before any other movement. Returns `ok`, `replay` with the row that voided it, or the status
-- code of a decline.
create function decide_void(
  p_bucket integer, p_serial bigint, p_activation uuid, p_merchant integer, p_now timestamptz
) returns table (outcome text, void_id uuid, amount_minor bigint, currency text)
language plpgsql security definer set search_path = scrip, pg_temp as $$
#variable_conflict use_column
declare
  v vouchers;
  activation journal;
  is_used boolean;
begin
  -- On several shards: the shard cannot move before this transaction ends.
  update buckets k set position = k.position where k.bucket = p_bucket and k.position < 0;
  select * into v from vouchers r where r.bucket = p_bucket and r.serial_number = p_serial for update;
  select * into activation from journal r
  where r.bucket = p_bucket and r.id = p_activation and r.kind = 'ACTIVATION' and r.batch_id is null
    and r.serial_number = p_serial and r.merchant_id = p_merchant;
  select r.id into void_id from journal r
  where r.bucket = p_bucket and r.serial_number = p_serial and r.kind = 'CANCELLATION'
    and r.original_id = p_activation;
  is_used := v.last_use_id is not null or exists (
    select from journal r
    where r.bucket = p_bucket and r.serial_number = p_serial and r.id <> p_activation
      and (r.kind <> 'REDEMPTION' or r.original_id is not null)
      and p_serial in (r.debit_account, r.credit_account)
  );
  outcome := case
    when activation.id is null then '60'
    when void_id is not null then 'replay'
    else coalesce(
      decline_after_pin(
        closed => v.closed is not null,
        blocked => v.blocked_at is not null,
        expired => v.expires_at <= p_now,
        already_active => activation.occurred_at < p_now - interval '24 hours',
        other_issuer => v.payer_id <> p_merchant,
        spent => is_used),
      'ok')
  end;
  amount_minor := activation.amount_minor;
  currency := activation.currency;
  return next;
end $$;

-- Creates vouchers of a batch and, if they have a value from the start, their activations. Takes parallel
-- arrays. Returns how many it created: a voucher whose code exists is skipped. Codes rarely collide, so it
-- first tries an insert that does not skip, which costs two thirds of one that does.
create function create_vouchers(
  p_batch integer, p_buckets integer[], p_serials bigint[], p_code_keys uuid[], p_pin_keys uuid[],
  p_sealed bytea[], p_entry_ids uuid[], p_now timestamptz
) returns integer
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  b batches;
  is_active boolean;
  taken uuid[] := '{}';
  found_taken uuid[];
  made integer;
  written integer;
begin
  perform check_stamp(p_now);
  select * into strict b from batches where id = p_batch;
  is_active := b.value_minor is not null and b.activation = 'immediate';
  loop
    begin
      insert into vouchers (bucket, serial_number, batch_id, code_key, pin_key, sealed, expires_at,
        payer_id, value_minor, balance_minor, activated_at)
      select u.bucket, u.serial_number, p_batch, u.code_key, u.pin_key, u.sealed, b.expires_at,
        case when b.value_minor is not null then b.merchant_id end,
        case when is_active then b.value_minor end, case when is_active then b.value_minor else 0 end,
        case when is_active then p_now end
      from unnest(p_buckets, p_serials, p_code_keys, p_pin_keys, p_sealed)
        as u (bucket, serial_number, code_key, pin_key, sealed)
      where u.code_key <> all (taken);
      get diagnostics made = row_count;
      exit;
    exception when unique_violation then
      found_taken := array(select v.code_key from vouchers v where v.code_key = any (p_code_keys));
      if found_taken <@ taken then raise; end if;
      taken := found_taken;
    end;
  end loop;
  perform expect_rows('vouchers', made, cardinality(p_code_keys) - cardinality(taken));
  if is_active then
    insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
      key_id, serial_number, batch_id, occurred_at)
    select u.bucket, u.id, 'ACTIVATION', reserve_of(b.id), u.serial_number, b.value_minor, b.currency,
      b.merchant_id, b.key_id, u.serial_number, p_batch, p_now
    from unnest(p_buckets, p_serials, p_code_keys, p_entry_ids) as u (bucket, serial_number, code_key, id)
    where u.code_key <> all (taken);
    get diagnostics written = row_count;
    perform expect_rows('journal', written, made);
  end if;
  return made;
end $$;

-- Takes back vouchers of a canceled batch in one bucket, after a serial number: as many as there are p_ids,
-- the ids of the journal rows. Each is closed, and its balance goes back to the reserve. The merchant's float
-- was repaid from the reserve earlier. Returns the last serial number; null if no voucher is left.
create function void_vouchers(
  p_bucket integer, p_batch integer, p_after bigint, p_ids uuid[], p_now timestamptz
) returns bigint
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  b batches;
  serials bigint[];
  filled integer;
  written integer;
begin
  update buckets k set position = k.position where k.bucket = p_bucket and k.position < 0;
  perform check_stamp(p_now);
  select * into strict b from batches where id = p_batch and status = 'CANCELED';
  select array_agg(d.serial_number), count(*) filter (where d.balance_minor > 0) into serials, filled
  from (
    select v.serial_number, v.balance_minor from vouchers v
    where v.bucket = p_bucket and v.batch_id = p_batch and v.serial_number > p_after and v.closed is null
    order by v.serial_number limit cardinality(p_ids) for update
  ) d;
  if serials is null then return null; end if;
  insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, batch_id, occurred_at)
  select v.bucket, u.id, 'VOID', v.serial_number, reserve_of(b.id), v.balance_minor, b.currency,
    b.merchant_id, v.serial_number, p_batch, p_now
  from unnest(serials, p_ids) as u (serial_number, id)
  join vouchers v on v.bucket = p_bucket and v.serial_number = u.serial_number
  where v.balance_minor > 0;
  get diagnostics written = row_count;
  perform expect_rows('journal', written, filled);
  update vouchers set closed = 'CANCELED', balance_minor = 0
  where bucket = p_bucket and serial_number = any (serials);
  get diagnostics written = row_count;
  perform expect_rows('vouchers', written, cardinality(serials));
  return serials[cardinality(serials)];
end $$;

-- Seals vouchers of one bucket under another key and replaces all three fields at once. A voucher that was
-- sealed again since it was read stays unchanged.
create function reseal_vouchers(
  p_bucket integer, p_serials bigint[], p_before bytea[], p_sealed bytea[], p_code_keys uuid[],
  p_pin_keys uuid[]
) returns integer
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  resealed integer;
begin
  update buckets k set position = k.position where k.bucket = p_bucket and k.position < 0;
  perform from vouchers where bucket = p_bucket and serial_number = any (p_serials)
    order by serial_number for update;
  update vouchers v set sealed = u.sealed, code_key = u.code_key, pin_key = u.pin_key
  from unnest(p_serials, p_before, p_sealed, p_code_keys, p_pin_keys)
    as u (serial_number, before, sealed, code_key, pin_key)
  where v.bucket = p_bucket and v.serial_number = any (p_serials) and v.serial_number = u.serial_number
    and v.sealed = u.before;
  get diagnostics resealed = row_count;
  return resealed;
end $$;

-- Books a movement of a float whose balance the caller changes. The kinds below say which accounts are
-- allowed.
create function post(
  p_id uuid, p_kind entry_kind, p_debit bigint, p_credit bigint, p_amount bigint, p_merchant integer,
  p_reference text, p_now timestamptz
) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  d accounts;
  c accounts;
  -- A constant: Citus would look the function up on a worker, which does not have it.
  at_bucket constant integer := bucket_of(p_merchant);
begin
  perform check_stamp(p_now);
  select * into d from accounts where id = p_debit;
  select * into c from accounts where id = p_credit;
  if (p_kind::text, d.kind::text, c.kind::text) not in (
    ('TOP_UP', 'FUNDING', 'FLOAT'), ('HOLD', 'FLOAT', 'TRANSIT'), ('HOLD_RELEASE', 'TRANSIT', 'FLOAT')
  ) is not false then
    raise exception 'no % goes from % to %', p_kind, d.kind, c.kind;
  end if;
  insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    reference, occurred_at)
  values (at_bucket, p_id, p_kind, p_debit, p_credit, p_amount, d.currency, p_merchant, p_reference, p_now);
  if not found then perform expect_rows('journal', 0, 1); end if;
end $$;

-- Returns the keys in use, oldest first, and keeps them in use until the transaction ends. A rotation takes
-- the same lock exclusively. Locks are granted in the order of the requests, so constant sealing does not
-- delay a rotation. A function ensures that the keys are read after the lock was granted.
create function hold_key_ring() returns table (key_id text, check_value bytea)
language plpgsql security definer set search_path = scrip, pg_temp as $$
#variable_conflict use_column
begin
  perform pg_advisory_xact_lock_shared(7311990003);
  return query
    select k.key_id, k.check_value from keyring_keys k
    where k.activation is not null and k.retired_at is null order by k.activation;
end $$;

revoke execute on function hold_key_ring, lock_voucher, set_voucher_block, reset_voucher_pin,
  set_voucher_expiry, lock_expiries, replace_voucher, decide_void, create_vouchers, void_vouchers,
  reseal_vouchers, post from public;
grant execute on function hold_key_ring, lock_voucher, set_voucher_block, reset_voucher_pin,
  set_voucher_expiry, lock_expiries, replace_voucher, decide_void, create_vouchers, void_vouchers,
  reseal_vouchers, post to scrip_service;
