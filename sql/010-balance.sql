-- 010: balances. Most enquiries have the right PIN for a voucher without previous wrong ones. For these,
-- `read_balances` only reads. All others go to `check_pins`, which locks the voucher and counts wrong PINs.

-- In: as for redemptions. Out: a row for each voucher whose PIN is right and that has no counted wrong PINs;
-- no row for all others. `history` holds the newest p_entries activations, redemptions and reversals, newest
-- first, as JSON: those of the chain of uses, and the other rows. The reference of another merchant is "".
create function read_balances(
  p_bucket integer, p_merchants integer[], p_code_keys uuid[], p_pin_keys uuid[], p_entries integer,
  p_now timestamptz
) returns table (
  ord integer, serial_number bigint, decimals smallint, balance_minor bigint, value_minor bigint,
  usable_minor bigint, history json
)
language plpgsql stable security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  -- The history is in the partitions between the activation and now. The bounds of the ids are computed once,
  -- not for each partition, which saves a third of the time of a balance. The hour allows for clocks that
  -- differ.
  latest uuid := id_floor(p_now, '1 hour');
begin
  return query
    select a.ord::integer, v.serial_number, b.decimals, v.balance_minor, v.value_minor,
      case
        when v.activated_at is null or v.blocked_at is not null or v.closed is not null
          or v.expires_at <= p_now then 0
        else v.balance_minor
      end,
      h.history
    from unnest(p_merchants, p_code_keys, p_pin_keys) with ordinality
      as a (merchant_id, code_key, pin_key, ord)
    cross join lateral (
      select r.*, id_floor(r.activated_at, '-1 hour') as earliest
      from vouchers r where r.bucket = p_bucket and r.code_key = a.code_key limit 1
    ) v
    cross join lateral (
      select r.decimals, r.reference from batches r where r.id = v.batch_id and r.status = 'COMPLETED' limit 1
    ) b
    cross join lateral (
      select json_agg(json_build_array(
        e.id, e.kind, e.amount_minor, e.occurred_at,
        case
          when e.merchant_id = a.merchant_id
            then case when e.batch_id is null then e.reference else b.reference end
          else ''
        end,
        e.original_id)) as history
      from (
        select u.* from (
          with recursive uses as (
            select r.id, r.kind, r.amount_minor, r.occurred_at, r.merchant_id, r.batch_id, r.reference,
              r.original_id, r.previous_use_id
            from journal r where r.bucket = p_bucket and r.id = v.last_use_id
            union all
            select r.id, r.kind, r.amount_minor, r.occurred_at, r.merchant_id, r.batch_id, r.reference,
              r.original_id, r.previous_use_id
            from uses u
            cross join lateral (
              select * from journal j where j.bucket = p_bucket and j.id = u.previous_use_id limit 1
            ) r
          )
          select * from uses limit p_entries
        ) u
        union all
        select o.* from (
          select r.id, r.kind, r.amount_minor, r.occurred_at, r.merchant_id, r.batch_id, r.reference,
            r.original_id, r.previous_use_id
          from journal r
          where r.bucket = p_bucket and r.serial_number = v.serial_number and r.id >= v.earliest
            and r.id < latest and (r.kind <> 'REDEMPTION' or r.original_id is not null)
            and r.kind in ('ACTIVATION', 'IMPORT', 'REPLACEMENT', 'REDEMPTION', 'REDEMPTION_REVERSAL')
          order by r.id desc limit p_entries
        ) o
        order by id desc limit p_entries
      ) e
    ) h
    where v.pin_key = a.pin_key and v.wrong_pins = 0 and v.pin_locked_until is null;
end $$;

-- The same for one voucher with more than p_entries entries: `history` holds the newest that are in force,
-- without reversals and without redemptions that an update replaced. One statement reads both, so that the
-- balance agrees with the history.
create function read_long_balance(
  p_bucket integer, p_merchant integer, p_code_key uuid, p_pin_key uuid, p_entries integer, p_now timestamptz
) returns table (
  serial_number bigint, decimals smallint, balance_minor bigint, value_minor bigint, usable_minor bigint,
  history json
)
language plpgsql stable security definer set search_path = scrip, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  return query
    select v.serial_number, v.decimals, v.balance_minor, v.value_minor, v.usable_minor, h.history
    from read_balances(p_bucket, array[p_merchant], array[p_code_key], array[p_pin_key], 0, p_now) v
    cross join lateral (
      select r.last_use_id from vouchers r
      where r.bucket = p_bucket and r.serial_number = v.serial_number limit 1
    ) l
    cross join lateral (
      select json_agg(json_build_array(e.id, e.kind, e.amount_minor, e.occurred_at,
        case when e.merchant_id = p_merchant then e.reference else '' end, null)) as history
      from (
        select j.id, j.kind, j.amount_minor, j.occurred_at, j.merchant_id,
          coalesce(b.reference, j.reference) as reference
        from (
          select u.* from (
            with recursive uses as (
              select r.* from journal r where r.bucket = p_bucket and r.id = l.last_use_id
              union all
              select r.* from uses u cross join lateral (
                select * from journal j where j.bucket = p_bucket and j.id = u.previous_use_id limit 1
              ) r
            )
            select * from uses s
            where not exists (
              select from redemption_updates r where r.bucket = p_bucket and r.original_id = s.id
            )
            limit p_entries
          ) u
          union all
          select o.* from (
            select r.* from journal r
            where r.bucket = p_bucket and r.serial_number = v.serial_number
              and (r.kind <> 'REDEMPTION' or r.original_id is not null)
              and r.kind in ('ACTIVATION', 'IMPORT', 'REPLACEMENT', 'REDEMPTION')
            order by r.id desc limit p_entries
          ) o
        ) j
        left join batches b on b.id = j.batch_id
        order by j.id desc limit p_entries
      ) e
    ) h;
end $$;

-- Checks PINs under the lock of their vouchers, on the newest rows, and counts the wrong ones: parallel
-- guesses cannot exceed the limit of five. In: the keys of codes and PINs. Out: the outcome of each, `ok` or
-- a status code. `ok` sets the count of wrong PINs to 0.
create function check_pins(
  p_bucket integer, p_code_keys uuid[], p_pin_keys uuid[], p_now timestamptz
) returns table (ord integer, outcome text)
language plpgsql security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  outcomes text[];
  rows tid[];
  pin_counts smallint[];
  changed integer;
  written integer;
begin
  perform from vouchers v where v.bucket = p_bucket and v.code_key = any (p_code_keys)
    order by v.serial_number for update;
  select array_agg(d.outcome), array_agg(d.row), array_agg(wrong_pins_after(d.outcome, d.wrong_pins)),
    count(wrong_pins_after(d.outcome, d.wrong_pins))
  into outcomes, rows, pin_counts, changed
  from (
    select v.ctid as row, v.wrong_pins,
      coalesce(decline_before_pin(b.id is null, v.pin_locked_until > p_now, v.pin_key <> a.pin_key), 'ok')
        as outcome
    from unnest(p_code_keys, p_pin_keys) with ordinality as a (code_key, pin_key, ord)
    left join lateral (
      select r.ctid, r.* from vouchers r where r.bucket = p_bucket and r.code_key = a.code_key limit 1
    ) v on true
    left join lateral (
      select r.id from batches r where r.id = v.batch_id and r.status = 'COMPLETED' limit 1
    ) b on true
    order by a.ord
  ) d;
  update vouchers v set wrong_pins = u.pin_count, pin_locked_until = pin_locked_until(u.pin_count, p_now)
  from unnest(rows, pin_counts) as u (row, pin_count)
  where v.bucket = p_bucket and v.ctid = u.row and u.pin_count is not null;
  get diagnostics written = row_count;
  perform expect_rows('vouchers', written, changed);
  if '14' = any (outcomes) then perform pg_logical_emit_message(true, 'scrip', ''); end if;
  return query select u.ord::integer, u.outcome from unnest(outcomes) with ordinality as u (outcome, ord);
end $$;

revoke execute on function read_balances, read_long_balance, check_pins from public;
grant execute on function read_balances, read_long_balance, check_pins to scrip_service;
