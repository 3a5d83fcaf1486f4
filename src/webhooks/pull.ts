import Type from 'typebox';
import type { Service } from '../context.ts';
import type { Database, Queries } from '../db/pool.ts';
import { plainArray, sql } from '../db/sql.ts';
import { reading } from '../operation.ts';
import { CONNECT } from '../principal.ts';
import { invalid, notFound, Problem, requireRow } from '../problem.ts';
import { MerchantId, Text, toId } from '../schema.ts';
import { EndpointId, ownerIdOf } from './endpoints.ts';
import { type KeptEvent, makeBodies, webhookId } from './outbox.ts';

/**
 * Events that a merchant or the operator reads instead of having them sent: those of a pull endpoint,
 * which has no URL (docs/reference/webhooks.md, "Read events").
 *
 * Ids of events begin with a time, but a transaction may commit after others with higher ids: a reader that
 * continued after the last id would miss its event. So events get positions when they are read, under the
 * lock of their endpoint. What commits later gets a higher position.
 */

const LIMIT = 100;

type PullEndpoint = { readonly id: number; readonly positions: bigint; readonly lostTo: bigint };

type PositionedEvent = KeptEvent & { readonly position: bigint };

export const listEvents = reading({
  name: 'event.list',
  summary: 'Read the events of a pull endpoint, each at least once, in the order in which they became known',
  description:
    'The items of webhooks: `{type, timestamp, data}` is the body of a delivery, `id` its webhook-id. `nextCursor` ' +
    'is never null: ask again after it, and with fewer items than `limit` wait a second or more first. Events are ' +
    'kept for 90 days. A cursor after which events are no longer kept is refused (`gone`).',
  path: '/events',
  command: { none: '`scrip-client listen --pull` reads them, and `scrip webhook deliveries` lists them.' },
  input: {
    merchantId: Type.Optional({
      ...MerchantId,
      description: 'Whose events; left out: those of the operator.',
    }),
    endpoint: Type.Optional({ ...EndpointId, description: 'The pull endpoint; left out: the only one.' }),
    after: Type.Optional(
      Type.String({
        pattern: '^[1-9][0-9]{0,9}-[0-9]{1,18}$',
        description: 'The `nextCursor` of the answer before. Left out: from the oldest event that is kept.',
        examples: ['3-1207'],
      }),
    ),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 200, default: LIMIT, description: 'The highest number of items.' }),
    ),
  },
  output: Type.Object({
    items: Type.Array(
      Type.Object({
        id: Type.String({ description: 'The same for each copy of the event, also in webhook-id.' }),
        type: Text,
        timestamp: Text,
        data: Type.Unsafe<object>({ type: 'object' }),
      }),
    ),
    nextCursor: Text,
  }),
  roles: CONNECT,
  async run(caller, { merchantId, endpoint, after, limit = LIMIT }) {
    const { service } = caller;
    const owner = await ownerIdOf(caller, merchantId);
    const { id, positions, lostTo } = await requirePull(service.db, owner, endpoint ?? after?.split('-')[0]);
    const from = after === undefined ? lostTo : positionOf(after, id);
    if (from > positions)
      throw invalid('after', 'cursor', 'is ahead of the events: begin without it (was a backup restored?)');
    if (from < lostTo)
      throw new Problem(
        'gone',
        'events after this cursor are no longer kept: begin without it, and compare with the list of transactions',
      );
    const events = await readEvents(service, id, from, limit);
    // A pull endpoint is not `full`, so no body contains vouchers.
    const bodies = await makeBodies(service, events, async () => undefined);
    const items = events.map(({ eventId }, index) => ({ id: webhookId(eventId), ...parsed(bodies[index]) }));
    return { items, nextCursor: `${id}-${events.at(-1)?.position ?? from}` };
  },
});

function parsed(body: string | Error | undefined) {
  if (typeof body !== 'string') throw body;
  return JSON.parse(body) as { type: string; timestamp: string; data: object };
}

/** Returns the position of a cursor. @throws Problem for one of another endpoint */
function positionOf(cursor: string, endpointId: number): bigint {
  const [id, position = ''] = cursor.split('-');
  if (id !== String(endpointId)) throw invalid('after', 'cursor', 'is of another endpoint');
  return BigInt(position);
}

/**
 * Returns a pull endpoint of a merchant.
 * @param text its id; undefined: the only one
 * @throws Problem
 */
async function requirePull(db: Queries, merchantId: number, text: string | undefined): Promise<PullEndpoint> {
  const named = text === undefined ? sql`` : sql`and id = ${toId(text, 'endpoint')}`;
  const [found, another] = await db.query<PullEndpoint>(sql`
select id, positions, lost_to as "lostTo" from webhook_endpoints
where merchant_id = ${merchantId} and url is null and removed_at is null ${named} order by id limit 2`);
  if (another) throw invalid('endpoint', 'required', 'is required: there are several pull endpoints');
  if (found) return found;
  if (text !== undefined) throw notFound(`pull endpoint ${text}`);
  throw invalid('endpoint', 'required', 'does not exist yet: add a webhook endpoint with `pull`');
}

/** Reads events after a position, and gives positions to new ones if there are not enough. */
async function readEvents(
  { db }: Service,
  endpointId: number,
  after: bigint,
  count: number,
): Promise<PositionedEvent[]> {
  const events = await listPositioned(db, endpointId, after, count);
  if (events.length === count || !(await givePositions(db, endpointId, count))) return events;
  return listPositioned(db, endpointId, after, count);
}

async function listPositioned(
  db: Queries,
  endpointId: number,
  after: bigint,
  count: number,
): Promise<PositionedEvent[]> {
  const events = await db.query<PositionedEvent>(sql`
select bucket, event_id as "eventId", type, subject_id as "subjectId", data, occurred_at as "occurredAt", position
from webhook_deliveries
where endpoint_id = ${endpointId} and state = 'KEPT' and position > ${after}
order by position limit ${count}`);
  // A commit reaches one shard after another. What follows a position that is not there yet is read later.
  const end = events.findIndex(({ position }, index) => position !== after + BigInt(index + 1));
  return end === -1 ? events : events.slice(0, end);
}

/**
 * Gives the next positions to events that have none, the oldest ids first.
 * @returns whether there were any
 */
async function givePositions(db: Database, endpointId: number, count: number): Promise<boolean> {
  const listNew = (tx: Queries) =>
    tx.query<{ bucket: number; eventId: string }>(sql`
select bucket, event_id as "eventId" from webhook_deliveries
where endpoint_id = ${endpointId} and state = 'KEPT' and position is null
order by event_id limit ${count}`);
  // Most readers find nothing new, and lock nothing.
  if ((await listNew(db)).length === 0) return false;
  await db.transaction(async (tx) => {
    const { positions } = await requireRow<Pick<PullEndpoint, 'positions'>>(
      tx,
      sql`select positions from webhook_endpoints where id = ${endpointId} for no key update`,
      `pull endpoint ${endpointId}`,
    );
    const events = (await listNew(tx)).map((event, index) => ({
      ...event,
      position: positions + BigInt(index + 1),
    }));
    for (const [bucket, each] of Map.groupBy(events, (event) => event.bucket)) {
      await tx.query(sql`
update webhook_deliveries d set position = u.position
from unnest(${plainArray(each.map(({ eventId }) => eventId))}::uuid[],
  ${plainArray(each.map(({ position }) => position))}::bigint[]) as u (event_id, position)
where d.bucket = ${bucket} and d.endpoint_id = ${endpointId} and d.event_id = u.event_id`);
    }
    const last = events.at(-1)?.position ?? positions;
    await tx.query(sql`update webhook_endpoints set positions = ${last} where id = ${endpointId}`);
  });
  return true;
}
