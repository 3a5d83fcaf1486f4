import { type Sql, sql } from '../db/sql.ts';

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
