import Type, { type Static } from 'typebox';
import { Nullable, Word } from '../schema.ts';
import { ForbiddenAddress } from '../webhooks/address.ts';
import { listAttempts, listDeliveries, resend, sendTest } from '../webhooks/deliveries.ts';
import {
  addEndpoint,
  type Endpoint,
  enableEndpoint,
  findEndpoint,
  pageOfEndpoints,
  removeEndpoint,
  rotateSecret,
  TooManyEndpoints,
} from '../webhooks/endpoints.ts';
import { EVENTS } from '../webhooks/outbox.ts';
import { createSender } from '../webhooks/send.ts';
import { pageOf, readCursor } from './cursor.ts';
import {
  Count,
  Id,
  Input,
  MerchantId,
  NullableText,
  NullableTime,
  PAGE,
  Page,
  Reason,
  Secret,
  Start,
  Text,
  Time,
  TransactionId,
  toId,
  toStart,
} from './fields.ts';
import { requireMerchant } from './merchants.ts';
import { type Caller, changing, reading, tableOf } from './operations.ts';
import { invalid, notFound, Problem } from './problem.ts';
import { CONNECT, SEE_KEYS } from './rights.ts';

const STATES = ['PENDING', 'DELIVERED', 'FAILED'] as const;
const EndpointId = Id('endpoint');

const EndpointSchema = Type.Object({
  id: EndpointId,
  merchantId: MerchantId,
  enabled: Type.Boolean(),
  url: Text,
  events: Type.Unsafe<string[] | null>({ type: ['array', 'null'], items: Text, description: 'Null: all.' }),
  full: Type.Boolean({ description: "Whether a completed batch's vouchers are in its event." }),
  createdAt: Time,
  failingSince: NullableTime,
  disabledAt: NullableTime,
  disabledReason: NullableText,
  pending: Count,
  failed: Count,
});

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

export type WebhookEndpoint = Static<typeof EndpointSchema>;
export type WebhookDelivery = Static<typeof Delivery>;
export type WebhookAttempt = Static<typeof Attempt>;

function toJson({ id, merchantId, events, ...rest }: Endpoint): WebhookEndpoint {
  const enabled = rest.disabledAt === null;
  return { id: String(id), merchantId: String(merchantId), enabled, events: events && [...events], ...rest };
}

async function requireEndpoint({ service: { db } }: Caller, text: string): Promise<Endpoint> {
  const id = toId(text);
  const endpoint = await findEndpoint(db, id);
  if (!endpoint) throw notFound(`endpoint ${id}`);
  return endpoint;
}

const addOne = changing({
  name: 'webhook.add',
  summary: 'Add an endpoint, whose secret is shown once',
  method: 'POST',
  path: '/webhooks',
  command: 'webhook add',
  input: Input({
    merchantId: MerchantId,
    url: Type.String({
      minLength: 1,
      maxLength: 2000,
      description: 'An https URL with a public address.',
      examples: ['https://example.com/hooks'],
    }),
    events: Type.Optional(
      Type.Array(Word(EVENTS), { minItems: 1, uniqueItems: true, description: 'Left out: all.' }),
    ),
    full: Type.Optional(
      Type.Boolean({ description: "Put a completed batch's vouchers, with codes and PINs, into its event." }),
    ),
    reason: Reason,
  }),
  output: Type.Object({ id: EndpointId, secret: Secret }),
  roles: CONNECT,
  risk: 'step-up',
  // The name of its host is resolved before the transaction begins.
  effect: 'outside',
  status: 201,
  async run(caller, { merchantId, url, events = null, full = false }) {
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    const wanted = { merchantId: id, url, events, full };
    const added = await addEndpoint(caller, wanted, caller.service.allowPrivateWebhooks ?? false).catch(
      (error: Error) => {
        if (error instanceof ForbiddenAddress)
          throw invalid('url', 'address', `is refused: ${error.message}`);
        if (error instanceof TooManyEndpoints) throw new Problem('conflict', error.message);
        throw error;
      },
    );
    return { id: String(added.id), secret: added.secret };
  },
});

const list = reading({
  name: 'webhook.list',
  summary: 'List endpoints, oldest first',
  method: 'GET',
  path: '/webhooks',
  command: 'webhook list',
  input: Input({ ...PAGE, merchantId: Type.Optional(MerchantId) }),
  output: Page(EndpointSchema),
  roles: SEE_KEYS,
  async run(caller, { cursor, limit = 50, merchantId }) {
    const [after = 0] = readCursor('webhooks', { merchantId }, cursor) ?? [];
    const id = merchantId === undefined ? null : (await requireMerchant(caller, merchantId, 'merchantId')).id;
    const rows = await pageOfEndpoints(caller.service.readDb, id, Number(after), limit + 1);
    return pageOf('webhooks', { merchantId }, rows.map(toJson), limit, (each) => [Number(each.id)]);
  },
});

const show = reading({
  name: 'webhook.show',
  summary: 'Get an endpoint',
  method: 'GET',
  path: '/webhooks/:id',
  command: 'webhook show',
  input: Input({ id: EndpointId }),
  output: EndpointSchema,
  roles: SEE_KEYS,
  run: async (caller, { id }) => toJson(await requireEndpoint(caller, id)),
});

const remove = changing({
  name: 'webhook.remove',
  summary: 'Remove an endpoint; its deliveries stay visible for 90 days',
  method: 'POST',
  path: '/webhooks/:id/remove',
  command: 'webhook remove',
  input: Input({ id: EndpointId, reason: Reason }),
  output: Type.Object({ id: EndpointId, removed: Type.Boolean() }),
  roles: CONNECT,
  async run(caller, { id }) {
    const endpoint = await requireEndpoint(caller, id);
    await removeEndpoint(caller, endpoint.id);
    return { id, removed: true };
  },
});

const enable = changing({
  name: 'webhook.enable',
  summary: 'Turn a disabled endpoint on again',
  method: 'POST',
  path: '/webhooks/:id/enable',
  command: 'webhook enable',
  input: Input({ id: EndpointId, reason: Reason }),
  output: EndpointSchema,
  roles: CONNECT,
  async run(caller, { id }) {
    const endpoint = await requireEndpoint(caller, id);
    await enableEndpoint(caller, endpoint.id);
    return toJson(await requireEndpoint(caller, id));
  },
});

const rotate = changing({
  name: 'webhook.rotate',
  summary: 'Create a new secret for an endpoint; for 24 hours deliveries are signed with both',
  method: 'POST',
  path: '/webhooks/:id/rotate',
  command: 'webhook rotate',
  input: Input({ id: EndpointId, reason: Reason }),
  output: Type.Object({ id: EndpointId, secret: Secret, previousSecretUntil: Time }),
  roles: CONNECT,
  risk: 'step-up',
  async run(caller, { id }) {
    const endpoint = await requireEndpoint(caller, id);
    const rotated = await rotateSecret(caller, endpoint.id);
    if (!rotated) throw notFound(`endpoint ${id}`);
    return { id, secret: rotated.secret, previousSecretUntil: rotated.previousUntil };
  },
});

const test = changing({
  name: 'webhook.test',
  summary: 'Send an event webhook.test to an endpoint, once, and answer with the outcome',
  method: 'POST',
  path: '/webhooks/:id/test',
  command: 'webhook test',
  input: Input({ id: EndpointId, reason: Reason }),
  output: Type.Object({
    delivered: Type.Boolean(),
    status: Nullable(Type.Integer()),
    durationMs: Count,
    error: NullableText,
  }),
  roles: CONNECT,
  effect: 'outside',
  async run(caller, { id }) {
    const endpoint = await requireEndpoint(caller, id);
    const { clock, allowPrivateWebhooks = false } = caller.service;
    const sender = createSender({ allowPrivate: allowPrivateWebhooks, clock });
    const attempt = await sendTest(caller, sender, endpoint.id).finally(() => sender.close());
    if (!attempt) throw notFound(`endpoint ${id}`);
    const { status, durationMs, error } = attempt;
    return { delivered: error === null, status, durationMs, error };
  },
});

const deliveries = reading({
  name: 'webhook.deliveries',
  summary: 'List the deliveries to an endpoint, newest first',
  method: 'GET',
  path: '/webhooks/:id/deliveries',
  command: 'webhook deliveries',
  input: Input({ id: EndpointId, ...PAGE, state: Type.Optional(Word(STATES)) }),
  output: Page(Delivery),
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
  input: Input({ id: EndpointId, eventId: TransactionId }),
  output: Page(Attempt),
  roles: SEE_KEYS,
  async run(caller, { id, eventId }) {
    const endpoint = await requireEndpoint(caller, id);
    return { items: await listAttempts(caller.service.readDb, endpoint.id, eventId), nextCursor: null };
  },
});

const sendAgain = changing({
  name: 'webhook.resend',
  summary: 'Send again: one event, or all that failed since a time',
  method: 'POST',
  path: '/webhooks/:id/resend',
  command: 'webhook resend',
  input: Input({
    id: EndpointId,
    eventId: Type.Optional(TransactionId),
    failedSince: Type.Optional(Start('All that failed and happened since then.')),
    reason: Reason,
  }),
  output: Type.Object({ resent: Count }),
  roles: CONNECT,
  // Thousands of events are sent again in several transactions.
  effect: 'outside',
  async run(caller, { id, eventId, failedSince }) {
    if ((eventId === undefined) === (failedSince === undefined))
      throw invalid('eventId', 'required', 'or failedSince is required, and not both');
    const endpoint = await requireEndpoint(caller, id);
    if (endpoint.disabledAt)
      throw new Problem('conflict', `endpoint ${id} is off: \`scrip webhook enable ${id}\` turns it on`);
    const what =
      eventId === undefined ? { failedSince: toStart(failedSince ?? '', 'failedSince') } : { eventId };
    const resent = await resend(caller, endpoint.id, what);
    if (resent === 0 && eventId !== undefined) throw notFound(`event ${eventId} of endpoint ${id}`);
    return { resent };
  },
});

export const webhooks = {
  add: addOne,
  list,
  show,
  remove,
  enable,
  rotate,
  test,
  deliveries,
  attempts,
  resend: sendAgain,
};

export const WEBHOOKS = tableOf(...Object.values(webhooks));
