import { type HotStatement, type Sql, sql } from '../db/sql.ts';
import type { Delivery, OutboxEvent } from './outbox.ts';

/** Queues an event for the endpoints of a merchant (sql/005-rules.sql). */
export function announce({ merchantId, type, eventId, subjectId, data, now }: OutboxEvent): Sql {
  return sql`
select announce_to(${merchantId}, ${type}, ${eventId}::uuid, ${subjectId}::uuid,
  ${data && JSON.stringify(data)}::json, ${now})`;
}

/** The functions of sql/013-deliveries.sql. */
export const CLAIM_DELIVERIES: HotStatement = {
  name: 'claim-deliveries',
  background: true,
  text: 'select * from claim_deliveries($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)',
};

export const RECORD_ATTEMPTS: HotStatement = {
  name: 'record-attempts',
  background: true,
  text: 'select record_attempts($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)',
};

/**
 * Lists the journal rows of a bucket's deliveries and, for a reversal, the update that made it. Citus sends
 * a statement of one bucket to its shard; a list of buckets would be asked of every shard.
 */
export function listSubjects(bucket: number, ids: string): Sql {
  return sql`
select j.id as subject_id, j.id, j.kind, j.amount_minor, j.occurred_at, j.reference, j.serial_number,
  j.original_id, false as canceled, v.sealed, b.decimals, o.amount_minor as original_minor,
  o.occurred_at as original_at, o.reference as original_reference, u.reversal_id, u.new_id, u.new_minor,
  u.updated_at
from journal j
join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
join batches b on b.id = v.batch_id
left join redemption_updates u on u.bucket = j.bucket and u.original_id = j.original_id
  and u.reversal_id = j.id
left join journal o on o.bucket = u.bucket and o.id = u.original_id
where j.bucket = ${bucket} and j.id = any (${ids}::uuid[])`;
}

/** Releases a delivery that was claimed but not sent, unless another sender has taken it over. */
export function releaseDelivery({ bucket, endpoint_id, event_id, leaseUntil }: Delivery, now: Date): Sql {
  return sql`
update webhook_deliveries set due_at = ${now}
where bucket = ${bucket} and endpoint_id = ${endpoint_id} and event_id = ${event_id}
  and due_at = ${leaseUntil} and finished_at is null`;
}

/** Sets or clears the start of failures: the first failure after a success sets it, a success clears it. */
export function markEndpoint(id: number, isFailing: boolean, now: Date): Sql {
  return sql`
update webhook_endpoints set failing_since = case when ${isFailing}::boolean then ${now}::timestamptz end
where id = ${id} and (failing_since is null) = ${isFailing}::boolean`;
}

/** Disables an endpoint that answered 410, or one that has failed since before a time. */
export function disableEndpoint(id: number, isGone: boolean, failingBefore: Date, now: Date): Sql {
  return sql`
update webhook_endpoints set
  disabled_at = ${now},
  disabled_reason = case
    when ${isGone}::boolean then 'it answered 410 Gone'
    else 'it failed for five days'
  end
where id = ${id} and disabled_at is null and removed_at is null
  and (${isGone}::boolean or failing_since < ${failingBefore})
returning disabled_reason`;
}

/** Lists endpoints that are disabled or removed, but still have pending deliveries. */
export function listAbandoned(): Sql {
  return sql`
select id from webhook_endpoints
where (disabled_at is not null or removed_at is not null)
  and id in (select distinct d.endpoint_id from webhook_deliveries d where d.state = 'PENDING')
order by id limit 100`;
}

/** Ends some pending deliveries of a disabled endpoint. An operator can send them again. */
export function failPending(bucket: number, endpointId: number, count: number, now: Date): Sql {
  return sql`
with failed as (
  update webhook_deliveries set state = 'FAILED', finished_at = ${now}
  where bucket = ${bucket} and endpoint_id = ${endpointId} and event_id = any (array(
    select event_id from webhook_deliveries
    where bucket = ${bucket} and endpoint_id = ${endpointId} and state = 'PENDING'
    limit ${count} for update skip locked))
  returning 1
)
select count(*)::int as failed from failed`;
}

export function nextEndpointId(): Sql {
  return sql`select nextval(pg_get_serial_sequence('webhook_endpoints', 'id'))::int as id`;
}

export type NewEndpoint = {
  readonly id: number;
  readonly merchantId: number;
  readonly url: string;
  readonly events: readonly string[] | null;
  readonly full: boolean;
  readonly secret: Buffer;
  readonly now: Date;
};

export function insertEndpoint({ id, merchantId, url, events, full, secret, now }: NewEndpoint): Sql {
  return sql`
insert into webhook_endpoints (id, merchant_id, url, events, full_vouchers, secret, created_at)
values (${id}, ${merchantId}, ${url}, ${events}::text[], ${full}, ${secret}, ${now})`;
}

/** Deliveries in a state are counted up to this number, which then means "this many or more". */
const COUNT_MAX = 100;

/** Lists endpoints that were not removed, after an id. */
export function listEndpointRows(merchantId: number | null, id: number | null, most: number, after = 0): Sql {
  return sql`
select * from webhook_endpoints
where removed_at is null and id > ${after}
  and (${merchantId}::int is null or merchant_id = ${merchantId}::int)
  and (${id}::int is null or id = ${id}::int)
order by id limit ${most}`;
}

/** Counts the pending and the failed deliveries of each endpoint, each up to COUNT_MAX. */
export function countDeliveries(ids: readonly number[]): Sql {
  return sql`select id, pending, failed from count_deliveries(${ids}::integer[], ${COUNT_MAX})`;
}

export function countEndpoints(merchantId: number): Sql {
  return sql`
    select count(*)::int as count from webhook_endpoints
    where merchant_id = ${merchantId} and removed_at is null`;
}

/**
 * Lets one transaction at a time add endpoints of a merchant, so that their number stays within the limit.
 */
export function lockMerchant(merchantId: number): Sql {
  return sql`select id from merchants where id = ${merchantId} for no key update`;
}

export function lockEndpoint(id: number): Sql {
  return sql`select * from webhook_endpoints where id = ${id} and removed_at is null for update`;
}

export function removeEndpointRow(id: number, now: Date): Sql {
  return sql`update webhook_endpoints set removed_at = ${now} where id = ${id}`;
}

export function enableEndpointRow(id: number, now: Date): Sql {
  return sql`
update webhook_endpoints set
  disabled_at = null, disabled_reason = null, failing_since = null,
  enabled_at = case when disabled_at is null then enabled_at else ${now} end
where id = ${id}`;
}

export function rotateSecretRow(id: number, secret: Buffer, previousUntil: Date): Sql {
  return sql`
update webhook_endpoints set previous_secret = secret, previous_until = ${previousUntil}, secret = ${secret}
where id = ${id}`;
}

/** Lists deliveries of an endpoint, newest first: their ids are in the order of time. */
export function listDeliveryRows(
  endpointId: number,
  state: string | null,
  most: number,
  before: string | null,
): Sql {
  const values: unknown[] = [endpointId, most];
  const conditions = ['endpoint_id = $1'];
  // Failed deliveries have a separate index.
  if (state !== null)
    conditions.push(state === 'FAILED' ? "state = 'FAILED'" : `state = $${values.push(state)}`);
  if (before !== null) conditions.push(`event_id < $${values.push(before)}::uuid`);
  return {
    text: `
select event_id, type, occurred_at, state, attempts, due_at from webhook_deliveries
where ${conditions.join(' and ')} order by event_id desc limit $2`,
    values,
  };
}

/** Finds the last attempt of each of these events. */
export function listLastAttempts(endpointId: number, eventIds: string): Sql {
  return sql`
select distinct on (event_id) event_id, status, error, attempted_at from webhook_attempts
where endpoint_id = ${endpointId} and event_id = any (${eventIds}::uuid[])
order by event_id, number desc`;
}

export function listAttemptRows(endpointId: number, eventId: string): Sql {
  return sql`
select number, attempted_at, duration_ms, status, error from webhook_attempts
where endpoint_id = ${endpointId} and event_id = ${eventId} order by number`;
}

/** Sends one delivery again, in any state. A pending one is sent at once. */
export function resendOne(endpointId: number, eventId: string, now: Date): Sql {
  return sql`
update webhook_deliveries set state = 'PENDING', tries = 0, due_at = ${now}, finished_at = null
where endpoint_id = ${endpointId} and event_id = ${eventId} returning 1`;
}

/** Sends events again that failed since a time. Event ids begin with their time. */
export function resendFailed(endpointId: number, since: Date, floor: string, count: number, now: Date): Sql {
  return sql`
with again as (
  update webhook_deliveries d set state = 'PENDING', tries = 0, due_at = ${now}, finished_at = null
  from (
    select bucket, event_id from webhook_deliveries
    where endpoint_id = ${endpointId} and event_id >= ${floor}::uuid and occurred_at >= ${since}
      and state = 'FAILED'
    order by event_id limit ${count}
  ) f
  where d.bucket = f.bucket and d.endpoint_id = ${endpointId} and d.event_id = f.event_id
    and d.state = 'FAILED'
  returning 1
)
select count(*)::int as count from again`;
}

/** Inserts a test that is already claimed by this process, which sends it. */
export function insertTest(
  bucket: number,
  endpointId: number,
  eventId: string,
  type: string,
  now: Date,
  leaseUntil: Date,
): Sql {
  return sql`
insert into webhook_deliveries (bucket, endpoint_id, event_id, type, data, occurred_at, due_at)
values (${bucket}, ${endpointId}, ${eventId}, ${type}, '{}', ${now}, ${leaseUntil})`;
}

/** Finds an endpoint with the data for a test. */
export function findForTest(id: number, now: Date): Sql {
  return sql`
select e.merchant_id, e.url, e.full_vouchers, e.secret,
  case when e.previous_until > ${now} then e.previous_secret end as previous_secret, e.failing_since
from webhook_endpoints e where e.id = ${id} and e.removed_at is null`;
}

/** Drops the oldest month whose deliveries are no longer kept. Returns it, or null. */
export function dropOldDeliveries(before: Date): Sql {
  return sql`select drop_old_deliveries(${before}) as month`;
}
