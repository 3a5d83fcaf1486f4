import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { REQUESTED } from '../figure.ts';
import { idFloor, newId } from '../ledger/id.ts';
import { listing, listingAll } from '../listing.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { CONNECT, SEE_KEYS } from '../principal.ts';
import { invalid, notFound, Problem, requireRow } from '../problem.ts';
import { columnsOf } from '../row.ts';
import {
  Count,
  Nullable,
  NullableText,
  NullableTime,
  Opening,
  Start,
  Text,
  Time,
  Titled,
  toId,
  UUID,
  Word,
} from '../schema.ts';
import { toStart } from '../zone.ts';
import { LEASE_MS, prepare } from './deliver.ts';
import { EndpointId, requireEndpoint, requireUrl } from './endpoints.ts';
import { type Delivery, makeBodies, TEST_EVENT } from './outbox.ts';
import { judgeEndpoints, recordAttempts } from './record.ts';
import { type Attempt, createSender, type Sender } from './send.ts';

/** Webhook deliveries: an event for each endpoint that takes it, and the attempts to send it. */

/** The id of an event, also as the header webhook-id has it. */
const EventId = Type.String({
  pattern: `^(msg_[0-9a-f]{32}|${UUID})$`,
  description: 'The id of the event, or the header webhook-id of a delivery.',
  examples: ['0198c2f0-4a1b-7c3d-8e5f-0123456789ab'],
});

const eventIdOf = (text: string) => text.replace(/^msg_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

const STATES = ['PENDING', 'DELIVERED', 'FAILED', 'KEPT'] as const;

const AttemptSchema = Type.Object({
  number: Opening(REQUESTED, Count),
  at: Time,
  durationMs: Opening(REQUESTED, Count),
  status: Nullable(Opening(REQUESTED, Type.Integer())),
  error: NullableText,
});

const LastAttempt = Type.Object({
  at: Time,
  status: Nullable(Opening(REQUESTED, Type.Integer())),
  error: NullableText,
});

const DeliverySchema = Type.Object({
  eventId: Text,
  type: Text,
  occurredAt: Time,
  state: Word(STATES),
  attempts: Count,
  dueAt: Titled('Next attempt', NullableTime),
  lastAttempt: Type.Unsafe<Static<typeof LastAttempt> | null>({ ...LastAttempt, type: ['object', 'null'] }),
});

export type WebhookDelivery = Static<typeof DeliverySchema>;
type WebhookAttempt = Static<typeof AttemptSchema>;

/** The most tests that one person or token sends within a minute: each is a request to any public address. */
const TESTS_MAX = 10;

/** A delivery with its last attempt; `at` is null if there was none. */
type ListedDelivery = Omit<WebhookDelivery, 'lastAttempt'> &
  Omit<Static<typeof LastAttempt>, 'at'> & { readonly at: Date | null };

const COLUMNS = columnsOf(Type.Omit(DeliverySchema, ['lastAttempt']), 'd', {
  dueAt: sql`case when d.state = 'PENDING' then d.due_at end`,
});

/** Lists deliveries of an endpoint, newest first, before the id of an event: ids are in the order of time. */
export async function listDeliveries(
  db: Queries,
  endpointId: number,
  state: WebhookDelivery['state'] | null,
  count: number,
  before: string | null = null,
): Promise<WebhookDelivery[]> {
  // Failed deliveries have an index of their own, which a parameter would not find.
  const inState = state === 'FAILED' ? sql`d.state = 'FAILED'` : sql`d.state = ${state}`;
  const rows = await db.query<ListedDelivery>(sql`
select ${COLUMNS}, a.attempted_at as at, a.status, a.error
from webhook_deliveries d
left join webhook_attempts a on a.bucket = d.bucket and a.endpoint_id = d.endpoint_id
  and a.event_id = d.event_id and a.number = d.attempts
where d.endpoint_id = ${endpointId} ${state === null ? sql`` : sql`and ${inState}`}
  ${before === null ? sql`` : sql`and d.event_id < ${before}::uuid`}
order by d.event_id desc limit ${count}`);
  return rows.map(({ at, status, error, ...row }) => ({ ...row, lastAttempt: at && { at, status, error } }));
}

/** Lists every attempt to deliver an event to an endpoint, oldest first. */
export async function listAttempts(
  db: Queries,
  endpointId: number,
  eventId: string,
): Promise<WebhookAttempt[]> {
  return db.query(sql`
select ${columnsOf(AttemptSchema, undefined, { at: sql`attempted_at` })} from webhook_attempts
where endpoint_id = ${endpointId} and event_id = ${eventId} order by number`);
}

/** The number of deliveries that one transaction sends again. */
const RESEND_PART = 5_000;

/**
 * Sends one event again, or all events that failed since a time, with all their attempts.
 * @returns how many
 */
export async function resend(
  operator: Operator,
  endpointId: number,
  what: { readonly eventId: string } | { readonly failedSince: Date },
): Promise<number> {
  const { db, clock } = operator.service;
  const now = clock();
  const part = async (tx: Queries): Promise<number> => {
    const again = sql`state = 'PENDING', tries = 0, due_at = ${now}, finished_at = null`;
    if ('eventId' in what) {
      // In any state. A pending one is sent at once.
      const rows = await tx.query(sql`
update webhook_deliveries set ${again}
where endpoint_id = ${endpointId} and event_id = ${what.eventId} returning 1`);
      return rows.length;
    }
    // Event ids begin with their time.
    const [row] = await tx.query<{ count: number }>(sql`
with again as (
  update webhook_deliveries d set ${again}
  from (
    select bucket, event_id from webhook_deliveries
    where endpoint_id = ${endpointId} and event_id >= ${idFloor(what.failedSince)}::uuid
      and occurred_at >= ${what.failedSince} and state = 'FAILED'
    order by event_id limit ${RESEND_PART}
  ) f
  where d.bucket = f.bucket and d.endpoint_id = ${endpointId} and d.event_id = f.event_id
    and d.state = 'FAILED'
  returning 1
)
select count(*)::int as count from again`);
    return row?.count ?? 0;
  };
  for (let total = 0; ; ) {
    const count = await db.transaction(async (tx) => {
      const sent = await part(tx);
      const subject = `webhook ${endpointId}`;
      if (sent > 0)
        await audit(tx, operator, { action: 'webhook.resend', subject, after: { ...what, count: sent } });
      return sent;
    });
    total += count;
    if ('eventId' in what || count < RESEND_PART) return total;
  }
}

/**
 * Sends a test to an endpoint once, directly from this process, even if the endpoint is disabled.
 * @throws Problem if there is no such endpoint
 */
async function sendTest(operator: Operator, sender: Sender, endpointId: number): Promise<Attempt> {
  const { service } = operator;
  const now = service.clock();
  const leaseUntil = new Date(now.getTime() + LEASE_MS);
  const eventId = newId(now);
  const delivery = await service.db.transaction(async (tx): Promise<Delivery> => {
    const { merchantId, ...endpoint } = await requireRow<TestedEndpoint>(
      tx,
      sql`
select merchant_id as "merchantId", url, full_vouchers as "full", secret,
  case when previous_until > ${now} then previous_secret end as "previousSecret",
  failing_since as "failingSince"
from webhook_endpoints where id = ${endpointId} and removed_at is null`,
      `endpoint ${endpointId}`,
    );
    const bucket = service.buckets.ofMerchant(merchantId);
    // It is already claimed by this process, which sends it.
    await tx.query(sql`
insert into webhook_deliveries (bucket, endpoint_id, event_id, type, data, occurred_at, due_at)
values (${bucket}, ${endpointId}, ${eventId}, ${TEST_EVENT}, '{}', ${now}, ${leaseUntil})`);
    await audit(tx, operator, {
      action: 'webhook.test',
      subject: `webhook ${endpointId}`,
      after: { eventId },
      perMinute: TESTS_MAX,
    });
    const event = { eventId, type: TEST_EVENT, subjectId: null, data: {}, occurredAt: now };
    return { ...endpoint, ...event, bucket, endpointId, leaseUntil, attempts: 0, tries: 0 };
  });
  const [body] = await makeBodies(service, [delivery], async () => undefined);
  if (typeof body !== 'string') throw body;
  const attempt = await sender.send(prepare(service, delivery, body));
  const made = [{ delivery, attempt, final: true }];
  await recordAttempts(service, made);
  await judgeEndpoints(service, made);
  return attempt;
}

type TestedEndpoint = Pick<Delivery, 'url' | 'full' | 'secret' | 'previousSecret' | 'failingSince'> & {
  readonly merchantId: number;
};

const test = changing({
  name: 'webhook.test',
  title: 'Send a test',
  summary: 'Send an event webhook.test to an endpoint, once, and answer with the outcome',
  path: '/webhooks/:id/test',
  input: { id: EndpointId },
  output: Type.Object({
    delivered: Type.Boolean(),
    status: Nullable(Opening(REQUESTED, Type.Integer())),
    durationMs: Opening(REQUESTED, Count),
    error: NullableText,
  }),
  outcome: 'delivered',
  roles: CONNECT,
  approval: alone('The event contains nothing of the merchant.'),
  asksReason: false,
  effect: 'outside',
  async run(caller, { id }) {
    requireUrl(await requireEndpoint(caller, id));
    const { clock, allowPrivateWebhooks = false } = caller.service;
    const sender = createSender({ allowPrivate: allowPrivateWebhooks, clock });
    const sent = sendTest(caller, sender, toId(id)).finally(() => sender.close());
    const { status, durationMs, error } = await sent;
    return { delivered: error === null, status, durationMs, error };
  },
});

const list = listing({
  name: 'webhook.deliveries',
  summary: 'List the deliveries to an endpoint, newest first',
  path: '/webhooks/:id/deliveries',
  filters: { id: EndpointId, state: Type.Optional(Word(STATES)) },
  item: DeliverySchema,
  columns: ['eventId', 'type', 'occurredAt', 'state', 'attempts', 'lastAttempt', 'dueAt'],
  roles: SEE_KEYS,
  async rows(caller, { id, state = null }, [before = null], count) {
    await requireEndpoint(caller, id);
    return listDeliveries(
      caller.service.readDb,
      toId(id),
      state,
      count,
      before === null ? null : String(before),
    );
  },
  position: ({ eventId }) => [eventId],
});

const attempts = listingAll({
  name: 'webhook.attempts',
  summary: 'List every attempt to deliver an event to an endpoint, the first one first',
  path: '/webhooks/:id/deliveries/:eventId',
  command: 'webhook deliveries',
  input: { id: EndpointId, eventId: Type.String({ ...EventId, option: 'event' }) },
  item: AttemptSchema,
  roles: SEE_KEYS,
  async rows(caller, { id, eventId }) {
    await requireEndpoint(caller, id);
    return listAttempts(caller.service.readDb, toId(id), eventIdOf(eventId));
  },
});

const sendAgain = changing({
  name: 'webhook.resend',
  title: 'Send again',
  summary: 'Send deliveries again: one event, or all that failed since a time',
  path: '/webhooks/:id/resend',
  input: {
    id: EndpointId,
    eventId: Type.Optional(EventId),
    failedSince: Type.Optional(Start('All that failed and happened since then.')),
  },
  output: Type.Object({ resent: Count }),
  roles: CONNECT,
  approval: alone('It sends what was sent before, to the same address.'),
  // Thousands of events are sent again in several transactions.
  effect: 'outside',
  async run(caller, { id, eventId, failedSince }) {
    if ((eventId === undefined) === (failedSince === undefined))
      throw invalid('eventId', 'required', 'or `failedSince` is required, and not both');
    const endpoint = await requireEndpoint(caller, id);
    requireUrl(endpoint);
    if (endpoint.disabledAt) throw new Problem('conflict', `endpoint ${id} is off: enable it first`);
    const what =
      eventId === undefined
        ? { failedSince: await toStart(caller, failedSince ?? '', 'failedSince') }
        : { eventId: eventIdOf(eventId) };
    const resent = await resend(caller, toId(id), what);
    if (resent === 0 && eventId !== undefined) throw notFound(`event ${eventId} of endpoint ${id}`);
    return { resent };
  },
});

export const deliveries = { test, list, attempts, resend: sendAgain };

export const OPERATIONS = tableOf(...Object.values(deliveries));
