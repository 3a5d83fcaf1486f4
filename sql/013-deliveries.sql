-- 013: the queue of webhook deliveries. Senders take deliveries by bucket and endpoint.

-- Takes deliveries that are due and leases them until p_lease_until. If the sender dies, another one takes
-- them after that.
--
-- Endpoints take turns, starting after the last one visited. Each has its own limit: an endpoint with a
-- million deliveries, or one that never answers, takes no capacity from the others. An endpoint that fails
-- has a lower limit. Only endpoints with pending deliveries are visited, one index look-up each, and at most
-- p_visits of them. The next call continues after the last one. In: p_busy and p_in_flight, the endpoints and
-- the number of their deliveries in flight in this process; the limits for each endpoint, for one that fails,
-- and for all together. Out: the deliveries with the data to send them, and a last row with only the endpoint
-- after which the next call continues.
create function claim_deliveries(
  p_bucket integer, p_after integer, p_busy integer[], p_in_flight integer[], p_room_each integer,
  p_room_failing integer, p_room_all integer, p_visits integer, p_now timestamptz, p_lease_until timestamptz
) returns table (
  endpoint_id integer, event_id uuid, type text, subject_id uuid, data json, occurred_at timestamptz,
  attempts smallint, tries smallint, url text, full_vouchers boolean, secret bytea, previous_secret bytea,
  failing_since timestamptz
)
language plpgsql
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
-- The index of what is due has the order of both queries. A sort would read all that is pending.
set enable_sort = off set enable_incremental_sort = off
as $$
#variable_conflict use_column
declare
  -- Partitions of the future, and those about to be dropped, contain nothing pending.
  lowest uuid := id_floor(p_now, '-130 days');
  highest uuid := id_floor(p_now, '2 days');
  at integer := p_after;
  wrapped boolean := p_after = 0;
  first_due timestamptz;
  room integer;
  left_all integer := p_room_all;
  taken integer;
  e webhook_endpoints;
begin
  for visit in 1 .. p_visits loop
    select d.endpoint_id, d.due_at into at, first_due from webhook_deliveries d
    where d.bucket = p_bucket and d.state = 'PENDING' and d.endpoint_id > at and d.event_id >= lowest
      and d.event_id < highest
    order by d.endpoint_id, d.due_at limit 1;
    if not found then
      at := 0;
      exit when wrapped;
      wrapped := true;
      continue;
    end if;
    exit when wrapped and p_after > 0 and at > p_after;
    continue when first_due > p_now;
    select * into e from webhook_endpoints r where r.id = at;
    continue when not found or e.disabled_at is not null or e.removed_at is not null;
    room := case when e.failing_since is null then p_room_each else p_room_failing end
      - coalesce(p_in_flight[array_position(p_busy, at)], 0);
    continue when room <= 0;
    return query
      update webhook_deliveries w set due_at = p_lease_until
      where w.bucket = p_bucket and w.endpoint_id = at and w.event_id = any (array(
        select d.event_id from webhook_deliveries d
        where d.bucket = p_bucket and d.endpoint_id = at and d.state = 'PENDING' and d.due_at <= p_now
          and d.event_id >= lowest and d.event_id < highest
        order by d.due_at limit least(room, left_all) for update skip locked))
      returning w.endpoint_id, w.event_id, w.type, w.subject_id, w.data, w.occurred_at, w.attempts, w.tries,
        e.url, e.full_vouchers, e.secret,
        case when e.previous_until > p_now then e.previous_secret end, e.failing_since;
    get diagnostics taken = row_count;
    left_all := left_all - taken;
    exit when left_all <= 0;
  end loop;
  endpoint_id := at;
  return next;
end $$;

-- Records attempts and the resulting states of deliveries. An attempt counts when it was made, not when its
-- delivery was taken: a sender that dies before it sends uses no try up. If another sender has taken a
-- delivery over (p_leases: the end of the lease under which the attempt was made), its state is kept, unless
-- this attempt succeeded. Safe to repeat: an attempt is recognized by its time. In: parallel arrays:
-- endpoint, event, end of the lease, time, duration in milliseconds, status or null, error or null, state,
-- next attempt or null.
create function record_attempts(
  p_bucket integer, p_endpoints integer[], p_events uuid[], p_leases timestamptz[], p_times timestamptz[],
  p_durations integer[], p_statuses smallint[], p_errors text[], p_states delivery_state[],
  p_due timestamptz[], p_now timestamptz
) returns void
language plpgsql
set search_path = scrip, pg_temp set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set enable_bitmapscan = off
as $$
declare
  numbers smallint[]; -- null: recorded before, or the delivery is gone
  are_own boolean[];
begin
  perform from webhook_deliveries d
    where d.bucket = p_bucket and d.endpoint_id = any (p_endpoints) and d.event_id = any (p_events)
    order by d.endpoint_id, d.event_id for update;
  select array_agg(case when r.number is null then (d.attempts + 1)::smallint end order by a.ord),
    array_agg(d.finished_at is null and (d.due_at = a.lease or a.state = 'DELIVERED') order by a.ord)
  into numbers, are_own
  from unnest(p_endpoints, p_events, p_leases, p_times, p_states) with ordinality
    as a (endpoint_id, event_id, lease, attempted_at, state, ord)
  left join lateral (
    select w.attempts, w.due_at, w.finished_at from webhook_deliveries w
    where w.bucket = p_bucket and w.endpoint_id = a.endpoint_id and w.event_id = a.event_id limit 1
  ) d on true
  left join lateral (
    select w.number from webhook_attempts w
    where w.bucket = p_bucket and w.endpoint_id = a.endpoint_id and w.event_id = a.event_id
      and w.attempted_at = a.attempted_at limit 1
  ) r on true;
  insert into webhook_attempts (bucket, endpoint_id, event_id, number, attempted_at, duration_ms,
    status, error)
  select k.bucket, t.endpoint_id, t.event_id, t.number, t.attempted_at, t.duration_ms, t.status, t.error
  from buckets k
  cross join unnest(p_endpoints, p_events, numbers, p_times, p_durations, p_statuses, p_errors)
    as t (endpoint_id, event_id, number, attempted_at, duration_ms, status, error)
  where k.bucket = p_bucket and t.number is not null
  on conflict do nothing;
  -- No new row: the attempts were recorded before, or the bucket is missing, which is an error.
  perform expect_rows('webhook_attempts', 0, cardinality(p_events))
  where not found and not exists (select from buckets k where k.bucket = p_bucket);
  update webhook_deliveries d set attempts = t.number, tries = d.tries + 1,
    state = case when t.is_own then t.state else d.state end,
    due_at = case when t.is_own then coalesce(t.due_at, d.due_at) else d.due_at end,
    finished_at = case when t.is_own and t.state <> 'PENDING' then p_now else d.finished_at end
  from unnest(p_endpoints, p_events, numbers, are_own, p_states, p_due)
    as t (endpoint_id, event_id, number, is_own, state, due_at)
  where d.bucket = p_bucket and d.endpoint_id = t.endpoint_id and d.event_id = t.event_id
    and t.number is not null;
end $$;

-- Returns how many deliveries are pending and how many failed at each endpoint, both counted up to p_most. On
-- several shards, one statement can read only one endpoint.
create function count_deliveries(p_endpoints integer[], p_most integer) returns table (
  id integer, pending bigint, failed bigint
)
language plpgsql stable set search_path = scrip, pg_temp as $$
begin
  foreach id in array p_endpoints loop
    select count(*) into pending from (
      select 1 from webhook_deliveries d where d.endpoint_id = id and d.state = 'PENDING' limit p_most
    ) p;
    select count(*) into failed from (
      select 1 from webhook_deliveries d where d.endpoint_id = id and d.state = 'FAILED' limit p_most
    ) f;
    return next;
  end loop;
end $$;

revoke execute on function claim_deliveries, record_attempts, count_deliveries from public;
grant execute on function claim_deliveries, record_attempts, count_deliveries to scrip_service;
