import { type Sql, sql } from '../db/sql.ts';
import type { Announcement } from './announce.ts';

export function insertDeliveries(
  bucket: number,
  { merchantId, type, eventId, subjectId, data, now }: Announcement,
): Sql {
  return sql`
insert into webhook_deliveries (bucket, endpoint_id, event_id, type, subject_id, data, occurred_at, due_at)
select ${bucket}, e.id, ${eventId}, ${type}::text, ${subjectId}::uuid, ${data && JSON.stringify(data)}::json, ${now}, ${now}
from webhook_endpoints e
where e.merchant_id = ${merchantId} and e.disabled_at is null and e.removed_at is null
  and (e.events is null or ${type} = any (e.events))`;
}
