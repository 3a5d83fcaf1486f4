-- 005: rules that several operations share. Most are SQL functions of one expression, which the planner
-- inlines into the calling statement.

-- Returns the ten-thousandths of a major unit in one minor unit: 100 with two decimals, 10000 with none.
create function unit_of(decimals smallint) returns bigint language sql immutable parallel safe as $$
  select ('{10000,1000,100,10,1}'::bigint[])[decimals + 1]
$$;

-- Returns the account of a batch's reserve.
create function reserve_of(batch_id integer) returns bigint language sql immutable parallel safe as $$
  select 5000000000 + batch_id
$$;

-- Returns whether money is behind a voucher: on it or, before its activation, in the reserve of its batch.
create function is_funded(balance_minor bigint, activated_at timestamptz, payer_id integer) returns boolean
language sql immutable parallel safe as $$
  select balance_minor > 0 or activated_at is null and payer_id is not null
$$;

-- The order of declines (docs/reference/status-codes.md), in two parts: until the PIN is known to be right,
-- only these three may be reported of a voucher. Returns null if there is nothing to decline.
create function decline_before_pin(unknown boolean, pin_locked boolean, wrong_pin boolean) returns text
language sql immutable parallel safe as $$
  select case when unknown then '14' when pin_locked then '75' when wrong_pin then '55' end
$$;

create function decline_after_pin(
  closed boolean, blocked boolean, expired boolean, not_active boolean default false,
  already_active boolean default false, other_issuer boolean default false, spent boolean default false,
  updated boolean default false, insufficient boolean default false
) returns text
language sql immutable parallel safe as $$
  select case
    when closed then '44'
    when blocked then '43'
    when expired then '54'
    when not_active then '40'
    when already_active then '41'
    when other_issuer then '47'
    when spent then '42'
    when updated then '58'
    when insufficient then '51'
  end
$$;

-- The state of a voucher: what a redemption would be declined for.
create function voucher_state(
  closed voucher_closure, blocked_at timestamptz, expires_at timestamptz, activated_at timestamptz,
  balance_minor bigint, p_now timestamptz
) returns text
language sql immutable parallel safe as $$
  select case scrip.decline_after_pin( -- qualified, since Citus creates it without a search path
      closed => closed is not null, blocked => blocked_at is not null, expired => expires_at <= p_now,
      not_active => activated_at is null, spent => balance_minor = 0
    )
    when '44' then closed::text
    when '43' then 'BLOCKED'
    when '54' then 'EXPIRED'
    when '40' then 'INACTIVE'
    when '42' then 'REDEEMED'
    else 'ACTIVE'
  end
$$;

-- Returns the number of consecutive wrong PINs after this check; null if it does not change.
create function wrong_pins_after(outcome text, wrong_pins smallint) returns smallint
language sql immutable parallel safe as $$
  select case
    when outcome = '55' then least(wrong_pins + 1, 15)::smallint
    when outcome not in ('14', '94', '75', 'void') and wrong_pins > 0 then 0::smallint
  end
$$;

-- Returns the end of the lock after this many consecutive wrong PINs: 15 minutes after five, 24 hours after
-- ten; after fifteen, the PIN stays locked until the operator unlocks it. Declared immutable: hours and
-- minutes, unlike days, do not depend on the time zone.
create function pin_locked_until(wrong_pins smallint, at timestamptz) returns timestamptz
language sql immutable parallel safe as $$
  select case wrong_pins
    when 5 then at + interval '15 minutes'
    when 10 then at + interval '24 hours'
    when 15 then 'infinity'::timestamptz
  end
$$;

-- Returns the transaction id that was given instead of a reference; null if the text is not a UUID.
create function uuid_from(reference text) returns uuid language sql immutable parallel safe as $$
  select case when reference ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then reference::uuid end
$$;

-- Fails if a statement did not write the expected number of rows, which undoes the whole call: no balance
-- changes without its journal row, and no journal row is written without its balance.
create function expect_rows(p_table text, p_written bigint, p_expected bigint) returns void
language plpgsql as $$
begin
  if p_written is distinct from p_expected then
    raise exception '% rows of % were written instead of %', p_written, p_table, p_expected;
  end if;
end $$;
grant execute on function expect_rows to scrip_service;

-- Queues an event for each open endpoint of the merchant or of the operator (0) that takes it, in the
-- transaction of the change that it reports. The operator's delivery also names the merchant. Takes
-- parallel arrays: merchants, events, and outcomes. Only the outcome `ok` is reported.
create function announce(
  p_bucket integer, p_type text, p_merchants integer[], p_events uuid[], p_outcomes text[], p_now timestamptz
) returns void
language plpgsql security definer set search_path = scrip, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
declare
  endpoints integer[];
  events uuid[];
  are_kept boolean[];
  owners integer[]; -- the merchant, for the operator
  written bigint;
begin
  select array_agg(e.id), array_agg(u.event_id), array_agg(e.url is null),
    array_agg(case when e.merchant_id = 0 then u.merchant_id end)
  into endpoints, events, are_kept, owners
  from unnest(p_merchants, p_events, p_outcomes) as u (merchant_id, event_id, outcome)
  -- `offset 0` makes this an index look-up for each request, whatever the table's statistics say.
  cross join lateral (
    select r.id, r.url, r.merchant_id from webhook_endpoints r
    where r.merchant_id = any (array[u.merchant_id, 0]) and r.disabled_at is null and r.removed_at is null
      and (r.events is null or p_type = any (r.events)) offset 0
  ) e
  where u.outcome = 'ok';
  insert into webhook_deliveries (bucket, endpoint_id, event_id, type, subject_id, data, occurred_at, due_at,
    state, finished_at)
  select k.bucket, u.endpoint_id, u.event_id, p_type, u.event_id,
    case when u.owner is not null then json_build_object('merchantId', u.owner::text) end, p_now, p_now,
    case when u.is_kept then 'KEPT' else 'PENDING' end::delivery_state, case when u.is_kept then p_now end
  from buckets k
  cross join unnest(endpoints, events, are_kept, owners) as u (endpoint_id, event_id, is_kept, owner)
  where k.bucket = p_bucket;
  get diagnostics written = row_count;
  perform expect_rows('webhook_deliveries', written, coalesce(cardinality(events), 0));
end $$;

-- Queues an event that is about no voucher, for each open endpoint of the merchant or of the operator that
-- takes it, in the transaction of the change that it reports. p_merchant: 0 for an event of the operator's
-- own. Runs with the rights of the owner, like `announce`.
create function announce_to(
  p_merchant integer, p_type text, p_event uuid, p_subject uuid, p_data json, p_now timestamptz
) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  insert into webhook_deliveries (bucket, endpoint_id, event_id, type, subject_id, data, occurred_at, due_at,
    state, finished_at)
  select bucket_of(p_merchant), e.id, p_event, p_type, p_subject,
    case when e.merchant_id = p_merchant then p_data
      else (p_data::jsonb || jsonb_build_object('merchantId', p_merchant::text))::json end,
    p_now, p_now,
    case when e.url is null then 'KEPT' else 'PENDING' end::delivery_state,
    case when e.url is null then p_now end
  from webhook_endpoints e
  where e.merchant_id in (p_merchant, 0) and e.disabled_at is null and e.removed_at is null
    and (e.events is null or p_type = any (e.events));
end $$;

-- Queues an event about each of some vouchers of a bucket, for the merchant that generated it and for the
-- operator. p_amounts: what left each voucher, in minor units; null if nothing moved.
create function announce_vouchers(
  p_bucket integer, p_type text, p_serials bigint[], p_amounts bigint[], p_events uuid[], p_now timestamptz
) returns void
language plpgsql security definer set search_path = scrip, pg_temp as $$
begin
  insert into webhook_deliveries (bucket, endpoint_id, event_id, type, data, occurred_at, due_at, state,
    finished_at)
  select k.bucket, e.id, u.event_id, p_type, json_strip_nulls(json_build_object(
      'serialNumber', v.serial_number::text,
      'amount', trim_scale(u.amount_minor / 10::numeric ^ b.decimals),
      'currency', case when u.amount_minor is not null then b.currency end,
      'replacedBy', v.replaced_by::text,
      'merchantId', case when e.merchant_id = 0 then b.merchant_id::text end)),
    p_now, p_now, case when e.url is null then 'KEPT' else 'PENDING' end::delivery_state,
    case when e.url is null then p_now end
  from buckets k
  cross join unnest(p_serials, p_amounts, p_events) as u (serial_number, amount_minor, event_id)
  join vouchers v on v.bucket = k.bucket and v.serial_number = u.serial_number
  join batches b on b.id = v.batch_id
  join webhook_endpoints e on e.merchant_id in (b.merchant_id, 0) and e.disabled_at is null
    and e.removed_at is null and (e.events is null or p_type = any (e.events))
  where k.bucket = p_bucket;
end $$;
revoke execute on function announce_vouchers from public;
grant execute on function announce_vouchers to scrip_service;

-- Returns the time of the books. Only a demo or a test replaces this function, to move the time. That takes
-- the rights of the schema's owner.
create function database_time() returns timestamptz language sql volatile as $$ select clock_timestamp() $$;

-- Refuses (SC001) a booking whose stamp is more than 150 seconds behind the database's clock or more than a
-- minute ahead of it, and (SC002) one before the horizon of the books, which only a clock that was set back
-- can have. A day can therefore be closed: no new row gets a time in it (docs/explanation/books.md). The
-- transaction gets its number before the check, so that a close whose mark comes after the check waits for
-- it. Every function that writes to the journal calls this one.
create function check_stamp(p_stamp timestamptz) returns void
language plpgsql as $$
declare
  horizon timestamptz;
begin
  perform pg_current_xact_id();
  if not p_stamp between database_time() - interval '150 seconds' and database_time() + interval '1 minute'
  then
    raise exception 'the clock of the process is wrong: it has %, the database %', p_stamp, database_time()
      using errcode = 'SC001';
  end if;
  select h.at into strict horizon from book_horizon h;
  if p_stamp < horizon then
    raise exception 'the clock was set back: it has %, but the books are at %', p_stamp, horizon
      using errcode = 'SC002';
  end if;
end $$;
grant execute on function database_time to scrip_service;

revoke execute on function announce, announce_to from public;
grant execute on function announce, announce_to to scrip_service;

-- Returns the bucket of a merchant's rows that belong to no voucher.
create function bucket_of(merchant_id integer) returns integer
language sql stable security definer set search_path = scrip, pg_temp as $$
  select k.bucket from buckets k where k.position = merchant_id % (select count(*) from buckets)
$$;
revoke execute on function bucket_of from public;
grant execute on function bucket_of to scrip_service;

-- Returns the uses of vouchers, along their chains (001-core.sql).
create function uses_of(p_bucket integer, p_serials bigint[]) returns table (
  serial_number bigint, occurred_at timestamptz
)
language plpgsql stable
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
  return query
    with recursive uses as (
      select r.serial_number, r.occurred_at, r.previous_use_id
      from vouchers v
      join journal r on r.bucket = p_bucket and r.id = v.last_use_id
      where v.bucket = p_bucket and v.serial_number = any (p_serials)
      union all
      select r.serial_number, r.occurred_at, r.previous_use_id
      from uses u
      cross join lateral (
        select * from journal j where j.bucket = p_bucket and j.id = u.previous_use_id limit 1
      ) r
    )
    select u.serial_number, u.occurred_at from uses u;
end $$;
revoke execute on function uses_of from public;
