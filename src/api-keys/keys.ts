import Type, { type Static } from 'typebox';
import { audit, type Change } from '../audit/audit.ts';
import { type Operator, PERMISSIONS, type Permission, type Service } from '../context.ts';
import { hashSecret, isKeyId, KEY_ID, newKeyId, newSecret } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { SETTING } from '../figure.ts';
import { newId } from '../ledger/id.ts';
import { listingAll } from '../listing.ts';
import { findMerchant, ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { alone, type Caller, type Condition, changing, reading, tableOf, twoPeople } from '../operation.ts';
import { CONNECT, MANAGE, SEE_KEYS } from '../principal.ts';
import { invalid, notFound, Problem, requireRow } from '../problem.ts';
import { columnsOf } from '../row.ts';
import {
  Count,
  End,
  Line,
  MerchantId,
  Networks,
  Nullable,
  NullableText,
  NullableTime,
  Opening,
  Secret,
  Text,
  Time,
  toId,
  toNetworks,
  Word,
} from '../schema.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time.ts';
import { enqueueEvent } from '../webhooks/outbox.ts';
import { toEnd } from '../zone.ts';
import { dayOf } from './cache.ts';

/** API keys, with which merchants call. */

const UNIT_MS = { s: 1_000, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS };
const OVERLAP_MAX_MS = 366 * UNIT_MS.d;

export const KeyId = Type.String({
  pattern: KEY_ID.source,
  description: 'The id of the API key.',
  examples: ['key_0a1B2c3D4e5F6g7H'],
});

/** It is not unique: a key that replaces another one has the same name. */
const KeyName = Line(
  100,
  'What calls with it, such as a till or a shop system: people know it by this.',
  'Till 3',
);

const LimitSchema = Type.Object({
  perSecond: Opening(SETTING, { ...Count, title: 'Calls per second' }),
  burst: Opening(SETTING, Count),
});
const Scopes = Type.Array(Word(PERMISSIONS), {
  minItems: 1,
  uniqueItems: true,
  description:
    "Of the merchant's permissions, these only; left out: all, but for `generate` and `download` if one person " +
    'of the operator makes the key alone.',
});
const KeySchema = Type.Object({
  keyId: { ...KeyId, title: 'Key ID' },
  name: NullableText,
  merchantId: MerchantId,
  madeBy: Word(['merchant', 'operator'] as const, { description: 'Whose user, token or command made it.' }),
  createdAt: Time,
  revokedAt: NullableTime,
  expiresAt: NullableTime,
  rotatedTo: NullableText,
  scopes: Type.Unsafe<Permission[] | null>({ type: ['array', 'null'], items: Word(PERMISSIONS) }),
  networks: Type.Unsafe<string[] | null>({ type: ['array', 'null'], items: Text }),
  limit: Type.Unsafe<Static<typeof LimitSchema> | null>({ ...LimitSchema, type: ['object', 'null'] }),
  lastUsedAt: NullableTime,
  calls: { ...Count, title: 'Calls today', description: 'Of today (UTC).' },
  guesses: { ...Count, title: 'Wrong PINs today', description: 'And unknown codes, of today (UTC).' },
  blockedAt: NullableTime,
});

type ApiKey = Static<typeof KeySchema>;

/** A new API key. The secret is shown once, and only its hash is stored. */
export type NewKey = { readonly keyId: string; readonly secret: string };

/** The name of a key and its restrictions, by default none. */
export type Restrictions = {
  readonly name?: string | null | undefined;
  readonly scopes?: readonly Permission[] | null | undefined;
  /** The networks as returned by `readNetwork`. */
  readonly networks?: readonly string[] | null | undefined;
  readonly expiresAt?: Date | null | undefined;
  readonly perSecond?: number | null;
  readonly burst?: number | null;
};

/** The permissions that show codes: with them, a key takes vouchers away. */
const OPENING: readonly Permission[] = ['generate', 'download'];

/** Returns whether a key of these scopes can take vouchers away. Without scopes, it has all permissions. */
const opensCodes = (scopes: readonly unknown[] | null): boolean =>
  scopes === null || OPENING.some((scope) => scopes.includes(scope));

/** The scopes of a key that shows no codes. */
export const TILL_SCOPES = PERMISSIONS.filter((permission) => !OPENING.includes(permission));

/** The most keys of a merchant that work, and that it gets in a day: guesses are limited for each key. */
const KEYS_MAX = 100;
const TOO_MANY = `a merchant has at most ${KEYS_MAX} keys, and gets as many in 24 hours: revoke one, or wait`;

/**
 * Creates a key for an existing merchant. Other keys stay valid.
 * @throws Problem for scopes that the merchant does not have, or an expiry in the past
 */
export async function createKey(
  operator: Operator,
  merchantId: number,
  restrictions: Restrictions = {},
  isOfMerchant = false,
): Promise<NewKey> {
  const { service } = operator;
  const { scopes, expiresAt } = restrictions;
  return service.db.transaction(async (tx) => {
    if (expiresAt && expiresAt <= service.clock())
      throw new Problem('conflict', 'it would have expired already');
    if (scopes && scopes !== TILL_SCOPES) {
      const merchant = await findMerchant(tx, merchantId);
      const missing = scopes.filter((scope) => !merchant?.permissions.includes(scope));
      if (missing.length > 0)
        throw new Problem('conflict', `the merchant has no permission ${missing.join(', ')} itself`);
    }
    const { key, change } = await makeKey(tx, merchantId, service.clock(), restrictions, isOfMerchant);
    await audit(tx, operator, change);
    return key;
  });
}

/** Creates a key within a transaction, with its entry in the audit. @throws Problem */
export async function makeKey(
  tx: Queries,
  merchantId: number,
  now: Date,
  restrictions: Restrictions = {},
  isOfMerchant = false,
): Promise<{ key: NewKey; change: Change }> {
  const { name = null, scopes = null, networks = null, expiresAt = null } = restrictions;
  const { perSecond = null, burst = null } = restrictions;
  const key = { keyId: newKeyId(), secret: newSecret() };
  // Other transactions add no keys to the merchant until this one ends.
  await tx.query(sql`select from merchants where id = ${merchantId} for no key update`);
  const [{ count = 0 } = {}] = await tx.query<{ count?: number }>(sql`
select greatest(
    count(*) filter (where revoked_at is null and (expires_at is null or expires_at > ${now})),
    count(*) filter (where created_at > ${new Date(now.getTime() - UNIT_MS.d)})
  )::int as count
from api_keys where merchant_id = ${merchantId}`);
  if (count >= KEYS_MAX) throw new Problem('conflict', TOO_MANY);
  await tx.query(sql`
insert into api_keys (id, merchant_id, secret_hash, scopes, networks, expires_at, calls_per_second,
  calls_burst, created_at, is_of_merchant, name)
values (${key.keyId}, ${merchantId}, ${hashSecret(key.secret)}, ${scopes}::text[], ${networks}::text[],
  ${expiresAt}, ${perSecond}, ${burst}, ${now}, ${isOfMerchant}, ${name})`);
  const madeBy = isOfMerchant ? 'merchant' : 'operator';
  const after = { merchantId, name, scopes, networks, expiresAt, perSecond, burst, madeBy };
  return { key, change: { action: 'api-key.create', subject: subjectOf(key.keyId), after } };
}

const subjectOf = (keyId: string) => `api-key ${keyId}`;

type Locked = Pick<ApiKey, 'name' | 'scopes' | 'networks' | 'expiresAt' | 'revokedAt' | 'rotatedTo'> & {
  readonly merchantId: number;
  readonly perSecond: number | null;
  readonly burst: number | null;
};

/** Locks a key until the transaction ends. @throws Problem if there is no such key */
async function lockKey(tx: Queries, keyId: string): Promise<Locked> {
  const statement = sql`
select merchant_id as "merchantId", name, scopes, networks, expires_at as "expiresAt",
  revoked_at as "revokedAt", rotated_to as "rotatedTo", calls_per_second as "perSecond", calls_burst as burst
from api_keys where id = ${keyId} for update`;
  return requireRow(tx, statement, `key ${keyId}`);
}

const COLUMNS = columnsOf(KeySchema, 'k', {
  ...{ keyId: sql`k.id`, lastUsedAt: sql`l.last_call_at`, blockedAt: sql`d.blocked_at` },
  madeBy: sql`case when k.is_of_merchant then 'merchant' else 'operator' end`,
  limit: sql`
case when k.calls_per_second is not null
  then json_build_object('perSecond', k.calls_per_second, 'burst', k.calls_burst) end`,
  ...{ calls: sql`coalesce(d.calls, 0)::float8`, guesses: sql`coalesce(d.guesses, 0)` },
});

/** Selects keys, with their counts of today and their last use. */
const select = (service: Service, condition: Sql): Sql => sql`
select ${COLUMNS}
from api_keys k
left join api_key_days d on d.key_id = k.id and d.day = ${dayOf(service.clock())}::date
left join lateral (
  select coalesce(n.last_call_at, n.day) as last_call_at from api_key_days n
  where n.key_id = k.id and (n.calls > 0 or n.last_call_at is not null) order by n.day desc limit 1
) l on true
where ${condition}
order by k.created_at, k.id limit 1000`;

/** Lists a merchant's keys, with their counts of today. */
export async function listKeys(service: Service, merchantId: number): Promise<ApiKey[]> {
  return service.db.query(select(service, sql`k.merchant_id = ${merchantId}`));
}

export async function findKeyInfo(service: Service, keyId: string): Promise<ApiKey | undefined> {
  if (!isKeyId(keyId)) return undefined;
  const [key] = await service.db.query<ApiKey>(select(service, sql`k.id = ${keyId}`));
  return key;
}

async function requireKey({ service }: Caller, keyId: string): Promise<ApiKey> {
  const key = await findKeyInfo(service, keyId);
  if (!key) throw notFound(`key ${keyId}`);
  return key;
}

const isOfMerchant = ({ principal }: Caller) => principal.merchantId !== null;

const OPENS_CODES: Condition = {
  text: 'the scopes name `generate` or `download`, with which a key takes vouchers away',
  applies: (_caller, { scopes }) => Array.isArray(scopes) && opensCodes(scopes),
};

const REPLACES_OPENING_KEY: Condition = {
  text: 'the key can generate vouchers or download their codes',
  async applies({ service }, { keyId }) {
    const key = await findKeyInfo(service, String(keyId));
    return key !== undefined && opensCodes(key.scopes);
  },
};

const create = changing({
  name: 'api-key.create',
  summary: 'Create another key for a merchant; its secret is shown once',
  path: '/api-keys',
  input: {
    merchantId: MerchantId,
    name: Type.Optional(KeyName),
    scopes: Type.Optional(Scopes),
    networks: Type.Optional(Networks),
    expiresAt: Type.Optional(End('When it expires; left out: never.')),
  },
  output: Type.Object({ keyId: KeyId, secret: Secret }),
  roles: CONNECT,
  approval: twoPeople({ why: 'Codes and PINs are money.', when: [OPENS_CODES], approvers: MANAGE }),
  agreement: {
    sentence: 'Make an API key of {merchant} that may {scopes}',
    async of(asked) {
      const { merchantId, name, scopes = [], networks, expiresAt } = asked.input;
      return { ...(await ofMerchant(asked, merchantId, 'keys')), name, scopes, networks, expiresAt };
    },
  },
  status: 201,
  async run(caller, { merchantId, name, scopes, networks: given, expiresAt: end }) {
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    const networks = given && toNetworks(given);
    const expiresAt = end === undefined ? undefined : await toEnd(caller, end, 'expiresAt');
    // One person of the operator alone makes a key that shows no codes.
    const standard = caller.isAgreed ? undefined : TILL_SCOPES;
    const restrictions = { name, scopes: scopes ?? standard, networks, expiresAt };
    return createKey(caller, id, restrictions, isOfMerchant(caller));
  },
});

const list = listingAll({
  name: 'api-key.list',
  summary: "List a merchant's keys, when they were last used, and their calls and guesses of today",
  path: '/api-keys',
  input: { merchantId: MerchantId },
  item: KeySchema,
  columns: ['keyId', 'name', 'lastUsedAt', 'expiresAt', 'scopes', 'calls', 'guesses', 'revokedAt'],
  roles: SEE_KEYS,
  async rows(caller, { merchantId }) {
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    return listKeys(caller.service, id);
  },
});

const show = reading({
  name: 'api-key.show',
  summary: 'Get a key',
  path: '/api-keys/:keyId',
  input: { keyId: KeyId },
  output: KeySchema,
  roles: SEE_KEYS,
  run: (caller, { keyId }) => requireKey(caller, keyId),
});

function toMs(overlap: string): number {
  const [, count = '0', unit = 's'] = /^(\d+)([smhd])$/.exec(overlap) ?? [];
  const overlapMs = Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (overlapMs > OVERLAP_MAX_MS) throw invalid('overlap', 'maximum', 'must be at most 366d');
  return overlapMs;
}

const rotate = changing({
  name: 'api-key.rotate',
  summary: 'Create a key of the same name, scopes, networks and limit, and end the old one after an overlap',
  path: '/api-keys/:keyId/rotate',
  input: {
    keyId: KeyId,
    overlap: Type.Optional(
      Type.String({
        title: 'Old key works for',
        pattern: '^[0-9]{1,8}[smhd]$',
        description: 'The time for which the old key still works, such as 30m, 24h or 7d.',
        examples: ['24h'],
      }),
    ),
    expiresAt: Type.Optional(End('When the new key expires; left out: never.')),
  },
  output: Type.Object({ keyId: KeyId, secret: Secret, replaces: KeyId, until: Time }),
  roles: CONNECT,
  approval: twoPeople({
    why: 'Codes and PINs are money.',
    when: [REPLACES_OPENING_KEY],
    approvers: MANAGE,
  }),
  agreement: {
    sentence: 'Replace API key {keyId} of {merchant}, which may {scopes}, by a new one',
    async of(asked) {
      const { keyId } = asked.input;
      const { merchantId, scopes } = await requireKey(asked.caller, keyId);
      return { keyId, ...(await ofMerchant(asked, merchantId, 'keys')), scopes: scopes ?? PERMISSIONS };
    },
  },
  async run(caller, { keyId, overlap = '24h', expiresAt }) {
    const { db, clock } = caller.service;
    const now = clock();
    const overlapEnd = new Date(now.getTime() + toMs(overlap));
    const newEnd = expiresAt === undefined ? null : await toEnd(caller, expiresAt, 'expiresAt');
    return db.transaction(async (tx) => {
      const { merchantId, revokedAt, rotatedTo, ...old } = await lockKey(tx, keyId);
      if (revokedAt || (old.expiresAt && old.expiresAt <= now))
        throw new Problem('conflict', 'it has ended: create a key');
      if (rotatedTo) throw new Problem('conflict', `it was rotated already: ${rotatedTo} takes its place`);
      if (newEnd && newEnd <= now) throw new Problem('conflict', 'the new key would have expired already');
      const terms = { ...old, expiresAt: newEnd };
      const { key, change } = await makeKey(tx, merchantId, now, terms, isOfMerchant(caller));
      // The new key has the daily limits of the old one, and what was counted today.
      await tx.query(sql`
insert into daily_limits (merchant_id, key_id, flow, currency, decimals, amount_minor, day, used_minor)
select merchant_id, ${key.keyId}, flow, currency, decimals, amount_minor, day, used_minor
from daily_limits where key_id = ${keyId}`);
      // The old key ends after the overlap, or earlier if it would have expired anyway.
      const until = old.expiresAt && old.expiresAt < overlapEnd ? old.expiresAt : overlapEnd;
      await tx.query(sql`
update api_keys set rotated_to = ${key.keyId}, expires_at = ${until} where id = ${keyId}`);
      await audit(tx, caller, change, {
        action: 'api-key.rotate',
        subject: subjectOf(keyId),
        before: { expiresAt: old.expiresAt },
        after: { expiresAt: until, rotatedTo: key.keyId },
        touches: [`merchant ${merchantId}`],
      });
      return { ...key, replaces: keyId, until };
    });
  },
});

const revoke = changing({
  name: 'api-key.revoke',
  summary: 'End a key: within a second no process accepts it',
  path: '/api-keys/:keyId/revoke',
  input: { keyId: KeyId, merchantId: Type.Optional(MerchantId) },
  output: KeySchema,
  roles: CONNECT,
  approval: alone('It takes a right away, and another key can be made.'),
  async run(caller, { keyId, merchantId }) {
    const { db, clock } = caller.service;
    await db.transaction(async (tx) => {
      const { merchantId: owner, revokedAt } = await lockKey(tx, keyId);
      if (merchantId !== undefined && toId(merchantId, 'merchantId') !== owner)
        throw notFound(`key ${keyId} of merchant ${merchantId}`);
      const after = { revokedAt: revokedAt ?? clock() };
      await tx.query(sql`update api_keys set revoked_at = ${after.revokedAt} where id = ${keyId}`);
      if (revokedAt === null) {
        const event = { type: 'api-key.revoked', eventId: newId(clock()), subjectId: null } as const;
        await enqueueEvent(tx, { ...event, merchantId: owner, data: { keyId, ...after }, now: clock() });
      }
      const subject = subjectOf(keyId);
      await audit(tx, caller, { action: 'api-key.revoke', subject, before: { revokedAt }, after });
    });
    return requireKey(caller, keyId);
  },
});

const rename = changing({
  name: 'api-key.rename',
  summary: 'Name a key, so that people know what calls with it',
  path: '/api-keys/:keyId/rename',
  input: { keyId: KeyId, name: Nullable(KeyName) },
  output: KeySchema,
  roles: CONNECT,
  approval: alone('It changes what people read, and nothing that the key may do.'),
  asksReason: false,
  async run(caller, { keyId, name }) {
    await caller.service.db.transaction(async (tx) => {
      const before = { name: (await lockKey(tx, keyId)).name };
      await tx.query(sql`update api_keys set name = ${name} where id = ${keyId}`);
      await audit(tx, caller, {
        action: 'api-key.rename',
        subject: subjectOf(keyId),
        before,
        after: { name },
      });
    });
    return requireKey(caller, keyId);
  },
});

const limit = changing({
  name: 'api-key.limit',
  summary: 'Limit the rate of the calls of a key (97), in each process',
  path: '/api-keys/:keyId/limit',
  input: {
    keyId: KeyId,
    perSecond: Nullable(Type.Integer({ minimum: 1, maximum: 1_000_000 }), {
      description: 'Calls per second on average; null: no limit.',
    }),
    burst: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 10_000_000,
        description: 'Calls at once; left out: the same as `perSecond`.',
      }),
    ),
  },
  output: KeySchema,
  roles: CONNECT,
  approval: alone('It changes how fast a key calls, and can be changed back.'),
  async run(caller, { keyId, perSecond, burst }) {
    if (perSecond === null && burst !== undefined) throw invalid('burst', 'dependent', 'needs `perSecond`');
    const after = { perSecond, burst: burst ?? perSecond };
    await caller.service.db.transaction(async (tx) => {
      const old = await lockKey(tx, keyId);
      await tx.query(sql`
update api_keys set calls_per_second = ${after.perSecond}, calls_burst = ${after.burst}
where id = ${keyId}`);
      const before = { perSecond: old.perSecond, burst: old.burst };
      await audit(tx, caller, { action: 'api-key.limit', subject: subjectOf(keyId), before, after });
    });
    return requireKey(caller, keyId);
  },
});

const pardon = changing({
  name: 'api-key.pardon',
  title: 'Unblock',
  summary: "End a key's block for guessing: the guesses of today no longer count",
  path: '/api-keys/:keyId/pardon',
  input: { keyId: KeyId },
  output: KeySchema,
  roles: CONNECT,
  approval: alone('It moves no money. The guesses of the rest of the day are counted again.'),
  risk: 'step-up',
  async run(caller, { keyId }) {
    await requireKey(caller, keyId);
    const { db, clock } = caller.service;
    await db.transaction(async (tx) => {
      const [day] = await tx.query<{ pardoned: number; before: number; blockedAt: Date | null }>(sql`
update api_key_days d set pardoned_guesses = d.guesses, blocked_at = null
from (
  select key_id, day, pardoned_guesses, blocked_at from api_key_days
  where key_id = ${keyId} and day = ${dayOf(clock())}::date for update
) b
where d.key_id = b.key_id and d.day = b.day
returning d.pardoned_guesses as pardoned, b.pardoned_guesses as before, b.blocked_at as "blockedAt"`);
      if (!day)
        throw new Problem('conflict', `the key ${keyId} has made no calls today: there is nothing to pardon`);
      // The caches of all processes read the key again.
      await tx.query(sql`update api_keys set changed_by = pg_current_xact_id() where id = ${keyId}`);
      const before = { pardonedGuesses: day.before, blockedAt: day.blockedAt };
      const after = { pardonedGuesses: day.pardoned, blockedAt: null };
      await audit(tx, caller, { action: 'api-key.pardon', subject: subjectOf(keyId), before, after });
    });
    return requireKey(caller, keyId);
  },
});

export const apiKeys = { create, list, show, rename, rotate, revoke, limit, pardon };

export const OPERATIONS = tableOf(...Object.values(apiKeys));
