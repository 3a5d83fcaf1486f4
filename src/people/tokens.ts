import { randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Service } from '../context.ts';
import { hashSecret, readSigned, sign } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { byText, byTime, listing } from '../listing.ts';
import { merchantNamed, requireMerchant } from '../merchants/merchants.ts';
import { containing } from '../network.ts';
import { alone, type Caller, type Condition, changing, tableOf, twoPeople } from '../operation.ts';
import { ALL_ROLES, GOVERN, type PortalRole, type Role, SEE_TOKENS } from '../principal.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import { columnsOf } from '../row.ts';
import {
  Email,
  End,
  Id,
  Line,
  MerchantId,
  Networks,
  Nullable,
  NullableTime,
  Secret,
  Text,
  Time,
  toId,
  toNetworks,
  Word,
} from '../schema.ts';
import { DAY_MS, MINUTE_MS } from '../time.ts';
import { toEnd } from '../zone.ts';
import { checkRoles, findUser, ofAddress, readAccounts, type User } from './users.ts';

/** Tokens, with which machines call. A token has at most the rights of the people that it depends on. */

/**
 * The text of a token: a prefix, 43 characters of 128 random bits with a signature of this service, and 6 of
 * a checksum, so that secret scanners recognize it.
 */

const PREFIX = 'scrop_';
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const RANDOM_BYTES = 16;
const SIGNED_BYTES = 32;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const FORM = /^scrop_[0-9A-Za-z]{49}$/;

function base62(number: bigint, length: number): string {
  let text = '';
  for (let left = number; text.length < length; left /= 62n) text = DIGITS[Number(left % 62n)] + text;
  return text;
}

const checksumOf = (body: string) => base62(BigInt(crc32(body)), CHECKSUM_LENGTH);

/** Returns a new token, which is shown once. */
export function newToken({ keys }: Service): string {
  const signed = sign(keys, 'operator token', randomBytes(RANDOM_BYTES));
  const body = PREFIX + base62(BigInt(`0x${signed.toString('hex')}`), SECRET_LENGTH);
  return body + checksumOf(body);
}

/** Returns whether this service has made a token. Other texts need no database query. */
export function isToken({ keys }: Service, text: string): boolean {
  if (!FORM.test(text) || checksumOf(text.slice(0, -CHECKSUM_LENGTH)) !== text.slice(-CHECKSUM_LENGTH))
    return false;
  const digits = [...text.slice(PREFIX.length, -CHECKSUM_LENGTH)];
  const number = digits.reduce((sum, digit) => sum * 62n + BigInt(DIGITS.indexOf(digit)), 0n);
  const signed = Buffer.from(number.toString(16).padStart(SIGNED_BYTES * 2, '0'), 'hex');
  return signed.length === SIGNED_BYTES && readSigned(keys, 'operator token', signed) !== undefined;
}

const EXPIRY_DAYS = 90;
/** The longest validity in days. A token that is valid for longer would be forgotten. */
const EXPIRY_DAYS_MAX = 366;
/** The shortest interval between two updates of the last use. */
const TOUCH_MS = MINUTE_MS;

const TokenId = Id('token');

/** Four random characters, of 43, tell tokens apart. */
const SHOWN_LENGTH = PREFIX.length + 4;

const Beginning = Type.String({
  title: 'Begins with',
  pattern: '^scrop_[0-9A-Za-z]{4}$',
  description: 'The first ten characters.',
  examples: ['scrop_7Qx2'],
});

const TokenSchema = Type.Object({
  id: TokenId,
  name: Text,
  prefix: Beginning,
  roles: Type.Array(Word(ALL_ROLES)),
  merchantId: Nullable(MerchantId),
  networks: Type.Unsafe<string[] | null>({ type: ['array', 'null'], items: Text }),
  stepUp: Type.Boolean({
    title: 'May do what needs a second factor',
    description: 'Whether it may run operations of the risk `step-up`.',
  }),
  for: Nullable(Text, {
    title: 'Whose token',
    description:
      "The person whose token it is. Null: it is nobody's, and two people approve what it proposes.",
  }),
  suspended: Type.Boolean({
    description:
      'Whether it has no role at present, since its people are disabled, have none of its roles, or have had ' +
      'to enroll again.',
  }),
  createdBy: Text,
  createdAt: Time,
  expiresAt: Time,
  lastUsedAt: NullableTime,
  revokedAt: NullableTime,
});

/** A token, with the people that it depends on. */
type Token = Static<typeof TokenSchema> & {
  readonly userId: number | null;
  readonly people: readonly Person[];
};

/** A person that a token depends on, as the person is now. */
type Person = {
  readonly roles: readonly string[];
  readonly merchantId: string | null;
  readonly isActive: boolean;
};

/**
 * The people that a token depends on are the user whose token it is, and the user that made it. A token does
 * not outlast their enrollment: it may be known to those who had the account before.
 */
const TOKEN = sql`
select ${columnsOf(Type.Omit(TokenSchema, ['for', 'suspended']), 't')}, u.email as for, t.user_id as "userId",
  coalesce((
    select jsonb_agg(jsonb_build_object(
      'roles', p.roles, 'merchantId', p.merchant_id::text,
      'isActive', coalesce(p.enrolled_at <= t.created_at, false) and p.disabled_at is null))
    from users p where p.id in (t.user_id, t.made_by)), '[]') as people
from operator_tokens t left join users u on u.id = t.user_id`;

async function readTokens(db: Queries, statement: Sql): Promise<Token[]> {
  const tokens = await db.query<Token>(statement);
  return tokens.map((token) => ({ ...token, suspended: rolesNow(token).length === 0 }));
}

/**
 * Returns the roles that a token has now: those that its people have, too. An owner has all roles. Without
 * any, the token is suspended: its people are disabled, have lost their roles, or had to enroll again.
 */
function rolesNow({
  roles,
  merchantId,
  people,
}: Pick<Token, 'roles' | 'merchantId' | 'people'>): (Role | PortalRole)[] {
  return roles.filter((role) => people.every((person) => hasRole(person, role, merchantId)));
}

/** Returns whether a person may give a token a role: of the operator, or of a merchant's portal. */
function hasRole({ roles, merchantId, isActive }: Person, role: string, of: string | null): boolean {
  if (!isActive) return false;
  const isOwnDoor = merchantId === of;
  const isOwner = roles.includes('owner') && (isOwnDoor || merchantId === null);
  return isOwner || (isOwnDoor && roles.includes(role));
}

/**
 * Finds the token of a text, with the roles that it has now.
 * @param ip the address that sent it
 * @returns undefined for a token that is unknown, expired, revoked, suspended, or not valid from that address
 */
export async function findToken(service: Service, text: string, ip: string) {
  if (!isToken(service, text)) return undefined;
  const { db, clock } = service;
  const now = clock();
  const [token] = await readTokens(db, sql`${TOKEN} where t.token_hash = ${hashSecret(text)}`);
  if (!token || token.revokedAt || token.expiresAt <= now || token.suspended) return undefined;
  if (token.networks && !containing(token.networks)(ip)) return undefined;
  if (!token.lastUsedAt || now.getTime() - token.lastUsedAt.getTime() > TOUCH_MS)
    await db.query(sql`update operator_tokens set last_used_at = ${now} where id = ${token.id}`);
  return { ...token, roles: rolesNow(token) };
}

/** Returns the id of a token that is no longer accepted, for the audit. */
export async function findTokenId({ db }: Service, text: string): Promise<number | undefined> {
  const statement = sql`select id from operator_tokens where token_hash = ${hashSecret(text)}`;
  return (await db.query<{ id: number }>(statement))[0]?.id;
}

/** Keeps a token as it is until the transaction ends. @returns the users that it depends on */
export async function holdToken(tx: Queries, id: number): Promise<(number | null)[]> {
  const [row] = await tx.query<{ people: (number | null)[] }>(sql`
select array[user_id, made_by] as people from operator_tokens where id = ${id} for update`);
  return row?.people ?? [];
}

/**
 * Returns the roles that a token has now.
 * @returns undefined if it was revoked
 */
export async function rolesOfToken(db: Queries, id: number): Promise<(Role | PortalRole)[] | undefined> {
  const [token] = await readTokens(db, sql`${TOKEN} where t.id = ${id}`);
  return token && !token.revokedAt ? rolesNow(token) : undefined;
}

const CreateToken = {
  name: Type.Optional(Line(100, 'What the token is for.', 'nightly export')),
  roles: Type.Array(Word(ALL_ROLES), {
    minItems: 1,
    uniqueItems: true,
    description: 'At most those of its creator. It loses a role that its person loses.',
  }),
  for: Type.Optional(
    Nullable({
      ...Email,
      description: 'The email address of the person whose token it is: your own, unless set.',
    }),
  ),
  merchantId: Type.Optional(
    Nullable(MerchantId, { description: 'For a token of a merchant: it may call only /portal/v1.' }),
  ),
  networks: Type.Optional(Networks),
  stepUp: Type.Optional(Type.Boolean({ description: 'Let it run operations of the risk `step-up`.' })),
  expiresAt: Type.Optional(
    End(`When it expires: ${EXPIRY_DAYS} days from now unless set, at most ${EXPIRY_DAYS_MAX}.`),
  ),
};

/** Returns the expiry of a token. @throws Problem if it is in the past, or too far ahead */
async function expiryOf(caller: Caller, given: string | undefined): Promise<Date> {
  const now = caller.service.clock();
  const expiresAt =
    given === undefined
      ? new Date(now.getTime() + EXPIRY_DAYS * DAY_MS)
      : await toEnd(caller, given, 'expiresAt');
  if (expiresAt <= now) throw invalid('expiresAt', 'minimum', 'must be in the future');
  if (expiresAt.getTime() > now.getTime() + EXPIRY_DAYS_MAX * DAY_MS)
    throw invalid('expiresAt', 'maximum', `must be at most ${EXPIRY_DAYS_MAX} days ahead`);
  return expiresAt;
}

/** Checks that the creator of a token has its roles. The command line may give every role. */
function requireOwnRoles({ principal }: Caller, roles: readonly string[]): void {
  const own: readonly string[] = principal.roles;
  const exceeds =
    principal.kind !== 'command-line' && !own.includes('owner') && roles.some((role) => !own.includes(role));
  if (exceeds) throw new Problem('forbidden', 'a token has at most the roles of its creator');
}

/**
 * Returns the person whose token it is: the creator, unless another one is named. A token that the command
 * line creates for no one is nobody's.
 * @throws Problem if the named user is unknown or inactive, or has not all of the roles
 */
async function personOf(
  { service: { db }, principal }: Caller,
  { for: email, roles }: { readonly for?: string | null; readonly roles: readonly string[] },
  merchantId: string | null,
): Promise<User | undefined> {
  const isOwn = email === undefined || email === null;
  if (isOwn && principal.userId === null) return undefined;
  const [user] = isOwn
    ? [await findUser(db, principal.userId as number)]
    : await readAccounts(db, ofAddress(email, merchantId === null ? null : Number(merchantId)));
  if (user?.state !== 'active') throw invalid('for', 'user', 'must be the email address of an active user');
  const person = {
    ...user,
    merchantId: user.merchantId === null ? null : String(user.merchantId),
    isActive: true,
  };
  if (!roles.every((role) => hasRole(person, role, merchantId)))
    throw invalid('for', 'roles', 'must be a user with all roles of the token');
  return user;
}

/** Roles with which a token without a second factor reads everything, or proposes movements of money. */
const STRONG_ROLES: readonly unknown[] = ['owner', 'finance', 'operations'];

const GIVES_RIGHTS: Condition = {
  text: 'it has `stepUp`, or one of the roles owner, finance and operations, or belongs to a merchant',
  applies: (_caller, { stepUp, roles, merchantId = null }) =>
    stepUp === true || merchantId !== null || [roles].flat().some((role) => STRONG_ROLES.includes(role)),
};

export const createToken = changing({
  name: 'token.create',
  summary: 'Create a token, which is shown once',
  path: '/tokens',
  input: CreateToken,
  output: Type.Object({
    id: TokenId,
    token: Secret,
    expiresAt: Time,
  }),
  isForPeople: true,
  roles: GOVERN,
  approval: twoPeople({
    why: 'A token acts without a person, long after it was made.',
    when: [GIVES_RIGHTS],
  }),
  agreement: {
    sentence: 'Make a token of {merchant} with the roles {roles}',
    async of(asked) {
      const { merchantId, roles, name, stepUp, networks, expiresAt } = asked.input;
      const merchant = await merchantNamed(asked, merchantId);
      const secondFactor = stepUp ? 'yes' : 'no';
      return {
        merchant,
        roles,
        name,
        secondFactor,
        networks,
        expiresAt,
        for: asked.input.for,
        link: '/tokens',
      };
    },
  },
  status: 201,
  async run(caller, input) {
    const { db, clock } = caller.service;
    const expiresAt = await expiryOf(caller, input.expiresAt);
    const merchant = input.merchantId
      ? await requireMerchant(caller, input.merchantId, 'merchantId')
      : undefined;
    const merchantId = merchant?.id ?? null;
    checkRoles(input.roles, merchantId);
    requireOwnRoles(caller, input.roles);
    const user = await personOf(caller, input, input.merchantId ?? null);
    const networks = input.networks ? toNetworks(input.networks) : null;
    const token = newToken(caller.service);
    const terms = {
      name: input.name ?? input.roles.join(', '),
      roles: input.roles,
      merchantId,
      for: user?.email ?? null,
      networks: networks as string[] | null,
      stepUp: input.stepUp ?? false,
      expiresAt,
    };
    return db.transaction(async (tx) => {
      const [row] = await tx.query<{ id: number }>(sql`
insert into operator_tokens (name, token_hash, prefix, roles, merchant_id, networks, step_up, created_by,
  user_id, made_by, shown_to, expires_at, created_at)
values (${terms.name}, ${hashSecret(token)}, ${token.slice(0, SHOWN_LENGTH)}, ${terms.roles}, ${merchantId},
  ${terms.networks}, ${terms.stepUp}, ${caller.principal.name}, ${user?.id ?? null},
  ${caller.principal.userId}, ${caller.checkerId ?? null}, ${expiresAt}, ${clock()})
returning id`);
      const id = String(row?.id);
      await audit(tx, caller, { action: 'token.create', subject: `token ${id}`, after: terms });
      return { id, token, expiresAt };
    });
  },
});

const list = listing({
  name: 'token.list',
  summary: 'List tokens, newest first',
  path: '/tokens',
  item: TokenSchema,
  filters: { prefix: Type.Optional(Beginning) },
  columns: [
    'id',
    'name',
    'prefix',
    'roles',
    'for',
    'merchantId',
    'expiresAt',
    'lastUsedAt',
    'suspended',
    'revokedAt',
  ],
  roles: SEE_TOKENS,
  sorts: {
    id: sql`t.id`,
    isNewestFirst: true,
    keys: {
      name: byText(sql`t.name`),
      createdAt: null,
      expiresAt: byTime(sql`t.expires_at`),
      lastUsedAt: byTime(sql`t.last_used_at`),
    },
  },
  rows: ({ service }, { prefix = null }, _after, count, order) =>
    readTokens(
      service.readDb,
      sql`${TOKEN} where ${order.after}
  and (${prefix}::text is null or t.prefix = ${prefix}) order by ${order.by} limit ${count}`,
    ),
});

const revoke = changing({
  name: 'token.revoke',
  summary: 'Revoke a token: no process accepts it any more',
  path: '/tokens/:id/revoke',
  input: { id: TokenId },
  output: TokenSchema,
  roles: GOVERN,
  approval: alone('It takes a right away.'),
  async run(caller, input) {
    const { db, clock } = caller.service;
    const id = toId(input.id);
    return db.transaction(async (tx) => {
      await holdToken(tx, id);
      const [token] = await readTokens(tx, sql`${TOKEN} where t.id = ${id}`);
      if (!token) throw notFound(`token ${id}`);
      const revokedAt = token.revokedAt ?? clock();
      await tx.query(sql`update operator_tokens set revoked_at = ${revokedAt} where id = ${id}`);
      await audit(tx, caller, {
        action: 'token.revoke',
        subject: `token ${id}`,
        before: { revokedAt: token.revokedAt },
        after: { revokedAt },
      });
      return { ...token, revokedAt };
    });
  },
});

export const OPERATIONS = tableOf(createToken, list, revoke);
