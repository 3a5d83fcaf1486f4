import Type, { type Static } from 'typebox';
import { toStart } from '../ledger/zone.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { CONNECT, SEE_KEYS } from '../principal.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import {
  Count,
  Input,
  Nullable,
  NullableText,
  NullableTime,
  Reason,
  Start,
  Text,
  Time,
  UUID,
  Word,
} from '../schema.ts';
import { listAttempts, listDeliveries, resend } from '../webhooks/deliveries.ts';
import { EndpointId, requireEndpoint } from './webhooks.ts';

/** The id of an event, also as the header webhook-id has it. */
const EventId = Type.String({
  pattern: `^(msg_[0-9a-f]{32}|${UUID})$`,
  description: 'The id of the event, or the header webhook-id of a delivery.',
  examples: ['0198c2f0-4a1b-7c3d-8e5f-0123456789ab'],
});

/** Returns the id of an event as the database has it. */
const eventIdOf = (text: string) => text.replace(/^msg_(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

const STATES = ['PENDING', 'DELIVERED', 'FAILED'] as const;

const Attempt = Type.Object({
  number: Count,
  at: Time,
  durationMs: Count,
  status: Nullable(Type.Integer()),
  error: NullableText,
});

const LastAttempt = Type.Object({ at: Time, status: Nullable(Type.Integer()), error: NullableText });

const Delivery = Type.Object({
  eventId: Text,
  type: Text,
  occurredAt: Time,
  state: Word(STATES),
  attempts: Count,
  dueAt: NullableTime,
  lastAttempt: Type.Unsafe<Static<typeof LastAttempt> | null>({ ...LastAttempt, type: ['object', 'null'] }),
});

export type WebhookDelivery = Static<typeof Delivery>;
export type WebhookAttempt = Static<typeof Attempt>;

const deliveries = reading({
  name: 'webhook.deliveries',
  summary: 'List the deliveries to an endpoint, newest first',
  method: 'GET',
  path: '/webhooks/:id/deliveries',
  command: 'webhook deliveries',
  input: Input({ id: EndpointId, ...PAGE, state: Type.Optional(Word(STATES)) }),
  output: Page(Delivery),
  columns: ['eventId', 'type', 'occurredAt', 'state', 'attempts', 'lastAttempt', 'dueAt'],
  roles: SEE_KEYS,
  async run(caller, { id, cursor, limit = 50, state }) {
    const endpoint = await requireEndpoint(caller, id);
    const [before = null] = readCursor(`deliveries ${id}`, { state }, cursor) ?? [];
    const position = before === null ? null : String(before);
    const rows = await listDeliveries(caller.service.readDb, endpoint.id, state ?? null, limit + 1, position);
    return pageOf(`deliveries ${id}`, { state }, rows, limit, ({ eventId }) => [eventId]);
  },
});

const attempts = reading({
  name: 'webhook.attempts',
  summary: 'List every attempt to deliver an event to an endpoint, the first one first',
  method: 'GET',
  path: '/webhooks/:id/deliveries/:eventId',
  command: 'webhook deliveries',
  input: Input({ id: EndpointId, eventId: Type.String({ ...EventId, option: 'event' }) }),
  output: Page(Attempt),
  roles: SEE_KEYS,
  async run(caller, { id, eventId }) {
    const endpoint = await requireEndpoint(caller, id);
    return {
      items: await listAttempts(caller.service.readDb, endpoint.id, eventIdOf(eventId)),
      nextCursor: null,
    };
  },
});

const sendAgain = changing({
  name: 'webhook.resend',
  summary: 'Send deliveries again: one event, or all that failed since a time',
  method: 'POST',
  path: '/webhooks/:id/resend',
  command: 'webhook resend',
  input: Input({
    id: EndpointId,
    eventId: Type.Optional(EventId),
    failedSince: Type.Optional(Start('All that failed and happened since then.')),
    reason: Reason,
  }),
  output: Type.Object({ resent: Count }),
  roles: CONNECT,
  approval: alone('It sends what was sent before, to the same address.'),
  // Thousands of events are sent again in several transactions.
  effect: 'outside',
  async run(caller, { id, eventId, failedSince }) {
    if ((eventId === undefined) === (failedSince === undefined))
      throw invalid('eventId', 'required', 'or `failedSince` is required, and not both');
    const endpoint = await requireEndpoint(caller, id);
    if (endpoint.disabledAt) throw new Problem('conflict', `endpoint ${id} is off: enable it first`);
    const what =
      eventId === undefined
        ? { failedSince: await toStart(caller, failedSince ?? '', 'failedSince') }
        : { eventId: eventIdOf(eventId) };
    const resent = await resend(caller, endpoint.id, what);
    if (resent === 0 && eventId !== undefined) throw notFound(`event ${eventId} of endpoint ${id}`);
    return { resent };
  },
});

export const deliveriesOfWebhooks = { deliveries, attempts, resend: sendAgain };

export const DELIVERIES = tableOf(...Object.values(deliveriesOfWebhooks));
