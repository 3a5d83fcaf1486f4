import Type, { type Static } from 'typebox';
import { ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { alone, type Caller, type Condition, changing, reading, tableOf, twoPeople } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { CONNECT, MANAGE, SEE_KEYS } from '../principal.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import {
  Count,
  Id,
  Input,
  MerchantId,
  Nullable,
  NullableText,
  NullableTime,
  Reason,
  Secret,
  Text,
  Time,
  toId,
  Word,
} from '../schema.ts';
import { ForbiddenAddress } from '../webhooks/address.ts';
import { sendTest } from '../webhooks/deliveries.ts';
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

export const EndpointId = Id('endpoint');

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

export type WebhookEndpoint = Static<typeof EndpointSchema>;

function toJson({ id, merchantId, events, ...rest }: Endpoint): WebhookEndpoint {
  const enabled = rest.disabledAt === null;
  return { id: String(id), merchantId: String(merchantId), enabled, events: events && [...events], ...rest };
}

export async function requireEndpoint({ service: { db } }: Caller, text: string): Promise<Endpoint> {
  const id = toId(text);
  const endpoint = await findEndpoint(db, id);
  if (!endpoint) throw notFound(`endpoint ${id}`);
  return endpoint;
}

const SENDS_CODES: Condition = {
  text: 'it is `full`: its events contain the codes and PINs of each batch',
  applies: (_caller, { full }) => full === true,
};

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
  approval: twoPeople({ why: 'Codes and PINs are money.', when: [SENDS_CODES], approvers: MANAGE }),
  agreement: {
    sentence: 'Send the codes and PINs of {merchant} to {url}',
    async of(asked) {
      const { merchantId, url, events } = asked.input;
      return { ...(await ofMerchant(asked, merchantId, 'webhooks')), url, events };
    },
  },
  // The host name is resolved before the transaction begins.
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
  columns: ['id', 'merchantId', 'url', 'events', 'enabled', 'pending', 'failed'],
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
  approval: alone('It takes nothing away for good: the endpoint can be added again.'),
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
  approval: alone('It sends to an address that was added before.'),
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
  approval: alone('The secret proves who sent an event. It opens nothing.'),
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
  outcome: 'delivered',
  roles: CONNECT,
  approval: alone('The event contains nothing of the merchant.'),
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

export const webhooks = {
  add: addOne,
  list,
  show,
  remove,
  enable,
  rotate,
  test,
};

export const WEBHOOKS = tableOf(...Object.values(webhooks));
