import { lookup } from 'node:dns/promises';
import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Details } from '../audit/chain.ts';
import type { Operator } from '../context.ts';
import { newWebhookSecret } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { listing } from '../listing.ts';
import { ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { alone, type Condition, changing, reading, tableOf, twoPeople } from '../operation.ts';
import { CONNECT, MANAGE, SEE_KEYS } from '../principal.ts';
import { invalid, notFound, Problem, requireRow } from '../problem.ts';
import { columnsOf } from '../row.ts';
import {
  Count,
  Id,
  MerchantId,
  Nullable,
  NullableText,
  NullableTime,
  Secret,
  Text,
  Time,
  Titled,
  toId,
  Word,
} from '../schema.ts';
import { HOUR_MS } from '../time.ts';
import { EXAMPLE_URL, ForbiddenAddress, isPublic, LONGEST_URL, readEndpointUrl } from './address.ts';
import { EVENTS, type EventType, OPERATOR } from './outbox.ts';

/**
 * Webhook endpoints: the URLs to which merchants and the operator have their events sent, or places where
 * they read them.
 */

export const EndpointId = Id('endpoint');

const EndpointSchema = Type.Object({
  id: EndpointId,
  merchantId: Nullable(MerchantId, {
    description: 'Null: of the operator, which takes the events of all merchants.',
  }),
  enabled: Type.Boolean(),
  url: Nullable(Text, { description: 'Null: a pull endpoint, whose events the merchant reads.' }),
  events: Type.Unsafe<string[] | null>({ type: ['array', 'null'], items: Text, description: 'Null: all.' }),
  full: Type.Boolean({
    title: 'With codes',
    description: "Whether a completed batch's vouchers are in its event.",
  }),
  createdAt: Time,
  failingSince: NullableTime,
  disabledAt: NullableTime,
  disabledReason: Titled('Disabled because', NullableText),
  pending: Count,
  failed: Count,
});

type WebhookEndpoint = Static<typeof EndpointSchema>;

const RowSchema = Type.Omit(EndpointSchema, ['pending', 'failed']);
type Row = Static<typeof RowSchema>;

const COLUMNS = columnsOf(RowSchema, undefined, {
  merchantId: sql`nullif(merchant_id, 0)::text`,
  enabled: sql`disabled_at is null`,
  full: sql`full_vouchers`,
});

/** Deliveries in a state are counted up to this number, which then means "this many or more". */
const COUNT_MAX = 100;

/** The most endpoints of a merchant: every event is written once for each endpoint that takes it. */
const ENDPOINTS_MAX = 20;
const OVERLAP_MS = 24 * HOUR_MS;

type NewEndpoint = {
  /** The merchant, or the operator (`OPERATOR`). */
  readonly merchantId: number;
  /** Null: a pull endpoint. */
  readonly url: string | null;
  /** The events that are sent; null: all. */
  readonly events: readonly EventType[] | null;
  readonly full: boolean;
};

/**
 * Adds an endpoint to an existing merchant.
 * @returns its id, and its secret, which is shown once
 * @throws Problem if webhooks may not be sent there, or the merchant has the highest number of endpoints
 */
export async function addEndpoint(
  operator: Operator,
  { merchantId, url, events, full }: NewEndpoint,
  allowPrivate: boolean,
): Promise<{ id: number; secret: string }> {
  const target = url && (await checkTarget(url, full, allowPrivate));
  return insertEndpoint(operator, { merchantId, url: target, events, full });
}

/** @param wanted its URL was checked */
async function insertEndpoint(
  operator: Operator,
  { merchantId, url, events, full }: NewEndpoint,
): Promise<{ id: number; secret: string }> {
  const { db, keys, clock } = operator.service;
  const secret = newWebhookSecret();
  return db.transaction(async (tx) => {
    // One transaction at a time adds endpoints of a merchant, so that their number stays within the limit.
    await tx.query(sql`select id from merchants where id = ${merchantId} for no key update`);
    const [counted] = await tx.query<{ count: number }>(sql`
select count(*)::int as count from webhook_endpoints
where merchant_id = ${merchantId} and removed_at is null`);
    if ((counted?.count ?? 0) >= ENDPOINTS_MAX)
      throw new Problem('conflict', `a merchant, like the operator, has at most ${ENDPOINTS_MAX} endpoints`);
    await holdKeyRing(tx, keys);
    const [next] = await tx.query<{ id: number }>(
      sql`select nextval(pg_get_serial_sequence('webhook_endpoints', 'id'))::int as id`,
    );
    const id = next?.id as number;
    const sealed = keys.sealText(ownerOf(id), secret);
    await tx.query(sql`
insert into webhook_endpoints (id, merchant_id, url, events, full_vouchers, secret, created_at)
values (${id}, ${merchantId}, ${url}, ${events}::text[], ${full}, ${sealed}, ${clock()})`);
    const after = { merchantId: merchantId || null, url, events, full };
    await audit(tx, operator, { action: 'webhook.add', subject: `webhook ${id}`, after });
    return { id, secret };
  });
}

/** Returns the owner under which a secret is sealed. */
export function ownerOf(endpointId: number): string {
  return `webhook:${endpointId}`;
}

/**
 * Returns the URL that will be called.
 * @throws Problem for one to which webhooks may not be sent
 */
async function checkTarget(text: string, isFull: boolean, allowPrivate: boolean): Promise<string> {
  try {
    return (await requirePublic(text, isFull, allowPrivate)).href;
  } catch (error) {
    throw error instanceof ForbiddenAddress
      ? invalid('url', 'address', `is refused: ${error.message}`)
      : error;
  }
}

/** Refuses a name that resolves to a private address. A name that does not resolve may do so later. */
async function requirePublic(text: string, isFull: boolean, allowPrivate: boolean): Promise<URL> {
  const url = readEndpointUrl(text, allowPrivate);
  if (isFull && url.protocol !== 'https:')
    throw new ForbiddenAddress(
      'codes and PINs are sent to https addresses only: leave out --full, or use https',
    );
  if (allowPrivate) return url;
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const found = await lookup(host, { all: true }).catch(() => []);
  if (found.some(({ address }) => !isPublic(address)))
    throw new ForbiddenAddress(`${host} resolves to an address that is not public`);
  return url;
}

export async function findEndpoint(db: Queries, id: number): Promise<WebhookEndpoint | undefined> {
  const rows = await db.query<Row>(sql`
select ${COLUMNS} from webhook_endpoints where id = ${id} and removed_at is null`);
  return (await withCounts(db, rows))[0];
}

/** Refuses to send something to a pull endpoint. @throws Problem */
export function requireUrl({ id, url }: Pick<WebhookEndpoint, 'id' | 'url'>): void {
  if (url === null)
    throw new Problem('conflict', `endpoint ${id} has no URL: its events are read, and not sent`);
}

/** Returns an endpoint that was not removed. @throws Problem if there is none */
export async function requireEndpoint({ service }: Operator, text: string): Promise<WebhookEndpoint> {
  const endpoint = await findEndpoint(service.db, toId(text));
  if (!endpoint) throw notFound(subjectOf(text));
  return endpoint;
}

const subjectOf = (id: number | string) => `endpoint ${id}`;

async function withCounts(db: Queries, rows: readonly Row[]): Promise<WebhookEndpoint[]> {
  const ids = rows.map(({ id }) => Number(id));
  const counts = await db.query<{ id: string; pending: number; failed: number }>(sql`
select id::text, pending::int, failed::int from count_deliveries(${ids}::integer[], ${COUNT_MAX})`);
  const byId = new Map(counts.map((each) => [each.id, each]));
  return rows.map((row) => ({ ...row, pending: 0, failed: 0, ...byId.get(row.id) }));
}

type EndpointChange = {
  readonly action: string;
  /** The columns as the audit names them. */
  readonly before: Sql;
  readonly set: (tx: Queries) => Promise<Sql>;
  readonly after: Details;
};

/** Changes an endpoint under its lock, and writes both versions to the audit. */
async function change(operator: Operator, id: number, wanted: EndpointChange): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    const set = await wanted.set(tx);
    const { action, after } = wanted;
    const before = await requireRow<Details>(
      tx,
      sql`select ${wanted.before} from webhook_endpoints where id = ${id} and removed_at is null for update`,
      subjectOf(id),
    );
    await tx.query(sql`update webhook_endpoints set ${set} where id = ${id}`);
    await audit(tx, operator, { action, subject: `webhook ${id}`, before, after });
  });
}

const SENDS_CODES: Condition = {
  text: 'it is `full`: its events contain the codes and PINs of each batch',
  applies: (_caller, { full }) => full === true,
};

/** Returns the owner of endpoints: a merchant, or without one the operator. @throws Problem */
export async function ownerIdOf(operator: Operator, merchantId: string | undefined): Promise<number> {
  return merchantId === undefined ? OPERATOR : (await requireMerchant(operator, merchantId, 'merchantId')).id;
}

type Wish = {
  readonly merchantId?: string;
  readonly url?: string;
  readonly pull?: boolean;
  readonly full?: boolean;
};

/** Refuses what no endpoint can be, also when it is proposed. */
function checkWish({ merchantId, url, pull = false, full = false }: Wish): void {
  if (pull === (url !== undefined)) throw invalid('url', 'required', 'or `pull` is required, and not both');
  if (pull && full) throw invalid('full', 'pull', 'is for a URL: codes and PINs are sent, and not kept');
  if (full && merchantId === undefined)
    throw invalid('full', 'merchantId', 'is for a merchant: codes and PINs go to the one that ordered them');
}

const add = changing({
  name: 'webhook.add',
  title: 'Add endpoint',
  summary: 'Add an endpoint, whose secret is shown once',
  path: '/webhooks',
  input: {
    merchantId: Type.Optional({
      ...MerchantId,
      description:
        'Whose endpoint it is; left out: that of the operator, which takes the events of all merchants.',
    }),
    url: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: LONGEST_URL,
        description: 'An https URL with a public address.',
        examples: [EXAMPLE_URL],
      }),
    ),
    pull: Type.Optional(
      Type.Boolean({ description: 'Instead of a URL: keep the events, which the merchant reads.' }),
    ),
    events: Type.Optional(
      Type.Array(Word(EVENTS), {
        minItems: 1,
        uniqueItems: true,
        description: 'The events that it takes; left out: all.',
      }),
    ),
    full: Type.Optional(
      Type.Boolean({
        description:
          "Put a completed batch's vouchers, with codes and PINs, into its event, only over https.",
      }),
    ),
  },
  output: Type.Object({ id: EndpointId, secret: Secret }),
  roles: CONNECT,
  approval: twoPeople({ why: 'Codes and PINs are money.', when: [SENDS_CODES], approvers: MANAGE }),
  agreement: {
    sentence: 'Send the codes and PINs of {merchant} to {url}',
    async of(asked) {
      checkWish(asked.input);
      const { merchantId, url, events } = asked.input;
      return { ...(await ofMerchant(asked, merchantId ?? OPERATOR, 'webhooks')), url, events };
    },
  },
  status: 201,
  async prepare({ service: { allowPrivateWebhooks = false } }, { url, full = false }) {
    if (url !== undefined) await checkTarget(url, full, allowPrivateWebhooks);
  },
  async run(caller, input) {
    checkWish(input);
    const { merchantId, url, events = null, full = false } = input;
    const owner = await ownerIdOf(caller, merchantId);
    const target = url === undefined ? null : new URL(url).href;
    const { id, secret } = await insertEndpoint(caller, { merchantId: owner, url: target, events, full });
    return { id: String(id), secret };
  },
});

const list = listing({
  name: 'webhook.list',
  summary: 'List endpoints, oldest first',
  path: '/webhooks',
  filters: { merchantId: Type.Optional(MerchantId) },
  item: EndpointSchema,
  columns: ['id', 'merchantId', 'url', 'events', 'enabled', 'pending', 'failed'],
  roles: SEE_KEYS,
  async rows(caller, { merchantId }, [after = 0], count) {
    const { readDb } = caller.service;
    const id = merchantId === undefined ? null : (await requireMerchant(caller, merchantId, 'merchantId')).id;
    const rows = await readDb.query<Row>(sql`
select ${COLUMNS} from webhook_endpoints
where removed_at is null and id > ${after} and (${id}::int is null or merchant_id = ${id}::int)
order by webhook_endpoints.id limit ${count}`);
    return withCounts(readDb, rows);
  },
});

const show = reading({
  name: 'webhook.show',
  summary: 'Get an endpoint',
  path: '/webhooks/:id',
  input: { id: EndpointId },
  output: EndpointSchema,
  roles: SEE_KEYS,
  run: (caller, { id }) => requireEndpoint(caller, id),
});

const remove = changing({
  name: 'webhook.remove',
  summary: 'Remove an endpoint; its deliveries stay visible for 90 days',
  path: '/webhooks/:id/remove',
  input: { id: EndpointId },
  output: Type.Object({ id: EndpointId, removed: Type.Boolean() }),
  roles: CONNECT,
  approval: alone('It takes nothing away for good: the endpoint can be added again.'),
  async run(caller, { id }) {
    const removedAt = caller.service.clock();
    await change(caller, toId(id), {
      action: 'webhook.remove',
      before: sql`
nullif(merchant_id, 0) as "merchantId", url, events, full_vouchers as full, removed_at as "removedAt"`,
      set: async () => sql`removed_at = ${removedAt}`,
      after: { removedAt },
    });
    return { id, removed: true };
  },
});

const enable = changing({
  name: 'webhook.enable',
  summary: 'Turn a disabled endpoint on again',
  path: '/webhooks/:id/enable',
  input: { id: EndpointId },
  output: EndpointSchema,
  roles: CONNECT,
  approval: alone('It sends to an address that was added before.'),
  async run(caller, { id }) {
    await change(caller, toId(id), {
      action: 'webhook.enable',
      before: sql`
failing_since as "failingSince", disabled_at as "disabledAt", disabled_reason as "disabledReason"`,
      // Events since it was disabled are not sent by themselves.
      set: async () => sql`
disabled_at = null, disabled_reason = null, failing_since = null,
enabled_at = case when disabled_at is null then enabled_at else ${caller.service.clock()} end`,
      after: { failingSince: null, disabledAt: null, disabledReason: null },
    });
    return requireEndpoint(caller, id);
  },
});

const rotate = changing({
  name: 'webhook.rotate',
  title: 'Rotate the secret',
  summary: 'Create a new secret for an endpoint; for 24 hours deliveries are signed with both',
  description: 'There are two at most: a rotation within that time ends the one before the last at once.',
  path: '/webhooks/:id/rotate',
  input: { id: EndpointId },
  output: Type.Object({ id: EndpointId, secret: Secret, previousSecretUntil: Time }),
  roles: CONNECT,
  approval: alone('The secret proves who sent an event. It opens nothing.'),
  risk: 'step-up',
  async run(caller, { id }) {
    const { keys, clock } = caller.service;
    const secret = newWebhookSecret();
    const previousSecretUntil = new Date(clock().getTime() + OVERLAP_MS);
    await change(caller, toId(id), {
      action: 'webhook.rotate',
      before: sql`previous_until as "previousSecretUntil"`,
      async set(tx) {
        await holdKeyRing(tx, keys);
        return sql`
previous_secret = secret, previous_until = ${previousSecretUntil},
secret = ${keys.sealText(ownerOf(toId(id)), secret)}`;
      },
      after: { previousSecretUntil },
    });
    return { id, secret, previousSecretUntil };
  },
});

export const webhooks = { add, list, show, remove, enable, rotate };

export const OPERATIONS = tableOf(...Object.values(webhooks));
