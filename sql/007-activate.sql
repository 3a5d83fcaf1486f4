-- 007: activations, and the debit of a float. The functions have the structure of redemptions
-- (006-redeem.sql), where it is explained.
--
-- A voucher is given by the keys of its code and PIN, or by its serial number. The latter works only for the
-- merchant that generated it. Its value is that of the batch, otherwise the requested one, otherwise 5000. A
-- batch with a value was paid for when it was generated, so its vouchers are paid from its reserve. Vouchers
-- of a batch without a value are paid from the float of the merchant that activates them, their payer.

-- Takes an amount from a float. Returns false if the float does not cover it. Queues `float.low` only for the
-- debit that takes the balance below the mark.
create function debit_float(
  p_account bigint, p_amount bigint, p_event uuid, p_now timestamptz
) returns boolean
language plpgsql security definer set search_path = scrip, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
declare
  f floats;
  low bigint;
begin
  update floats set balance_minor = balance_minor - p_amount
  where account_id = p_account and balance_minor >= p_amount
  returning * into f;
  if not found then return false; end if;
  low := coalesce(f.low_minor, f.topped_up_minor / 10);
  if f.balance_minor < low and f.balance_minor + p_amount >= low then
    perform announce_to(f.merchant_id, 'float.low', p_event, null, json_build_object(
      'currency', f.currency,
      'balance', trim_scale(f.balance_minor / 10::numeric ^ f.decimals),
      'threshold', trim_scale(low / 10::numeric ^ f.decimals)), p_now);
  end if;
  return true;
end $$;

-- What is decided about a request: first what `activate` returns to the service, then what it writes.
create type activation as (
  ord integer, outcome text, id uuid, occurred_at timestamptz, serial_number bigint, amount_minor bigint,
  decimals smallint, currency text, sealed bytea, merchant_id integer, key_id text, reference text,
  unit bigint, row tid, debit bigint, is_float boolean, pin_count smallint,
  bounded_id integer -- the product, if it bounds what its vouchers hold (028-outstanding.sql)
);

-- In: as for redemptions; p_code_keys and p_pin_keys, or p_serials; p_values in ten-thousandths of a major
-- unit or null; p_low_ids, the ids of new events: `float.low`, or `limit.reached` of a product. Out: as for
-- redemptions, with the sealed code.
-- On several shards (p_claimed), the float's share is in the transit account before the call. p_unfunded: the
-- float did not cover it. p_limit_ids: as for redemptions; one call then has one request of each merchant.
create function activate(
  p_bucket integer, p_merchants integer[], p_key_ids text[], p_code_keys uuid[], p_pin_keys uuid[],
  p_serials bigint[], p_values bigint[], p_references text[], p_ids uuid[], p_low_ids uuid[],
  p_unfunded boolean[], p_claimed boolean, p_limit_ids uuid[], p_now timestamptz
) returns setof activation
language plpgsql security definer
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
declare
  booked uuid[];
  earliest_id uuid;
  latest_id uuid;
  voided uuid[];
  serials bigint[];
  activations activation[];
  outcomes text[];
  currencies text[];
  prices_minor bigint[]; -- what the floats pay
  known_times timestamptz[];
  is_expiring boolean;
  float_ids bigint[];
  left_minor bigint[];
  spent_minor bigint[];
  low_ids uuid[];
  each activation;
  bounded record;
  refusal text;
  place integer;
  bookings integer;
  references_used integer;
  changed integer;
  written integer;
begin
  perform check_stamp(p_now);
  -- Lock.
  select array_agg(coalesce(a.serial_number, v.serial_number) order by a.ord) into serials
  from unnest(p_code_keys, p_serials) with ordinality as a (code_key, serial_number, ord)
  left join lateral (
    select r.serial_number from vouchers r where r.bucket = p_bucket and r.code_key = a.code_key limit 1
  ) v on true;
  perform from vouchers v where v.bucket = p_bucket and v.serial_number = any (serials)
    order by v.serial_number for update;
  if p_claimed then
    booked := array(select r.id from journal r where r.bucket = p_bucket and r.id = any (p_ids));
    -- The claim of a declined request keeps its id. A repeat of the request long after it, or after the clock
    -- of a process was corrected, needs a new id, so that its row belongs to a day of the books.
    earliest_id := id_floor(p_now, '-30 minutes');
    latest_id := id_floor(p_now, '30 minutes');
    voided := array(
      select r.id from voids r where r.bucket = p_bucket and r.id = any (p_ids)
      union all
      select u.id from unnest(p_ids) as u (id) where u.id < earliest_id or u.id >= latest_id
    );
  end if;

  -- Decide everything except what the floats cover. A voucher whose code key has changed was sealed again:
  -- the service looks it up by another key.
  select array_agg((d.ord, d.outcome, d.id, p_now, d.serial_number, d.value_minor, d.decimals, d.currency,
      d.sealed, d.merchant_id, d.key_id, d.reference, d.unit, d.row, d.debit, d.is_float,
      case when d.by_code then wrong_pins_after(d.outcome, d.wrong_pins) end, d.bounded_id)::activation),
    bool_or(d.expires_at <= p_now + interval '5 minutes')
  into activations, is_expiring
  from (
    select a.ord::integer, a.merchant_id, a.key_id, a.reference, a.serial_number, coalesce(c.id, a.id) as id,
      v.ctid as row, v.expires_at, v.wrong_pins, v.sealed, t.value_minor, t.by_code, b.unit, b.currency,
      b.decimals, b.value_minor is null as is_float, p.bounded_id,
      case when b.value_minor is null then f.id else reserve_of(b.id) end as debit,
      case
        when not t.by_code and t.other_value then '13'
        when c.id is not null and c.is_same is not true then '94'
        else coalesce(
          decline_before_pin(
            unknown => b.unit is null,
            pin_locked => t.by_code and v.pin_locked_until > p_now,
            wrong_pin => t.by_code and v.pin_key <> a.pin_key),
          case
            when c.id is not null or a.id = any (booked) then 'replay'
            when a.id = any (voided) then 'void'
            when t.other_value then '13'
            when t.out_of_limits then '61'
          end,
          decline_after_pin(
            closed => v.closed is not null,
            blocked => v.blocked_at is not null,
            -- The sweep of a process whose clock is ahead may have released the price already.
            expired => v.expires_at <= p_now or b.value_minor is not null and v.payer_id is null,
            already_active => v.activated_at is not null,
            other_issuer => b.scope = 'issuer' and b.merchant_id <> a.merchant_id),
          case
            when b.value_minor is null and f.id is null then 'account'
            when b.value_minor is null and a.is_unfunded then '50'
            else 'ok'
          end)
      end as outcome
    from unnest(p_merchants, p_key_ids, p_code_keys, p_pin_keys, serials, p_values, p_references, p_ids,
      p_unfunded) with ordinality
      as a (merchant_id, key_id, code_key, pin_key, serial_number, value, reference, id, is_unfunded, ord)
    left join lateral (
      select r.ctid, r.* from vouchers r
      where r.bucket = p_bucket and r.serial_number = a.serial_number
        and (a.code_key is null or r.code_key = a.code_key) limit 1
    ) v on true
    left join lateral (
      select r.id, r.merchant_id, r.product_id, r.value_minor, r.currency, r.decimals, r.scope,
        unit_of(r.decimals) as unit
      from batches r
      where r.id = v.batch_id and r.status = 'COMPLETED'
        and (a.code_key is not null or r.merchant_id = a.merchant_id) limit 1
    ) b on true
    left join lateral (
      select r.min_value_minor, r.max_value_minor,
        case when r.outstanding_max_minor is not null then r.id end as bounded_id
      from products r where r.id = b.product_id limit 1
    ) p on true
    left join lateral (
      select a.code_key is not null as by_code,
        coalesce(b.value_minor, a.value / b.unit, 5000 * 10000 / b.unit) as value_minor,
        coalesce(a.value % b.unit <> 0 or a.value / b.unit <> b.value_minor, false) as other_value,
        coalesce(b.value_minor is null and coalesce(a.value / b.unit, 5000 * 10000 / b.unit)
          not between p.min_value_minor and p.max_value_minor, false) as out_of_limits
    ) t on true
    left join lateral (
      select r.id from accounts r
      where r.merchant_id = case when p_claimed then 0 else a.merchant_id end and r.currency = b.currency
        and r.kind = case when p_claimed then 'TRANSIT'::account_kind else 'FLOAT' end limit 1
    ) f on true
    left join lateral (
      select r.id, r.serial_number = v.serial_number
        and r.fingerprint = (t.value_minor * b.unit)::text as is_same
      from claims r
      where not p_claimed and r.bucket = p_bucket and r.merchant_id = a.merchant_id
        and r.operation = 'activate' and r.reference = a.reference limit 1
    ) c on true
    order by a.ord
  ) d;
  if p_limit_ids is not null then
    select array_agg(u.currency), array_agg(case when u.is_float then u.amount_minor else 0 end),
      array_agg(u.outcome)
    into currencies, prices_minor, outcomes
    from unnest(activations) as u;
    outcomes := within_limits('issue', p_merchants, p_key_ids, currencies, prices_minor, outcomes, p_now);
    for at in 1 .. cardinality(outcomes) loop
      activations[at].outcome := outcomes[at];
    end loop;
  end if;

  -- Lock after the vouchers what products with a bound hold, and then the floats, only those that pay for
  -- something. Requests are covered in their order, each from what the earlier ones left.
  if not p_claimed
    and exists (select from unnest(activations) as u where u.outcome = 'ok' and u.is_float)
  then
    for bounded in
      select u.bounded_id as id, sum(u.amount_minor) as amount_minor
      from unnest(activations) as u
      where u.outcome = 'ok' and u.is_float and u.bounded_id is not null
      group by u.bounded_id order by u.bounded_id
    loop
      perform lock_held(bounded.id, bounded.amount_minor::bigint, p_now);
    end loop;
    select array_agg(f.account_id), array_agg(f.balance_minor), array_agg(0::bigint), array_agg(null::uuid)
    into float_ids, left_minor, spent_minor, low_ids
    from (
      select r.account_id, r.balance_minor from floats r
      where r.account_id = any (array(
        select u.debit from unnest(activations) as u where u.outcome = 'ok' and u.is_float))
      order by r.account_id for update
    ) f;
    for at in 1 .. cardinality(activations) loop
      each := activations[at];
      continue when each.outcome <> 'ok' or not each.is_float;
      place := array_position(float_ids, each.debit);
      refusal := case
        when left_minor[place] < each.amount_minor then '50'
        when each.bounded_id is not null and not hold(each.bounded_id, each.amount_minor)
          then 'product-outstanding'
      end;
      if refusal is not null then
        -- The request that took what was left may have used this reference for another voucher.
        activations[at].outcome := case when exists (
          select from claims c where c.bucket = p_bucket and c.merchant_id = each.merchant_id
            and c.operation = 'activate' and c.reference = each.reference
        ) then '94' else refusal end;
        if activations[at].outcome = 'product-outstanding' then
          perform note_full(each.bounded_id, each.merchant_id, p_low_ids[at], p_now);
        end if;
      else
        left_minor[place] := left_minor[place] - each.amount_minor;
        spent_minor[place] := spent_minor[place] + each.amount_minor;
        low_ids[place] := coalesce(low_ids[place], p_low_ids[at]);
      end if;
    end loop;
    select count(*) filter (where debit_float(u.account_id, u.spent, u.low_id, p_now)), count(*)
    into written, changed
    from unnest(float_ids, spent_minor, low_ids) as u (account_id, spent, low_id) where u.spent > 0;
    perform expect_rows('floats', written, changed);
  end if;

  -- Write.
  select array_agg(u.outcome), count(*) filter (where u.outcome = 'ok'),
    count(u.reference) filter (where u.outcome = 'ok'),
    count(*) filter (where u.outcome = 'ok' or u.pin_count is not null)
  into outcomes, bookings, references_used, changed
  from unnest(activations) as u;
  if p_limit_ids is not null then
    perform count_under_limits('issue', p_merchants, p_key_ids, currencies, prices_minor, outcomes, p_limit_ids,
      p_now);
  end if;
  if bookings > 0 then
    if not p_claimed then
      insert into claims (bucket, merchant_id, operation, reference, id, serial_number, fingerprint)
      select k.bucket, u.merchant_id, 'activate', u.reference, u.id, u.serial_number,
        (u.amount_minor * u.unit)::text
      from buckets k cross join unnest(activations) as u
      where k.bucket = p_bucket and u.outcome = 'ok' and u.reference is not null;
      get diagnostics written = row_count;
      perform expect_rows('claims', written, references_used);
    end if;
    insert into journal (bucket, id, kind, debit_account, credit_account, amount_minor, currency, merchant_id,
      key_id, serial_number, reference, occurred_at)
    select k.bucket, u.id, 'ACTIVATION', u.debit, u.serial_number, u.amount_minor, u.currency, u.merchant_id,
      u.key_id, u.serial_number, u.reference, p_now
    from buckets k cross join unnest(activations) as u
    where k.bucket = p_bucket and u.outcome = 'ok';
    get diagnostics written = row_count;
    perform expect_rows('journal', written, bookings);
    if exists (select from webhook_endpoints e
      where e.merchant_id = any (p_merchants || 0) and e.disabled_at is null and e.removed_at is null)
    then
      perform announce(p_bucket, 'voucher.activated', p_merchants, p_ids, outcomes, p_now);
    end if;
  end if;
  if 'void' = any (outcomes) then
    insert into voids (bucket, id)
    select k.bucket, u.id from buckets k cross join unnest(activations) as u
    where k.bucket = p_bucket and u.outcome = 'void' on conflict do nothing;
  end if;
  update vouchers v set
    value_minor = case when u.outcome = 'ok' then u.amount_minor else v.value_minor end,
    balance_minor = v.balance_minor + case when u.outcome = 'ok' then u.amount_minor else 0 end,
    activated_at = case when u.outcome = 'ok' then p_now else v.activated_at end,
    payer_id = coalesce(v.payer_id, case when u.outcome = 'ok' then u.merchant_id end),
    wrong_pins = coalesce(u.pin_count, v.wrong_pins),
    pin_locked_until = case
      when u.pin_count is null then v.pin_locked_until
      else pin_locked_until(u.pin_count, p_now)
    end
  from unnest(activations) as u
  where v.bucket = p_bucket and v.ctid = u.row and (u.outcome = 'ok' or u.pin_count is not null);
  get diagnostics written = row_count;
  perform expect_rows('vouchers', written, changed);
  -- A process whose clock is ahead may have swept the batch before the voucher was active.
  if is_expiring and bookings > 0 then
    insert into voucher_expiries (bucket, serial_number, due_at)
    select v.bucket, v.serial_number, v.expires_at
    from vouchers v
    where v.bucket = p_bucket and v.serial_number = any (serials) and v.balance_minor > 0
      and v.expires_at <= p_now + interval '5 minutes'
    on conflict do nothing;
  end if;
  if '14' = any (outcomes) then perform pg_logical_emit_message(true, 'scrip', ''); end if;

  if 'replay' = any (outcomes) then
    select array_agg(j.occurred_at order by u.ord) into known_times
    from unnest(activations) as u
    left join lateral (
      select r.occurred_at from journal r where r.bucket = p_bucket and r.id = u.id limit 1
    ) j on true;
  end if;
  return query
    select u.ord, u.outcome, case when u.outcome in ('ok', 'replay') then u.id end,
      case when u.outcome = 'ok' then p_now else known_times[u.ord] end, u.serial_number, u.amount_minor,
      u.decimals, u.currency, u.sealed, u.merchant_id, u.key_id, u.reference, u.unit, u.row, u.debit,
      u.is_float, u.pin_count, u.bounded_id
    from unnest(activations) as u;
end $$;

revoke execute on function debit_float, activate from public;
grant execute on function debit_float, activate to scrip_service;
