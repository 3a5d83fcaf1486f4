-- 015: how the books are kept: allowed movements, bookings by the operator, and the sweep of expired
-- vouchers. The functions have the structure of redemptions (006-redeem.sql): lock, check, write. Only new
-- functions: it locks nothing and takes milliseconds.

-- Returns the balance of an account of the table `accounts`, credit minus debit: that of the last closed day,
-- plus the slices and the rows since. `book` decides on it under the lock of the account's row. This does not
-- stop an extension, which also debits BREAKAGE and UNCLAIMED. So BREAKAGE may become negative: the operator
-- pays for what it took out. UNCLAIMED may not: each expired amount is paid to a state or given back, once,
-- under the lock of its voucher.
create function account_balance(p_account bigint) returns bigint
language sql stable security definer set search_path = scrip, pg_temp as $$
  with account as (
    select id, kind::text as kind, merchant_id, currency from accounts where id = p_account
  ), closed as (
    select day, ends_at from book_closings order by day desc limit 1
  ), sealed as (
    select sealed_until from books
  )
  select (
    coalesce((
      select sum(b.balance_minor) from account a, closed c, book_balances b
      where b.day = c.day and b.account_kind = a.kind and b.currency = a.currency
        and b.merchant_id = a.merchant_id), 0)
    + coalesce((
      select sum(case when s.credit_kind = a.kind then s.amount_minor else -s.amount_minor end)
      from account a, book_slices s
      where s.currency = a.currency and a.kind in (s.credit_kind, s.debit_kind)
        and a.merchant_id in (0, s.merchant_id)
        and s.starts_at >= coalesce((select ends_at from closed), '-infinity')), 0)
    + coalesce((
      select sum(case when j.credit_account = p_account then j.amount_minor else -j.amount_minor end)
      from journal j
      where p_account in (j.credit_account, j.debit_account)
        and j.id >= id_floor(coalesce((select sealed_until from sealed), 'epoch'), '-1 hour')
        and j.occurred_at >= coalesce((select sealed_until from sealed), '-infinity')), 0)
  )::bigint
$$;

-- Books a movement between two accounts other than vouchers and reserves: lock, check, write. Returns `ok`,
-- or the reason for a decline, which changes nothing: `50`, the float does not cover it; `51`, another
-- account does not cover it; `13`, the float would exceed its maximum. p_merchant: the owner of the float or
-- settlement account; null for other accounts. p_original: the row that this one corrects. p_event: the id of
-- a new `float.low` event. p_now: the caller has checked it if it is in the past; only the close may do that.
create function book(
  p_kind entry_kind, p_id uuid, p_debit bigint, p_credit bigint, p_amount bigint, p_merchant integer,
  p_original uuid, p_reference text, p_event uuid, p_now timestamptz
) returns text
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  d accounts;
  c accounts;
  corrected bigint;
  corrected_at timestamptz;
  -- A constant: Citus would look the function up on a worker, which does not have it.
  at_bucket constant integer := bucket_of(coalesce(p_merchant, 0));
  is_closing constant boolean := p_kind in ('FEE', 'FEE_REVERSAL', 'FEE_VAT', 'FEE_VAT_REVERSAL');
begin
  -- The close books commission into the day that it closes, after the last sealed slice.
  if is_closing then
    perform from books b where p_now >= coalesce(b.sealed_until, '-infinity') for share;
    if not found then raise exception 'the slice of % is sealed', p_now; end if;
  else
    perform check_stamp(p_now);
  end if;
  perform from accounts where id in (p_debit, p_credit) order by id for update;
  select * into strict d from accounts where id = p_debit;
  select * into strict c from accounts where id = p_credit;
  -- Money reaches a float by `post`, which leaves its balance to the caller.
  if is_movement(p_kind::text, d.kind::text, c.kind::text) is not true or d.currency <> c.currency
    or c.kind = 'FLOAT'
  then
    raise exception 'no % goes from % % to % %', p_kind, d.kind, d.currency, c.kind, c.currency;
  end if;
  if nullif(greatest(d.merchant_id, c.merchant_id), 0) is distinct from p_merchant then
    raise exception 'a % between accounts of merchant % is not one of merchant %', p_kind,
      greatest(d.merchant_id, c.merchant_id), p_merchant;
  end if;
  -- What another system leaves behind is part of the first day.
  if p_kind = 'OPENING' and exists (select from book_closings) then return '58'; end if;
  -- A top-up can be corrected once, by at most its amount. A payout can be returned once, in full.
  if p_kind in ('FLOAT_CORRECTION', 'PAYOUT_RETURN') then
    select j.amount_minor, j.occurred_at into corrected, corrected_at from journal j
    where j.bucket = at_bucket and j.id = p_original and j.debit_account = p_credit
      and j.credit_account = p_debit
      and j.kind = case p_kind when 'PAYOUT_RETURN' then 'PAYOUT'::entry_kind else 'TOP_UP' end;
    if not found then return '60'; end if;
    if p_amount > corrected or p_kind = 'PAYOUT_RETURN' and p_amount <> corrected then return '13'; end if;
    -- The clock of the process that corrects it may be behind.
    perform from journal j
    where j.merchant_id = p_merchant and j.kind = p_kind and j.original_id = p_original
      and j.id >= id_floor(corrected_at, '-2 hours');
    if found then return '58'; end if;
  end if;
  if d.kind = 'FLOAT' then
    if not debit_float(p_debit, p_amount, p_event, p_now) then return '50'; end if;
  -- A payout is a fact: the bank has paid the approved amount, even if the merchant has reversed redemptions
  -- since. The settlement account is then negative, until the next redemptions.
  elsif p_kind = 'ESCHEAT' or p_kind in ('OWN_TRANSFER', 'OPENING') and d.kind not in ('FUNDING', 'SETTLEMENT')
  then
    if account_balance(p_debit) < p_amount then return '51'; end if;
  end if;
  insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    original_id, reference, occurred_at)
  values (at_bucket, case when is_closing then id_at(p_id, p_now) else p_id end, p_kind, p_debit, p_credit,
    p_amount, d.currency, p_merchant, p_original, p_reference, p_now);
  if not found then perform expect_rows('journal', 0, 1); end if;
  return 'ok';
end $$;

-- Books a movement between a voucher and an account, to the voucher (p_to_voucher) or from it: lock, check,
-- write. Returns `ok`, or the status code of the decline that takes precedence; a decline changes nothing.
create function book_voucher(
  p_kind entry_kind, p_id uuid, p_bucket integer, p_serial bigint, p_account bigint, p_to_voucher boolean,
  p_amount bigint, p_original uuid, p_reference text, p_event uuid, p_now timestamptz
) returns text
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  v vouchers;
  b batches;
  a accounts;
  is_escheated boolean := false;
  outcome text;
begin
  perform check_stamp(p_now);
  select * into v from vouchers where bucket = p_bucket and serial_number = p_serial for update;
  select * into b from batches where id = v.batch_id and status = 'COMPLETED';
  if b.id is null then return '14'; end if;
  select * into strict a from accounts where id = p_account;
  if is_movement(
      p_kind::text,
      case when p_to_voucher then a.kind::text else 'VOUCHER' end,
      case when p_to_voucher then 'VOUCHER' else a.kind::text end) is not true
    or a.currency <> b.currency
  then
    raise exception 'no % goes between a voucher in % and % in %', p_kind, b.currency, a.kind, a.currency;
  end if;
  -- Separate from the journal below: Citus plans no statement on shards and on tables of the coordinator.
  if p_kind = 'REINSTATEMENT' then
    is_escheated := exists (select from escheated_expiries e where e.expiry_id = p_original);
  end if;
  outcome := case
    when v.closed is not null then '44'
    when v.blocked_at is not null and p_kind = 'CASH_OUT' then '43'
    when v.expires_at <= p_now and p_kind in ('ADJUSTMENT', 'CASH_OUT', 'CANCELLATION') then '54'
    when v.activated_at is null then '40'
    when p_amount = 0 then '42'
    when not p_to_voucher and v.balance_minor < p_amount then '51'
    -- A cancellation takes the entire balance of the voucher.
    when p_kind = 'CANCELLATION' and v.balance_minor > p_amount then '13'
    when p_to_voucher and v.balance_minor + p_amount >= 1000000000000000 then '13'
    when p_kind = 'REINSTATEMENT' and (
      not exists (select from journal j where j.bucket = p_bucket and j.id = p_original and j.kind = 'EXPIRY'
        and j.serial_number = p_serial and j.credit_account = p_account and j.amount_minor = p_amount)
      or exists (select from journal j where j.bucket = p_bucket and j.serial_number = p_serial
        and j.kind = 'REINSTATEMENT' and j.original_id = p_original)
    ) then '94'
    -- It was paid to a state, under the lock of the voucher (src/books/escheat.ts).
    when is_escheated then '51'
  end;
  if outcome is not null then return outcome; end if;
  if p_to_voucher then perform hold_returned(array[p_serial], array[p_amount]); end if;
  if p_to_voucher and a.kind = 'FLOAT' and not debit_float(p_account, p_amount, p_event, p_now) then
    return '50';
  end if;
  if p_kind = 'CANCELLATION' then
    if a.merchant_id is distinct from v.payer_id then
      raise exception 'merchant % did not pay for voucher %', a.merchant_id, p_serial;
    end if;
    update floats set balance_minor = balance_minor + p_amount
    where account_id = p_account and balance_minor + p_amount < 1000000000000000;
    if not found then return '13'; end if;
  end if;
  insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, original_id, reference, occurred_at)
  values (p_bucket, p_id, p_kind, case when p_to_voucher then p_account else p_serial end,
    case when p_to_voucher then p_serial else p_account end, p_amount, b.currency, nullif(a.merchant_id, 0),
    p_serial, p_original, p_reference, p_now);
  if not found then perform expect_rows('journal', 0, 1); end if;
  update vouchers set
    balance_minor = balance_minor + case when p_to_voucher then p_amount else -p_amount end,
    closed = case when p_kind = 'CANCELLATION' then 'CANCELED' else closed end
  where bucket = p_bucket and serial_number = p_serial;
  if not found then raise exception 'there is no voucher % in bucket %', p_serial, p_bucket; end if;
  if p_to_voucher then
    insert into voucher_expiries (bucket, serial_number, due_at)
    select p_bucket, p_serial, greatest(v.expires_at, p_now)
    where v.expires_at <= p_now + interval '5 minutes'
    on conflict (serial_number, bucket) do update set due_at = excluded.due_at;
  end if;
  return 'ok';
end $$;

-- Returns the id of a row with a stamp in the past: it begins with that time; the rest is from a new id.
create function id_at(id uuid, at timestamptz) returns uuid language sql immutable parallel safe as $$
  select (left(scrip.id_floor(at)::text, 13) || substr(id::text, 14))::uuid
$$;

-- Takes the price of vouchers that are not active from the float of the merchant that generates them:
-- RESERVATION, into the reserve of their batch. Returns false if the float does not cover it. p_serial: the
-- only voucher; null: p_amount is that of several. p_key: the API key that asked for it, or null. The caller
-- has locked what it is about. This function and the next are only for functions of this file.
create function take_price(
  p_batch integer, p_amount bigint, p_key text, p_id uuid, p_bucket integer, p_serial bigint, p_event uuid,
  p_now timestamptz
) returns boolean
language plpgsql set search_path = scrip, pg_temp as $$
declare
  b batches;
  float_account bigint;
begin
  perform check_stamp(p_now);
  select * into strict b from batches where id = p_batch;
  select f.account_id into float_account from floats f
  where f.merchant_id = b.merchant_id and f.currency = b.currency;
  if not found or not debit_float(float_account, p_amount, p_event, p_now) then return false; end if;
  insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    key_id, serial_number, batch_id, occurred_at)
  values (p_bucket, p_id, 'RESERVATION', float_account, reserve_of(p_batch), p_amount, b.currency,
    b.merchant_id, p_key, p_serial, p_batch, p_now);
  if not found then perform expect_rows('journal', 0, 1); end if;
  return true;
end $$;

-- Returns such a price to the float: RELEASE. p_at: the stamp of the row, which the caller has checked if it
-- is in the past.
create function release_price(
  p_batch integer, p_amount bigint, p_id uuid, p_bucket integer, p_serial bigint, p_at timestamptz,
  p_now timestamptz
) returns void
language plpgsql set search_path = scrip, pg_temp as $$
declare
  b batches;
  f floats;
begin
  perform check_stamp(p_now);
  select * into strict b from batches where id = p_batch;
  update floats set balance_minor = balance_minor + p_amount
  where merchant_id = b.merchant_id and currency = b.currency returning * into f;
  if not found then raise exception 'there is no float of merchant % in %', b.merchant_id, b.currency; end if;
  insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, batch_id, occurred_at)
  values (p_bucket, p_id, 'RELEASE', reserve_of(p_batch), f.account_id, p_amount, b.currency, b.merchant_id,
    p_serial, p_batch, p_at);
  if not found then perform expect_rows('journal', 0, 1); end if;
end $$;

-- Takes the whole price of a batch that is being accepted. Returns false if the float does not cover it.
create function reserve_batch(p_batch integer, p_id uuid, p_event uuid, p_now timestamptz) returns boolean
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  b batches;
begin
  select * into strict b from batches where id = p_batch and status = 'PROCESSING';
  return take_price(
    p_batch, b.quantity * b.value_minor, b.key_id, p_id, bucket_of(b.merchant_id), null, p_event, p_now);
end $$;

-- Returns the whole price of a batch that is being canceled. The caller has locked the batch.
create function release_batch(p_batch integer, p_id uuid, p_now timestamptz) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  b batches;
begin
  select * into strict b from batches where id = p_batch and status = 'PROCESSING';
  perform release_price(
    p_batch, b.quantity * b.value_minor, p_id, bucket_of(b.merchant_id), null, p_now, p_now);
end $$;

-- Returns the price of the vouchers that the sweep of a batch found inactive, when the sweep ends. The row is
-- dated like that of an expiry. The caller has locked the batch.
create function release_lapsed(p_batch integer, p_id uuid, p_now timestamptz) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  b batches;
  stamp timestamptz;
begin
  select * into strict b from batches where id = p_batch and swept_at is not null;
  if b.lapsed = 0 then return; end if;
  select case when b.expires_at >= coalesce(k.sealed_until, '-infinity') then b.expires_at else p_now end
  into strict stamp from books k for share;
  perform release_price(
    p_batch, b.lapsed * b.value_minor, id_at(p_id, stamp), bucket_of(b.merchant_id), null, stamp,
    p_now);
end $$;

-- Cancels an inactive voucher for good, and returns its price if the batch has paid it: lock, check, write.
-- Returns `ok` and the amount, or the status code of a decline, which changes nothing.
create function cancel_inactive(
  p_bucket integer, p_serial bigint, p_id uuid, p_now timestamptz
) returns table (outcome text, released_minor bigint)
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  v vouchers;
  b batches;
begin
  perform check_stamp(p_now);
  select * into v from vouchers where bucket = p_bucket and serial_number = p_serial for update;
  select * into b from batches where id = v.batch_id and status = 'COMPLETED';
  outcome := case
    when b.id is null then '14'
    when v.closed is not null then '44'
    when v.expires_at <= p_now then '54'
    when v.activated_at is not null then '41'
    else 'ok'
  end;
  released_minor := 0;
  if outcome = 'ok' then
    if v.payer_id is not null then
      released_minor := b.value_minor;
      perform release_price(b.id, b.value_minor, p_id, p_bucket, p_serial, p_now, p_now);
    end if;
    update vouchers set closed = 'CANCELED', payer_id = null
    where bucket = p_bucket and serial_number = p_serial;
    if not found then raise exception 'there is no voucher % in bucket %', p_serial, p_bucket; end if;
  end if;
  return next;
end $$;

-- Takes the price of an inactive voucher from the float again, after it was released: RESERVATION. Returns
-- `ok` and the price, which is 0 if there is nothing to take, or `50` if the float does not cover it. The
-- caller has locked the voucher.
create function reserve_again(
  p_bucket integer, p_serial bigint, p_id uuid, p_event uuid, p_now timestamptz
) returns table (outcome text, taken_minor bigint)
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  v vouchers;
  b batches;
begin
  perform check_stamp(p_now);
  select * into strict v from vouchers where bucket = p_bucket and serial_number = p_serial for update;
  select * into strict b from batches where id = v.batch_id;
  if b.value_minor is null or v.activated_at is not null or v.payer_id is not null or v.closed is not null
  then return query select 'ok', 0::bigint; return; end if;
  perform hold_returned(array[p_serial], array[b.value_minor]);
  if not take_price(b.id, b.value_minor, null, p_id, p_bucket, p_serial, p_event, p_now) then
    return query select '50', 0::bigint; return;
  end if;
  update vouchers set payer_id = b.merchant_id where bucket = p_bucket and serial_number = p_serial;
  if not found then raise exception 'there is no voucher % in bucket %', p_serial, p_bucket; end if;
  return query select 'ok', b.value_minor;
end $$;

-- Sweeps expired vouchers of one bucket: their balances go to the account that their batch's policy names. A
-- row is dated at the expiry if that is after the last sealed slice and the voucher has no later row,
-- otherwise p_now. An inactive voucher lapses: it can no longer be activated, and its price goes back to the
-- float that paid it, at once if p_batch is null, otherwise when the sweep of that batch ends. Vouchers that
-- another transaction has locked are left for the next sweep. p_ids: one id for each serial number. Returns
-- how many vouchers were swept, and how many lapsed.
create function sweep_vouchers(
  p_bucket integer, p_serials bigint[], p_ids uuid[], p_batch integer, p_now timestamptz
) returns table (swept integer, lapsed integer)
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  horizon timestamptz;
  due bigint[];
  inactive bigint[];
  each record;
  amounts bigint[];
  targets bigint[];
  owners integer[];
  currencies text[];
  stamps timestamptz[];
  used bigint[]; -- the vouchers that were used, and when last
  use_times timestamptz[];
  float_count integer;
  written integer;
begin
  perform check_stamp(p_now);
  -- Sweeps share this lock. A seal takes it exclusively, so that no slice is sealed during a sweep.
  select coalesce(b.sealed_until, '-infinity') into strict horizon from books b for share;
  select array_agg(l.serial_number) filter (where l.balance_minor > 0),
    array_agg(l.serial_number) filter (where l.balance_minor = 0)
  into due, inactive from (
    select v.serial_number, v.balance_minor from vouchers v
    where v.bucket = p_bucket and v.serial_number = any (p_serials) and v.expires_at <= p_now
      and is_funded(v.balance_minor, v.activated_at, v.payer_id) and v.closed is null
    order by v.serial_number for update skip locked
  ) l;
  swept := coalesce(cardinality(due), 0);
  lapsed := coalesce(cardinality(inactive), 0);
  -- A voucher that is locked, or that expires after its batch, gets its own due date.
  delete from voucher_expiries e where e.bucket = p_bucket and e.serial_number = any (p_serials);
  insert into voucher_expiries (bucket, serial_number, due_at)
  select v.bucket, v.serial_number, v.expires_at from vouchers v
  where v.bucket = p_bucket and v.serial_number = any (p_serials) and v.closed is null
    and v.serial_number <> all (coalesce(due, '{}') || coalesce(inactive, '{}'))
    and (is_funded(v.balance_minor, v.activated_at, v.payer_id) or v.expires_at > p_now)
  on conflict (serial_number, bucket) do update set due_at = excluded.due_at;

  if lapsed > 0 then
    update vouchers v set payer_id = null where v.bucket = p_bucket and v.serial_number = any (inactive);
    get diagnostics written = row_count;
    perform expect_rows('vouchers', written, lapsed);
    for each in
      select v.batch_id, b.value_minor, v.serial_number, p_ids[swept + u.ord::integer] as id,
        case when v.expires_at >= horizon then v.expires_at else p_now end as stamp
      from unnest(inactive) with ordinality as u (serial_number, ord)
      join vouchers v on v.bucket = p_bucket and v.serial_number = u.serial_number
      join batches b on b.id = v.batch_id
      where p_batch is null
    loop
      perform release_price(each.batch_id, each.value_minor, id_at(each.id, each.stamp), p_bucket,
        each.serial_number, each.stamp, p_now);
    end loop;
  end if;
  if swept = 0 then return next; return; end if;

  select array_agg(u.serial_number), array_agg(u.used_at) into used, use_times
  from (
    select s.serial_number, max(s.occurred_at) as used_at from uses_of(p_bucket, due) s group by 1
  ) u;
  select array_agg(v.balance_minor order by u.ord), array_agg(a.id order by u.ord),
    array_agg(nullif(a.merchant_id, 0) order by u.ord), array_agg(b.currency order by u.ord),
    array_agg(case
      when v.expires_at >= horizon and (s.used_at > v.expires_at) is not true and not exists (
        select from journal j
        where j.bucket = p_bucket and j.serial_number = v.serial_number and j.occurred_at > v.expires_at
          and j.id >= id_floor(v.expires_at, '-1 hour')
          and (j.kind <> 'REDEMPTION' or j.original_id is not null)
      ) then v.expires_at
      else p_now
    end order by u.ord)
  into amounts, targets, owners, currencies, stamps
  from unnest(due) with ordinality as u (serial_number, ord)
  join vouchers v on v.bucket = p_bucket and v.serial_number = u.serial_number
  join batches b on b.id = v.batch_id
  left join unnest(used, use_times) as s (serial_number, used_at) on s.serial_number = u.serial_number
  left join accounts a on a.currency = b.currency
    and a.merchant_id = case b.expiry_policy when 'issuer' then v.payer_id else 0 end
    and a.kind = case b.expiry_policy
      when 'issuer' then 'FLOAT'::account_kind
      when 'operator' then 'BREAKAGE'
      else 'UNCLAIMED'
    end;
  if array_position(targets, null) is not null then
    raise exception 'there is no account for what expires';
  end if;
  select count(*) into float_count from accounts a where a.id = any (targets) and a.kind = 'FLOAT';
  perform from floats f where f.account_id = any (targets) order by f.account_id for update;
  update floats f set balance_minor = f.balance_minor + s.amount_minor
  from (
    select u.target, sum(u.amount) as amount_minor
    from unnest(targets, amounts) as u (target, amount) group by u.target
  ) s
  where f.account_id = s.target;
  get diagnostics written = row_count;
  perform expect_rows('floats', written, float_count);
  insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
    serial_number, occurred_at)
  select p_bucket, id_at(u.id, u.stamp), 'EXPIRY', u.serial_number, u.target, u.amount, u.currency, u.owner,
    u.serial_number, u.stamp
  from unnest(due, p_ids[:swept], amounts, targets, owners, currencies, stamps)
    as u (serial_number, id, amount, target, owner, currency, stamp);
  get diagnostics written = row_count;
  perform expect_rows('journal', written, swept);
  update vouchers v set balance_minor = 0 where v.bucket = p_bucket and v.serial_number = any (due);
  get diagnostics written = row_count;
  perform expect_rows('vouchers', written, swept);
  perform announce_vouchers(p_bucket, 'voucher.expired', due, amounts, p_ids[:swept], p_now);
  return next;
end $$;

-- Creates the rows of the days up to now. The first day is that of the oldest row.
create function open_days(p_now timestamptz) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
declare
  zone text;
  last book_days;
  first timestamptz;
begin
  select b.zone into strict zone from books b for update;
  select * into last from book_days d order by d.day desc limit 1;
  if not found then
    select j.occurred_at into first from journal j order by j.id limit 1;
    select min(j.occurred_at) into first from journal j where j.id < id_floor(first, '2 hours');
    last.day := (coalesce(first, p_now) at time zone zone)::date;
    last.ends_at := last.day::timestamp at time zone zone;
    last.day := last.day - 1;
  end if;
  while last.ends_at <= p_now loop
    last.day := last.day + 1;
    insert into book_days (day, starts_at, ends_at, zone)
    values (last.day, last.ends_at, (last.day + 1)::timestamp at time zone zone, zone)
    returning * into last;
  end loop;
end $$;

revoke execute on function account_balance, book, book_voucher, take_price, release_price, reserve_batch,
  release_batch, release_lapsed, cancel_inactive, reserve_again, sweep_vouchers, open_days from public;
grant execute on function is_movement, id_at, account_balance, book, book_voucher, reserve_batch,
  release_batch, release_lapsed, cancel_inactive, reserve_again, sweep_vouchers, open_days to scrip_service;
