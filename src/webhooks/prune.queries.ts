import { type Sql, sql } from '../db/sql.ts';

/** Forgets what is older than it has to be kept, a part at a time. */
export function deleteOldAttempts(before: Date, floor: string, most: number): Sql {
  return sql`
with old as (
  select a.endpoint_id, a.event_id, a.number from webhook_endpoints e
  cross join lateral (
    select n.endpoint_id, n.event_id, n.number from webhook_attempts n
    where n.endpoint_id = e.id and n.event_id < ${floor}::uuid and n.attempted_at < ${before} limit ${most}
  ) a
  limit ${most}
), gone as (
  delete from webhook_attempts a using old
  where a.endpoint_id = old.endpoint_id and a.event_id = old.event_id and a.number = old.number returning 1
)
select count(*)::int as deleted from gone`;
}

export function deleteOldDeliveries(before: Date, floor: string, most: number): Sql {
  return sql`
with old as (
  select d.endpoint_id, d.event_id from webhook_endpoints e
  cross join lateral (
    select n.endpoint_id, n.event_id from webhook_deliveries n
    where n.endpoint_id = e.id and n.event_id < ${floor}::uuid and n.finished_at < ${before} limit ${most}
  ) d
  limit ${most}
), gone as (
  delete from webhook_deliveries d using old where d.endpoint_id = old.endpoint_id and d.event_id = old.event_id returning 1
)
select count(*)::int as deleted from gone`;
}

/** What waited for an endpoint that was removed never ends by itself: it goes as long after the endpoint's own end. */
export function deleteAbandonedDeliveries(before: Date, _floor: string, most: number): Sql {
  return sql`
with abandoned as (
  select d.endpoint_id, d.event_id from webhook_endpoints e
  cross join lateral (
    select n.endpoint_id, n.event_id from webhook_deliveries n
    where n.endpoint_id = e.id and n.state = 'PENDING' limit ${most}
  ) d
  where e.removed_at < ${before}
  limit ${most}
), gone as (
  delete from webhook_deliveries d using abandoned a
  where d.endpoint_id = a.endpoint_id and d.event_id = a.event_id returning 1
)
select count(*)::int as deleted from gone`;
}
