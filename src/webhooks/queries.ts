import { type Sql, sql } from '../db/sql.ts';
import type { Announcement } from './announce.ts';

export function insertDeliveries({ merchantId, type, eventId, subjectId, data, now }: Announcement): Sql {
  return sql`
insert into webhook_deliveries (endpoint_id, event_id, type, subject_id, data, occurred_at, due_at)
select e.id, ${eventId}, ${type}::text, ${subjectId}::uuid, ${data && JSON.stringify(data)}::json, ${now}, ${now}
from webhook_endpoints e
where e.merchant_id = ${merchantId} and e.disabled_at is null and e.removed_at is null
  and (e.events is null or ${type} = any (e.events))`;
}

/**
 * For a statement of the hot path: what stands behind `cross join lateral`, an id for each open endpoint of a merchant that takes an
 * event. Joined freely, all endpoints of all merchants would be read for each statement: OFFSET keeps the look-up a look-up.
 * @param merchantId as SQL, such as `p.merchant_id`
 * @param type of the event, as SQL too
 */
export function openEndpoints(merchantId: string, type: string): string {
  return `(
    select n.id from webhook_endpoints n
    where n.merchant_id = ${merchantId} and n.disabled_at is null and n.removed_at is null
      and (n.events is null or ${type} = any (n.events))
    offset 0
  )`;
}
