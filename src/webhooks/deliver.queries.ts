import { type HotStatement, type Sql, sql } from '../db/sql.ts';

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
 * The journal rows that deliveries report and, of a reversal, the update that made it. In: arrays side by side, bucket and id.
 */
export function listSubjects(buckets: string, ids: string): Sql {
  return sql`
select j.id as subject_id, j.id, j.kind, j.amount_minor, j.occurred_at, j.reference, j.serial_number, j.original_id, false as canceled,
  v.sealed, b.decimals, o.amount_minor as original_minor, o.occurred_at as original_at, o.reference as original_reference,
  u.reversal_id, u.new_id, u.new_minor, u.updated_at
from unnest(${buckets}::int[], ${ids}::uuid[]) as a (bucket, id)
join journal j on j.bucket = a.bucket and j.id = a.id
join vouchers v on v.bucket = j.bucket and v.serial_number = j.serial_number
join batches b on b.id = v.batch_id
left join redemption_updates u on u.bucket = j.bucket and u.original_id = j.original_id and u.reversal_id = j.id
left join journal o on o.bucket = u.bucket and o.id = u.original_id`;
}

/** Gives back deliveries that were taken and not sent. */
export function releaseDeliveries(bucket: number, endpointId: number, eventId: string, now: Date): Sql {
  return sql`
update webhook_deliveries set due_at = ${now}, attempts = attempts - 1, tries = tries - 1
where bucket = ${bucket} and endpoint_id = ${endpointId} and event_id = ${eventId} and finished_at is null`;
}

/** The first failure after a success starts the count of days, and a success ends it. */
export function markEndpoint(id: number, isFailing: boolean, now: Date): Sql {
  return sql`
update webhook_endpoints set failing_since = case when ${isFailing}::boolean then ${now}::timestamptz end
where id = ${id} and (failing_since is null) = ${isFailing}::boolean`;
}

/** Disables an endpoint that is gone, or one that has failed since before a time. */
export function disableEndpoint(id: number, isGone: boolean, failingBefore: Date, now: Date): Sql {
  return sql`
update webhook_endpoints set disabled_at = ${now},
  disabled_reason = case when ${isGone}::boolean then 'it answered 410 Gone' else 'it failed for five days' end
where id = ${id} and disabled_at is null and removed_at is null and (${isGone}::boolean or failing_since < ${failingBefore})
returning disabled_reason`;
}

/** Endpoints that are disabled or removed, and still have pending deliveries. */
export function listAbandoned(): Sql {
  return sql`
select id from webhook_endpoints e
where (disabled_at is not null or removed_at is not null)
  and exists (select from webhook_deliveries d where d.endpoint_id = e.id and d.state = 'PENDING')
order by id limit 100`;
}

/** Ends some of the pending deliveries of an endpoint that is off: they are not sent by themselves, and can be sent again by hand. */
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
