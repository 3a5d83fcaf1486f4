import Type, { type TObject, type TSchema } from 'typebox';
import { BatchData, BatchVoucher } from '../../src/http/fields.ts';
import { Transaction, UpdateData } from '../../src/http/variant-a.ts';
import { type EventType, TEST_EVENT } from '../../src/webhooks/outbox.ts';
import { EVENT_DATA } from './examples.ts';

/**
 * The webhook events as OpenAPI describes them. They are the same in both variants
 * (docs/how-to/receive-webhooks.md).
 */

const { vouchers: _, ...batch } = BatchData.properties;

/**
 * A batch in an event: with its quantity, and with its vouchers only at an endpoint that was set to get them.
 */
const EventBatch = Type.Object(
  {
    ...batch,
    quantity: Type.Integer({ minimum: 1, description: 'How many vouchers were ordered.' }),
    vouchers: Type.Optional(
      Type.Array(BatchVoucher, {
        maxItems: 1_000,
        description: 'Only for an endpoint that is set to `full`, and only for up to 1,000 vouchers.',
      }),
    ),
  },
  { title: 'EventBatch' },
);

const LowFloat = Type.Object({
  currency: Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217.' }),
  balance: Type.Number({ description: 'The float after the call that took it below the threshold.' }),
  threshold: Type.Number({ description: 'The threshold that was crossed.' }),
});

const ReachedLimit = Type.Object({
  flow: Type.Union([Type.Literal('issue'), Type.Literal('redeem'), Type.Literal('outstanding')], {
    description:
      '`issue`: generations and activations; `redeem`: redemptions; `outstanding`: what vouchers hold.',
  }),
  keyId: Type.Union([Type.String(), Type.Null()], {
    description: 'Null: the limit of all your keys, or of a product.',
  }),
  product: Type.Optional(
    Type.String({ description: 'The product whose vouchers would hold too much; only with `outstanding`.' }),
  ),
  currency: Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217.' }),
  limit: Type.Number({
    description: "The most in a day of the operator's books, or the most that the product's vouchers hold.",
  }),
});

const named = { serialNumber: Type.String({ pattern: '^[0-9]{1,15}$' }) };
const Named = Type.Object(named);
const Ended = Type.Object({
  ...named,
  amount: Type.Number({ minimum: 0, description: 'What left the voucher.' }),
  currency: Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217.' }),
});
const keyId = Type.String({ pattern: '^key_[A-Za-z0-9]{16}$' });
const KeyExpiry = Type.Object({ keyId, expiresAt: Type.String({ format: 'date-time' }) });

const DAY = { pattern: '^\\d{4}-\\d{2}-\\d{2}$' };
const settlement = {
  settlementId: Type.String({ pattern: '^\\d+$' }),
  number: Type.String({
    description: 'Merchant, year and number: without a gap for each merchant and year.',
  }),
  firstDay: Type.String({
    ...DAY,
    description: 'The first day of the settlement, in the zone of the books.',
  }),
  lastDay: Type.String({ ...DAY, description: 'The last day, which belongs to it.' }),
  currency: Type.String({ pattern: '^[A-Z]{3}$', description: 'ISO 4217.' }),
  payable: Type.Number({ minimum: 0, description: 'What is paid; 0 where the balance is carried over.' }),
  dueOn: Type.String({ ...DAY, description: 'When it is to be paid.' }),
};
const bank = {
  bankReference: Type.String({ description: "The reference of the operator's bank." }),
  valueDate: Type.String(DAY),
};

type Event = { readonly summary: string; readonly description: string; readonly data: TSchema };

const DESCRIBED: Readonly<Record<EventType | typeof TEST_EVENT, Event>> = {
  'voucher.batch.completed': {
    summary: 'A batch is complete',
    description:
      'All vouchers of a batch exist, whether it was answered at once or produced in the background.',
    data: EventBatch,
  },
  'voucher.batch.canceled': {
    summary: 'A batch was canceled',
    description: 'No voucher of the batch can be used, and its whole price is back on your float.',
    data: EventBatch,
  },
  'voucher.activated': {
    summary: 'A voucher was activated',
    description:
      'You activated a voucher. Vouchers that their generation activates are reported by their batch.',
    data: Transaction,
  },
  'voucher.redeemed': {
    summary: 'A voucher was redeemed',
    description: 'You redeemed an amount from a voucher, your own or that of another merchant.',
    data: Transaction,
  },
  'redemption.updated': {
    summary: 'A redemption was updated',
    description: 'You updated a redemption. The data is the answer to the call.',
    data: UpdateData,
  },
  'float.low': {
    summary: 'A float is low',
    description:
      'A generation or an activation took your float below its threshold. Sent once, on the crossing.',
    data: LowFloat,
  },
  'limit.reached': {
    summary: 'A limit was reached',
    description:
      'A request was refused (03) by a daily limit, or by the most that vouchers of a product may hold. Sent ' +
      'at the first refusal of a day.',
    data: ReachedLimit,
  },
  'voucher.blocked': {
    summary: 'A voucher was blocked',
    description: 'The operator blocked a voucher that you generated. It cannot be redeemed (43).',
    data: Named,
  },
  'voucher.unblocked': {
    summary: 'A voucher was unblocked',
    description: 'The operator ended the block of a voucher that you generated.',
    data: Named,
  },
  'voucher.expired': {
    summary: 'A voucher has expired',
    description:
      'The balance of a voucher that you generated has expired. Sent within minutes of its expiry.',
    data: Ended,
  },
  'voucher.canceled': {
    summary: 'A voucher was canceled',
    description:
      'A voucher that you generated was canceled, by the operator or by the shop that activated it.',
    data: Ended,
  },
  'voucher.replaced': {
    summary: 'A voucher was replaced',
    description: 'The operator replaced a voucher that you generated. The new one has another code.',
    data: Type.Object({ ...named, replacedBy: Type.String({ pattern: '^[0-9]{1,15}$' }) }),
  },
  'api-key.expiring': {
    summary: 'An API key expires soon',
    description: 'One of your API keys expires within seven days: rotate it.',
    data: KeyExpiry,
  },
  'api-key.expired': {
    summary: 'An API key has expired',
    description: 'One of your API keys has expired, and is refused (01).',
    data: KeyExpiry,
  },
  'api-key.revoked': {
    summary: 'An API key was revoked',
    description: 'One of your API keys was revoked, and is refused (01).',
    data: Type.Object({ keyId, revokedAt: Type.String({ format: 'date-time' }) }),
  },
  'webhook.disabled': {
    summary: 'An endpoint was turned off',
    description: 'One of your endpoints failed for five days, or is gone. Sent to your other endpoints.',
    data: Type.Object({ endpointId: Type.String({ pattern: '^[0-9]+$' }), reason: Type.String() }),
  },
  'day.closed': {
    summary: 'A day of the books was closed',
    description:
      'Only at endpoints of the operator: a day is closed. `failed` names the checks that found a difference.',
    data: Type.Object({
      day: Type.String(DAY),
      hash: Type.String({ pattern: '^[0-9a-f]{64}$' }),
      failed: Type.Array(Type.String()),
    }),
  },
  'settlement.approved': {
    summary: 'A settlement was approved',
    description:
      'Your redemptions of a period are in a settlement: it has its number, and does not change any more.',
    data: Type.Object({ ...settlement, state: Type.Literal('APPROVED') }),
  },
  'settlement.paid': {
    summary: 'A settlement was paid',
    description: 'The operator booked the payout of a settlement.',
    data: Type.Object({ ...settlement, ...bank, state: Type.Literal('PAID') }),
  },
  'settlement.returned': {
    summary: 'The bank returned a payout',
    description: 'The bank returned the payout of a settlement. It will be paid again.',
    data: Type.Object({ ...settlement, ...bank, state: Type.Literal('RETURNED') }),
  },
  [TEST_EVENT]: {
    summary: 'A test',
    description: 'The operator checks whether your endpoint answers.',
    data: Type.Object({}),
  },
};

const header = (name: string, description: string, schema: object = { type: 'string' }) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema,
});

const HEADERS = [
  header('webhook-id', 'The id of the event, the same at every attempt: skip the ids that you know.'),
  header('webhook-timestamp', 'When this attempt was made, in seconds since 1970.', {
    type: 'string',
    pattern: '^[0-9]+$',
  }),
  header(
    'webhook-signature',
    'One or more of `v1,` and the base64 of an HMAC-SHA256 over `id.timestamp.body`, separated by spaces.',
  ),
];

const RESPONSES = {
  '2XX': { description: 'Received. To be answered within 15 seconds; the body of the answer is not read.' },
  '410': { description: 'The endpoint is gone, and is turned off.' },
  default: { description: 'Not received: the event is sent again up to seven times within two days.' },
};

/**
 * The `webhooks` of an OpenAPI document.
 * @param plain makes plain JSON of a schema
 */
export function describeEvents(plain: (schema: unknown) => unknown): object {
  return Object.fromEntries(
    Object.entries(DESCRIBED).map(([type, { summary, description, data }]) => {
      const schema = Type.Object({
        type: Type.Literal(type),
        timestamp: Type.String({ format: 'date-time', description: 'When it happened.' }),
        data,
      });
      const value = { type, timestamp: '2026-03-02T12:05:13.940Z', data: EVENT_DATA[type] };
      const content = {
        'application/json': { schema: plain(schema), examples: { event: { summary, value } } },
      };
      const post = {
        operationId: type.replace(/[.-](\w)/g, (_match, letter: string) => letter.toUpperCase()),
        summary,
        description: `${description} Deliveries follow Standard Webhooks 1.0.`,
        tags: ['Webhooks'],
        security: [],
        parameters: HEADERS,
        requestBody: { required: true, content },
        responses: RESPONSES,
      };
      return [type, { post }];
    }),
  );
}

/** What the API has, too. */
const OF_API = new Map<TSchema, string>([
  [EventBatch, 'the batch'],
  [Transaction, 'the transaction'],
  [UpdateData, 'the answer of the update'],
]);

/** The events, in Markdown. */
export function eventsText(): string {
  const dataOf = (data: TSchema) =>
    OF_API.get(data) ??
    Object.keys((data as TObject).properties)
      .map((field) => `\`${field}\``)
      .join(', ');
  const rows = Object.entries(DESCRIBED).map(
    ([type, { description, data }]) => `| \`${type}\` | ${description} | ${dataOf(data)} |`,
  );
  return ['| type | when | `data` |', '| --- | --- | --- |', ...rows].join('\n');
}
