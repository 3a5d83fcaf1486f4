import Type, { type Static } from 'typebox';
import {
  createKey,
  findKeyInfo,
  type KeyInfo,
  KeyRefused,
  limitKey,
  listKeys,
  opensCodes,
  pardon,
  revokeKey,
  rotateKey,
  TILL_SCOPES,
} from '../api-keys/keys.ts';
import { PERMISSIONS } from '../context.ts';
import { isKeyId } from '../credentials.ts';
import { toEnd } from '../ledger/zone.ts';
import { ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { readNetwork } from '../network.ts';
import { alone, type Caller, type Condition, changing, reading, tableOf, twoPeople } from '../operation.ts';
import { Page } from '../page.ts';
import { CONNECT, MANAGE, SEE_KEYS } from '../principal.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import {
  Count,
  End,
  Input,
  Line,
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

const UNIT_MS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const OVERLAP_MAX_MS = 366 * UNIT_MS.d;

const KeyId = Type.String({
  pattern: '^key_[A-Za-z0-9]{16}$',
  description: 'The id of the API key.',
  examples: ['key_0a1B2c3D4e5F6g7H'],
});

const Limit = Type.Object({ perSecond: Count, burst: Count });
const Scopes = Type.Array(Word(PERMISSIONS), {
  minItems: 1,
  uniqueItems: true,
  description:
    "Of the merchant's permissions, these only; left out: all, but for `generate` and `download` if one person " +
    'of the operator makes the key alone.',
});
const Networks = Type.Array(Line(50, 'A network in CIDR.', '10.0.0.0/8'), {
  maxItems: 50,
  description: 'The networks from which it may be used; left out: any.',
});

const KeySchema = Type.Object({
  keyId: KeyId,
  merchantId: MerchantId,
  madeBy: Word(['merchant', 'operator'] as const, { description: 'Whose user, token or command made it.' }),
  createdAt: Time,
  revokedAt: NullableTime,
  expiresAt: NullableTime,
  rotatedTo: NullableText,
  scopes: Type.Unsafe<string[] | null>({ type: ['array', 'null'], items: Text }),
  networks: Type.Unsafe<string[] | null>({ type: ['array', 'null'], items: Text }),
  limit: Type.Unsafe<Static<typeof Limit> | null>({ ...Limit, type: ['object', 'null'] }),
  lastUsedAt: NullableTime,
  calls: Type.Integer({ description: 'Of today (UTC).' }),
  guesses: Type.Integer({ description: 'Unknown codes and wrong PINs of today (UTC).' }),
  blockedAt: NullableTime,
});

export type ApiKey = Static<typeof KeySchema>;

function toJson({ isOfMerchant: of, ...key }: KeyInfo): ApiKey {
  return {
    ...key,
    merchantId: String(key.merchantId),
    madeBy: of ? 'merchant' : 'operator',
    calls: Number(key.calls),
    scopes: key.scopes && [...key.scopes],
    networks: key.networks && [...key.networks],
  };
}

async function show({ service }: Caller, keyId: string): Promise<ApiKey> {
  const key = isKeyId(keyId) ? await findKeyInfo(service, keyId) : undefined;
  if (!key) throw notFound(`key ${keyId}`);
  return toJson(key);
}

const isOfMerchant = ({ principal }: Caller) => principal.merchantId !== null;

function explain(error: unknown): never {
  if (error instanceof KeyRefused) throw new Problem('conflict', error.message);
  throw error;
}

const OPENS_CODES: Condition = {
  text: 'the scopes name `generate` or `download`, with which a key takes vouchers away',
  applies: (_caller, { scopes }) => Array.isArray(scopes) && opensCodes(scopes),
};

const REPLACES_OPENING_KEY: Condition = {
  text: 'the key can generate vouchers or download their codes',
  async applies({ service }, { keyId }) {
    const key = isKeyId(String(keyId)) ? await findKeyInfo(service, String(keyId)) : undefined;
    return key !== undefined && opensCodes(key.scopes);
  },
};

const create = changing({
  name: 'api-key.create',
  summary: 'Create another key for a merchant; its secret is shown once',
  method: 'POST',
  path: '/api-keys',
  command: 'api-key create',
  input: Input({
    merchantId: MerchantId,
    scopes: Type.Optional(Scopes),
    networks: Type.Optional(Networks),
    expiresAt: Type.Optional(End('When it expires; left out: never.')),
    reason: Reason,
  }),
  output: Type.Object({ keyId: KeyId, secret: Secret }),
  roles: CONNECT,
  approval: twoPeople({ why: 'Codes and PINs are money.', when: [OPENS_CODES], approvers: MANAGE }),
  agreement: {
    sentence: 'Make an API key of {merchant} that may {scopes}',
    async of(asked) {
      const { merchantId, scopes = [], networks, expiresAt } = asked.input;
      return { ...(await ofMerchant(asked, merchantId, 'keys')), scopes, networks, expiresAt };
    },
  },
  status: 201,
  async run(caller, { merchantId, scopes, networks: given, expiresAt: end }) {
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    const networks = given?.map((text) => {
      const network = readNetwork(text);
      if (network === undefined) throw invalid('networks', 'network', 'must be networks such as 10.0.0.0/8');
      return network;
    });
    const expiresAt = end === undefined ? undefined : await toEnd(caller, end, 'expiresAt');
    // One person of the operator alone makes a key that shows no codes.
    const standard = caller.isAgreed ? undefined : TILL_SCOPES;
    const restrictions = { scopes: scopes ?? standard, networks, expiresAt };
    return createKey(caller, id, { ...restrictions, isOfMerchant: isOfMerchant(caller) }).catch(explain);
  },
});

const list = reading({
  name: 'api-key.list',
  summary: "List a merchant's keys, when they were last used, and their calls and guesses of today",
  method: 'GET',
  path: '/api-keys',
  command: 'api-key list',
  input: Input({ merchantId: MerchantId }),
  output: Page(KeySchema),
  columns: ['keyId', 'lastUsedAt', 'expiresAt', 'scopes', 'calls', 'guesses', 'revokedAt', 'blockedAt'],
  roles: SEE_KEYS,
  async run(caller, { merchantId }) {
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    return { items: (await listKeys(caller.service, id)).map(toJson), nextCursor: null };
  },
});

const showOne = reading({
  name: 'api-key.show',
  summary: 'Get a key',
  method: 'GET',
  path: '/api-keys/:keyId',
  command: 'api-key show',
  input: Input({ keyId: KeyId }),
  output: KeySchema,
  roles: SEE_KEYS,
  run: (caller, { keyId }) => show(caller, keyId),
});

function toMs(overlap: string): number {
  const [, count = '0', unit = 's'] = /^(\d+)([smhd])$/.exec(overlap) ?? [];
  const overlapMs = Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (overlapMs > OVERLAP_MAX_MS) throw invalid('overlap', 'maximum', 'must be at most 366d');
  return overlapMs;
}

const rotate = changing({
  name: 'api-key.rotate',
  summary: 'Create a key of the same scopes, networks and limit, and end the old one after an overlap',
  method: 'POST',
  path: '/api-keys/:keyId/rotate',
  command: 'api-key rotate',
  input: Input({
    keyId: KeyId,
    overlap: Type.Optional(
      Type.String({
        pattern: '^[0-9]{1,8}[smhd]$',
        description: 'The time for which the old key still works.',
        examples: ['24h'],
      }),
    ),
    expiresAt: Type.Optional(End('When the new key expires; left out: never.')),
    reason: Reason,
  }),
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
      const { merchantId, scopes } = await show(asked.caller, keyId);
      return { keyId, ...(await ofMerchant(asked, merchantId, 'keys')), scopes: scopes ?? PERMISSIONS };
    },
  },
  async run(caller, { keyId, overlap = '24h', expiresAt }) {
    const end = expiresAt === undefined ? null : await toEnd(caller, expiresAt, 'expiresAt');
    const made = await rotateKey(caller, keyId, toMs(overlap), end, isOfMerchant(caller)).catch(explain);
    if (!made) throw notFound(`key ${keyId}`);
    return { keyId: made.keyId, secret: made.secret, replaces: keyId, until: made.until };
  },
});

const revoke = changing({
  name: 'api-key.revoke',
  summary: 'End a key: within a second no process accepts it',
  method: 'POST',
  path: '/api-keys/:keyId/revoke',
  command: 'api-key revoke',
  input: Input({ keyId: KeyId, merchantId: Type.Optional(MerchantId), reason: Reason }),
  output: KeySchema,
  roles: CONNECT,
  approval: alone('It takes a right away, and another key can be made.'),
  async run(caller, { keyId, merchantId }) {
    const id = merchantId === undefined ? null : toId(merchantId, 'merchantId');
    if (!(await revokeKey(caller, keyId, id)))
      throw notFound(`key ${keyId}${id === null ? '' : ` of merchant ${id}`}`);
    return show(caller, keyId);
  },
});

const limit = changing({
  name: 'api-key.limit',
  summary: 'Limit the rate of the calls of a key (97), in each process',
  method: 'POST',
  path: '/api-keys/:keyId/limit',
  command: 'api-key limit',
  input: Input({
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
    reason: Reason,
  }),
  output: KeySchema,
  roles: CONNECT,
  approval: alone('It changes how fast a key calls, and can be changed back.'),
  async run(caller, { keyId, perSecond, burst }) {
    if (perSecond === null && burst !== undefined) throw invalid('burst', 'dependent', 'needs perSecond');
    const wanted = perSecond === null ? null : { perSecond, burst: burst ?? perSecond };
    if (!(await limitKey(caller, keyId, wanted))) throw notFound(`key ${keyId}`);
    return show(caller, keyId);
  },
});

const pardonKey = changing({
  name: 'api-key.pardon',
  summary: "End a key's block for guessing: the guesses of today no longer count",
  method: 'POST',
  path: '/api-keys/:keyId/pardon',
  command: 'api-key pardon',
  input: Input({ keyId: KeyId, reason: Reason }),
  output: KeySchema,
  roles: CONNECT,
  approval: alone('It moves no money. The guesses of the rest of the day are counted again.'),
  risk: 'step-up',
  async run(caller, { keyId }) {
    await show(caller, keyId);
    if (!(await pardon(caller, keyId)))
      throw new Problem('conflict', `the key ${keyId} has made no calls today: there is nothing to pardon`);
    return show(caller, keyId);
  },
});

export const apiKeys = { create, list, show: showOne, rotate, revoke, limit, pardon: pardonKey };

export const API_KEYS = tableOf(...Object.values(apiKeys));
