import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, sql } from '../db/sql.ts';

/** Who stood at the till of the portal: for the people of the merchant, and of the operator. */

/** Notes that the caller, a person or a token of a merchant, booked transactions. */
export async function noteCashier({ service, actor }: Operator, ...ids: readonly string[]): Promise<void> {
  await service.db.query(sql`
insert into till_bookings (transaction_id, actor_kind, actor_id)
select id, ${actor.kind}, ${Number(actor.id)} from unnest(${plainArray(ids)}::uuid[]) as n (id)
on conflict do nothing`);
}

/**
 * Returns the names of those who booked transactions in the portal, by the ids of the transactions. A person
 * who was erased is a number.
 */
export async function findCashiers(
  db: Queries,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await db.query<{ id: string; name: string }>(sql`
select t.transaction_id as id, coalesce(u.name, o.name, t.actor_kind || ' ' || t.actor_id) as name
from till_bookings t
left join users u on t.actor_kind = 'user' and u.id = t.actor_id
left join operator_tokens o on t.actor_kind = 'token' and o.id = t.actor_id
where t.transaction_id = any (${plainArray(ids)}::uuid[])`);
  return new Map(rows.map(({ id, name }) => [id, name]));
}
