import { type HotStatement, type Sql, sql } from '../db/sql.ts';

/**
 * Takes deliveries that are due, for as many as there is room, and marks them as under way: a sender that dies is followed by
 * another one then.
 *
 * In:  columns $1 endpoint and $2 its number of deliveries under way in this process; $3 room for each endpoint, $4 for one
 *      that fails, $5 for all; $6 the endpoint served last; $7 the time, $8 until when they are taken.
 * Out: the deliveries, with what it takes to send them.
 *
 * Endpoints take turns, beginning behind the last one served, and each gets what its own room leaves, so that one with a
 * million waiting, or one that never answers, takes nothing from the others. One that fails gets less room.
 *
 * Prepared like the statements of the tills, for the same reason: planned anew against a table of which nothing is known yet
 * it read all of it, and a queue of 60,000 went out at a tenth of the speed. What is locked is written by its
 * place, since a join by the key was planned by reading the whole queue for as long as that was thought to be empty.
 */
export const CLAIM_DELIVERIES: HotStatement = {
  name: 'claim-deliveries',
  background: true,
  text: `
with due as materialized (
  select d.place, e.*
  from (
    select o.*, case when o.failing_since is null then $3::int else $4::int end - coalesce(b.under_way, 0) as room
    from webhook_endpoints o
    left join unnest($1::int[], $2::int[]) as b (endpoint_id, under_way) on b.endpoint_id = o.id
    where o.disabled_at is null and o.removed_at is null
    order by o.id <= $6::int, o.id
  ) e
  cross join lateral (
    select n.ctid as place from webhook_deliveries n
    where n.endpoint_id = e.id and n.state = 'PENDING' and n.due_at <= $7
    order by n.due_at
    limit greatest(0, e.room)
    for update skip locked
  ) d
  limit $5::int
)
update webhook_deliveries w set due_at = $8, attempts = w.attempts + 1, tries = w.tries + 1
from due
where w.ctid = due.place
returning w.endpoint_id, w.event_id, w.type, w.subject_id, w.data, w.occurred_at, w.attempts, w.tries,
  due.merchant_id, due.url, due.full_vouchers, due.secret, case when due.previous_until > $7 then due.previous_secret end as previous_secret,
  due.failing_since`,
};

/**
 * The journal rows that deliveries tell of: the row itself and, where it is a reversal, the redemption that it reverses and
 * the one in its place.
 */
export function listSubjects(ids: string): Sql {
  return sql`
select s.id as subject_id, j.id, j.kind, j.amount_minor, b.decimals, j.occurred_at, j.reference, j.serial_number, v.sealed,
  j.original_id, coalesce(j.id = s.original_id, false) as canceled
from journal s
cross join lateral (
  select s.*
  union all
  select o.* from journal o where s.kind = 'REDEMPTION_REVERSAL' and o.id = s.original_id
  union all
  select n.* from journal n where s.kind = 'REDEMPTION_REVERSAL' and n.original_id = s.original_id and n.kind = 'REDEMPTION'
) j
join vouchers v on v.serial_number = j.serial_number
join batches b on b.id = v.batch_id
where s.id = any (${ids}::uuid[])`;
}

/**
 * Records attempts and what becomes of their deliveries. One that was taken over by another sender meanwhile keeps what
 * that one wrote, unless it went through here.
 *
 * What is pending has no `finished_at`. With `state = 'PENDING'` the planner took the index of what is due, and read the whole
 * queue of an endpoint for each of its attempts: with 20,000 waiting, a thousand deliveries a second instead of nearly five. The arrays
 * leave it the look-up by the key alone: as equal columns they are merged or hashed for as long as the table is thought to be empty.
 *
 * In: columns $1 endpoint, $2 event, $3 number, $4 time, $5 duration in milliseconds, $6 status or null, $7 error or null,
 *     $8 state, $9 next try or null; and $10, the time.
 */
export const RECORD_ATTEMPTS: HotStatement = {
  name: 'record-attempts',
  background: true,
  text: `
with told as (
  select * from unnest($1::int[], $2::uuid[], $3::smallint[], $4::timestamptz[], $5::int[], $6::smallint[], $7::text[],
    $8::delivery_state[], $9::timestamptz[])
    as t (endpoint_id, event_id, number, attempted_at, duration_ms, status, error, state, due_at)
), recorded as (
  insert into webhook_attempts (endpoint_id, event_id, number, attempted_at, duration_ms, status, error)
  select endpoint_id, event_id, number, attempted_at, duration_ms, status, error from told
  on conflict do nothing
)
update webhook_deliveries d set state = t.state, due_at = coalesce(t.due_at, d.due_at),
  finished_at = case when t.state <> 'PENDING' then $10::timestamptz end
from told t
where d.endpoint_id = any (array[t.endpoint_id]) and d.event_id = any (array[t.event_id]) and d.finished_at is null
  and (d.attempts = t.number or t.state = 'DELIVERED')`,
};

/** Gives back what was taken and not sent. */
export function releaseDeliveries(endpointIds: string, eventIds: string, now: Date): Sql {
  return sql`
update webhook_deliveries d set due_at = ${now}, attempts = d.attempts - 1, tries = d.tries - 1
from unnest(${endpointIds}::int[], ${eventIds}::uuid[]) as t (endpoint_id, event_id)
where d.endpoint_id = t.endpoint_id and d.event_id = t.event_id and d.finished_at is null`;
}

/** The first failure behind a success starts the count of days, and a success ends it. */
export function markEndpoints(workingIds: string, failingIds: string, now: Date): Sql {
  return sql`
update webhook_endpoints e set failing_since = case when e.id = any (${workingIds}::int[]) then null else ${now}::timestamptz end
where (e.id = any (${workingIds}::int[]) and e.failing_since is not null)
  or (e.id = any (${failingIds}::int[]) and not e.id = any (${workingIds}::int[]) and e.failing_since is null)`;
}

/** Turns endpoints off: those that are gone, and those that have failed since before a time. */
export function disableEndpoints(goneIds: string, failingIds: string, failingBefore: Date, now: Date): Sql {
  return sql`
update webhook_endpoints e set disabled_at = ${now},
  disabled_reason = case when e.id = any (${goneIds}::int[]) then 'it answered 410 Gone' else 'it failed for five days' end
where e.disabled_at is null and e.removed_at is null
  and (e.id = any (${goneIds}::int[]) or (e.id = any (${failingIds}::int[]) and e.failing_since < ${failingBefore}))
returning e.id, e.disabled_reason`;
}

/** What waits for endpoints that are off is not sent by itself; it can be sent again by hand. */
export function failPending(endpointIds: string, now: Date): Sql {
  return sql`
update webhook_deliveries set state = 'FAILED', finished_at = ${now}
where endpoint_id = any (${endpointIds}::int[]) and state = 'PENDING'`;
}
