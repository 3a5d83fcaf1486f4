import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import { toEnd } from '../ledger/zone.ts';
import { merchantNamed } from '../merchants/merchants.ts';
import { readNetwork } from '../network.ts';
import { alone, type Caller, type Condition, changing, reading, tableOf, twoPeople } from '../operation.ts';
import {
  findTokenById,
  insertToken,
  listTokenRows,
  lockToken,
  revokeTokenRow,
} from '../operations/queries.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { findAccount, findUser, type UserInfo } from '../people/users.ts';
import { GOVERN, PORTAL_ROLES, type PortalRole, ROLES, type Role, SEE_TOKENS } from '../principal.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import {
  End,
  Id,
  Input,
  Line,
  MerchantId,
  Nullable,
  NullableTime,
  Reason,
  Secret,
  Text,
  Time,
  toId,
  Word,
} from '../schema.ts';
import { DAY_MS } from '../time.ts';
import { hashToken, hasRole, newToken, rolesNow, type TokenRow } from './tokens.ts';

const EXPIRY_DAYS = 90;
/** The longest validity in days. A token that is valid for longer would be forgotten. */
const EXPIRY_DAYS_MAX = 366;
const NETWORKS_MAX = 50;

const ALL_ROLES = [...new Set([...ROLES, ...PORTAL_ROLES])] as readonly (Role | PortalRole)[];
const TokenId = Id('token');

const TokenSchema = Type.Object({
  id: TokenId,
  name: Text,
  roles: Type.Array(Word(ALL_ROLES)),
  merchantId: Nullable(MerchantId),
  networks: Type.Unsafe<string[] | null>({ type: ['array', 'null'], items: Text }),
  stepUp: Type.Boolean({ description: 'Whether it may run operations of the risk `step-up`.' }),
  for: Nullable(Text, {
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

export type Token = Static<typeof TokenSchema>;

function toJson(row: TokenRow) {
  return {
    id: String(row.id),
    name: row.name,
    roles: row.roles,
    merchantId: row.merchant_id === null ? null : String(row.merchant_id),
    networks: row.networks,
    stepUp: row.step_up,
    for: row.user_email,
    suspended: rolesNow(row).length === 0,
    createdBy: row.created_by,
    createdAt: row.created_at,
    expiresAt: row.expires_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
  };
}

const CreateToken = Input({
  name: Type.Optional(Line(100, 'What the token is for.', 'nightly export')),
  roles: Type.Array(Word(ALL_ROLES), {
    minItems: 1,
    uniqueItems: true,
    description: 'At most those of its creator. It loses a role that its person loses.',
  }),
  for: Type.Optional(
    Nullable(
      Line(
        254,
        'The email address of the person whose token it is: your own, unless set.',
        'ada@example.com',
      ),
    ),
  ),
  merchantId: Type.Optional(
    Nullable(MerchantId, { description: 'For a token of a merchant: it may call only /portal/v1.' }),
  ),
  networks: Type.Optional(
    Type.Array(Line(50, 'A network in CIDR.', '10.0.0.0/8'), { maxItems: NETWORKS_MAX }),
  ),
  stepUp: Type.Optional(Type.Boolean({ description: 'Let it run operations of the risk `step-up`.' })),
  expiresAt: Type.Optional(
    End(`When it expires: ${EXPIRY_DAYS} days from now unless set, at most ${EXPIRY_DAYS_MAX}.`),
  ),
  reason: Reason,
});

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

/**
 * Checks the roles of a token. They must exist for the operator or the portal, and its creator must have each
 * of them. The command line may give every role.
 */
function checkRoles({ principal }: Caller, roles: readonly string[], isPortal: boolean): void {
  const known: readonly string[] = isPortal ? PORTAL_ROLES : ROLES;
  const unknown = roles.filter((role) => !known.includes(role));
  if (unknown.length > 0)
    throw invalid(
      'roles',
      'enum',
      `must be of ${known.join(', ')}${isPortal ? ' for a token of a merchant' : ''}`,
    );
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
  merchantId: number | null,
): Promise<UserInfo | undefined> {
  const isOwn = email === undefined || email === null;
  if (isOwn && principal.userId === null) return undefined;
  const user = isOwn
    ? await findUser(db, principal.userId as number)
    : await findAccount(db, email, merchantId);
  if (user?.state !== 'active') throw invalid('for', 'user', 'must be the email address of an active user');
  const person = { ...user, isActive: true };
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
  method: 'POST',
  path: '/tokens',
  command: 'token create',
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
    const now = clock();
    const expiresAt = await expiryOf(caller, input.expiresAt);
    const merchantId = input.merchantId ? toId(input.merchantId, 'merchantId') : null;
    checkRoles(caller, input.roles, merchantId !== null);
    const user = await personOf(caller, input, merchantId);
    const networks = input.networks?.map((text) => readNetwork(text) ?? null) ?? null;
    if (networks?.includes(null)) throw invalid('networks', 'network', 'must be networks such as 10.0.0.0/8');
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
      const [row] = await tx
        .query<{ id: number }>(
          insertToken({
            ...terms,
            hash: hashToken(token),
            createdBy: caller.principal.name,
            userId: user?.id ?? null,
            madeBy: caller.principal.userId,
            shownTo: caller.checkerId ?? null,
            now,
          }),
        )
        .catch((error: { constraint?: string }) => {
          if (error.constraint === 'operator_tokens_merchant') throw notFound(`merchant ${merchantId}`);
          throw error;
        });
      const id = String(row?.id);
      await audit(tx, caller, { action: 'token.create', subject: `token ${id}`, after: terms });
      return { id, token, expiresAt };
    });
  },
});

export const listTokens = reading({
  name: 'token.list',
  summary: 'List tokens, newest first',
  method: 'GET',
  path: '/tokens',
  command: 'token list',
  input: Input({ ...PAGE }),
  output: Page(TokenSchema),
  roles: SEE_TOKENS,
  async run({ service }, { cursor, limit = 50 }) {
    const [before = null] = readCursor('tokens', {}, cursor) ?? [];
    const rows = await service.readDb.query<TokenRow>(
      listTokenRows(before === null ? null : Number(before), limit + 1),
    );
    return pageOf('tokens', {}, rows.map(toJson), limit, ({ id }) => [Number(id)]);
  },
});

export const revokeToken = changing({
  name: 'token.revoke',
  summary: 'Revoke a token: no process accepts it any more',
  method: 'POST',
  path: '/tokens/:id/revoke',
  command: 'token revoke',
  input: Input({ id: TokenId, reason: Reason }),
  output: TokenSchema,
  roles: GOVERN,
  approval: alone('It takes a right away.'),
  async run(caller, input) {
    const { db, clock } = caller.service;
    const id = toId(input.id);
    return db.transaction(async (tx) => {
      await tx.query(lockToken(id));
      const [before] = await tx.query<TokenRow>(findTokenById(id));
      if (!before) throw notFound(`token ${id}`);
      await tx.query(revokeTokenRow(id, clock()));
      const row = { ...before, revoked_at: before.revoked_at ?? clock() };
      await audit(tx, caller, {
        action: 'token.revoke',
        subject: `token ${id}`,
        before: { revokedAt: before.revoked_at },
        after: { revokedAt: row.revoked_at },
      });
      return toJson(row);
    });
  },
});

export const TOKENS = tableOf(createToken, listTokens, revokeToken);
