import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import { audit, type Change } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { byText, byTime, listing } from '../listing.ts';
import { merchantNamed } from '../merchants/merchants.ts';
import { type Asked, alone, type Condition, changing, tableOf, twoPeople } from '../operation.ts';
import { ALL_ROLES, GOVERN, PORTAL_ROLES, ROLES } from '../principal.ts';
import { invalid, notFound, Problem, requireRow } from '../problem.ts';
import { columnsOf } from '../row.ts';
import {
  Count,
  Id,
  MerchantId,
  Nullable,
  NullableTime,
  Numbered,
  Positional,
  Text,
  Time,
  Titled,
  toId,
  Word,
} from '../schema.ts';
import { endSessions, FACTORS } from './sessions.ts';

/** People who may sign in: users of the operator and of merchants. */

export const UserId = Id('user');
/** The user that a command names. */
const BY_NAME = 'The id of the user. The command takes the email address, too.';
export const NamedUser = Positional(Type.String({ ...UserId, option: 'user', description: BY_NAME }));
export const Roles = Type.Array(Word(ALL_ROLES), {
  minItems: 1,
  uniqueItems: true,
  description: 'Their rights add up.',
  'x-choices': { operator: ROLES, merchant: PORTAL_ROLES },
});

export const UserSchema = Type.Object({
  id: Numbered(UserId),
  email: Text,
  name: Text,
  merchantId: Nullable(Numbered(MerchantId), {
    description: 'The merchant that the user belongs to; null: the operator.',
  }),
  roles: Type.Array(Word(ALL_ROLES)),
  state: Word(['invited', 'active', 'disabled', 'erased']),
  confirmed: Type.Boolean({
    description:
      'False: nobody else has confirmed whose account it is. Until then it approves nothing, and may belong to ' +
      'those who made, approved or received its link.',
  }),
  factors: Titled(
    'Second factors',
    Type.Array(Word(['totp', 'passkey'], { 'x-labels': { totp: 'Authenticator app' } })),
  ),
  recoveryCodes: { ...Count, title: 'Recovery codes left', description: 'How many are left.' },
  signedInAt: Titled('Last sign-in', NullableTime),
  createdAt: Time,
});

export type User = Static<typeof UserSchema> & {
  /** Whether the command line printed the link, so that nobody knows who has it. */
  readonly hasPrintedLink: boolean;
};

/** A user, with what proves that a person is that user. */
export type Account = User & {
  readonly passwordHash: string | null;
  readonly totpSecret: Buffer | null;
  readonly enrolledAt: Date | null;
  readonly invitationExpiresAt: Date | null;
  /** Whether an account at the identity provider belongs to the user. */
  readonly isBound: boolean;
};

const OF_USER = columnsOf(UserSchema, 'u', {
  id: sql`u.id`,
  merchantId: sql`u.merchant_id`,
  state: sql`
case when u.erased_at is not null then 'erased' when u.disabled_at is not null then 'disabled'
  when u.enrolled_at is not null then 'active' else 'invited' end`,
  confirmed: sql`u.confirmed_at is not null`,
  factors: sql`case when u.enrolled_at is null then '{}' else ${FACTORS} end`,
  recoveryCodes: sql`
(select count(*)::integer from recovery_codes r where r.user_id = u.id and r.used_at is null)`,
});
const COLUMNS = sql`${OF_USER}, u.handed_to is null as "hasPrintedLink"`;

const PROOFS = sql`
u.password_hash as "passwordHash", u.totp_secret as "totpSecret", u.enrolled_at as "enrolledAt",
u.invitation_expires_at as "invitationExpiresAt", u.oidc_subject is not null as "isBound"`;

/** Whether an account is in use, or can be: it was neither disabled nor erased. */
export const isOpen = ({ state }: Pick<User, 'state'>) => state !== 'disabled' && state !== 'erased';

export const subjectOf = (id: number) => `user ${id}`;

const byId = (id: number) => sql`select ${COLUMNS} from users u where u.id = ${id}`;

export async function findUser(db: Queries, id: number): Promise<User | undefined> {
  return (await db.query<User>(byId(id)))[0];
}

/** Returns a user. @throws Problem if there is no such user */
function requireUser(db: Queries, id: string): Promise<User> {
  return requireRow(db, byId(toId(id)), `user ${id}`);
}

/** Returns the accounts that meet a condition on `users u`. */
export function readAccounts(db: Queries, condition: Sql): Promise<Account[]> {
  return db.query<Account>(sql`select ${COLUMNS}, ${PROOFS} from users u where ${condition}`);
}

/** Returns a condition on the address of an account: at the operator (null), or at a merchant. */
export function ofAddress(email: string, merchantId: number | null): Sql {
  return sql`u.email = ${email.trim().toLowerCase()} and u.merchant_id is not distinct from ${merchantId}`;
}

/** Lists all accounts of an address, that of the operator first. */
export function listAccounts(db: Queries, email: string): Promise<Account[]> {
  const address = email.trim().toLowerCase();
  return readAccounts(db, sql`u.email = ${address} order by u.merchant_id nulls first limit 1000`);
}

type Changed<Result> = { readonly result: Result; readonly audited?: Omit<Change, 'subject'> };

/** Changes a user in one transaction, with an entry in the audit. */
export async function changeUser<Result>(
  operator: Operator,
  id: number,
  change: (tx: Queries, user: Account) => Promise<Changed<Result>>,
): Promise<Result> {
  return operator.service.db.transaction(async (tx) => {
    const [user] = await readAccounts(tx, sql`u.id = ${id} for update of u`);
    if (!user) throw notFound('such user');
    const { result, audited } = await change(tx, user);
    if (audited) await audit(tx, operator, { subject: subjectOf(id), ...audited });
    return result;
  });
}

/** Updates a user. @returns the user as it is then */
export async function updateUser(tx: Queries, id: number, values: Sql): Promise<User> {
  const [user] = await tx.query<User>(sql`
update users u set ${values} where u.id = ${id} returning ${COLUMNS}`);
  return user as User;
}

/**
 * Returns the roles of a user or a token, each once, in the order of the table.
 * @param merchantId null for the operator
 * @throws Problem `invalid` for an unknown role, or if there is none
 */
export function checkRoles(roles: readonly string[], merchantId: number | null): string[] {
  const known: readonly string[] = merchantId === null ? ROLES : PORTAL_ROLES;
  if (roles.length === 0 || roles.some((role) => !known.includes(role))) {
    const whose = merchantId === null ? 'the operator' : 'a merchant';
    throw invalid('roles', 'enum', `of ${whose} must be some of ${known.join(', ')}`);
  }
  return known.filter((role) => roles.includes(role));
}

/**
 * Checks that another user can give people their roles.
 * @throws Problem `conflict` if this is the last one
 */
async function requireAnotherOwner(tx: Queries, user: Account): Promise<void> {
  if (user.merchantId !== null || !user.roles.includes('owner') || !user.enrolledAt) return;
  // Locks the enrolled owners of the operator who may sign in. If two are removed at once, the second
  // removal waits.
  const owners = await tx.query<{ id: number }>(sql`
select id from users
where merchant_id is null and 'owner' = any (roles) and disabled_at is null and enrolled_at is not null
order by id for update`);
  if (!owners.some(({ id }) => id !== user.id))
    throw new Problem('conflict', 'this is the last owner: invite another one first');
}

const list = listing({
  name: 'user.list',
  summary: 'List users, oldest first',
  path: '/users',
  filters: { merchantId: Type.Optional(MerchantId) },
  item: UserSchema,
  columns: ['id', 'email', 'name', 'merchantId', 'roles', 'state', 'confirmed', 'factors', 'signedInAt'],
  roles: ['owner', 'auditor'],
  sorts: {
    id: sql`u.id`,
    isNewestFirst: false,
    keys: {
      email: byText(sql`u.email`),
      name: byText(sql`u.name`),
      signedInAt: byTime(sql`u.signed_in_at`),
    },
  },
  rows({ service }, { merchantId }, _after, count, order) {
    const of = merchantId === undefined ? null : toId(merchantId, 'merchantId');
    return service.db.query<User>(sql`
select ${COLUMNS} from users u
where ${order.after} and (${of}::integer is null or u.merchant_id = ${of})
order by ${order.by} limit ${count}`);
  },
});

/** Users with one of these roles can approve movements of money. */
const POWERFUL: readonly unknown[] = ['owner', 'finance'];
export const grantsPower = (roles: unknown) => [roles].flat().some((role) => POWERFUL.includes(role));

const GIVES_POWER: Condition = {
  text: 'a user of the operator gets a role that can approve movements of money, or it is a user of a merchant',
  async applies({ service: { db } }, { id, roles }) {
    const user = await findUser(db, toId(String(id)));
    return user !== undefined && (user.merchantId !== null || grantsPower(roles));
  },
};

const setRoles = changing({
  name: 'user.set-roles',
  title: 'Change roles',
  summary: 'Replace the roles of a user, who has to sign in again',
  path: '/users/:id/set-roles',
  input: { id: NamedUser, roles: Roles },
  output: UserSchema,
  isForPeople: true,
  roles: GOVERN,
  approval: twoPeople({
    why: 'It gives a right: to approve movements of money, or to take what belongs to a merchant.',
    when: [GIVES_POWER],
  }),
  agreement: {
    sentence: 'Give {email} of {merchant} the roles {roles} instead of {before}',
    async of(asked) {
      const before = changeIn(asked).before['roles'];
      return { ...(await ofUser(asked)), roles: asked.input.roles, before };
    },
  },
  risk: 'step-up',
  run: (caller, input) =>
    changeUser(caller, toId(input.id), async (tx, user) => {
      const roles = checkRoles(input.roles, user.merchantId);
      if (String(roles) === String(user.roles)) return { result: user };
      if (!roles.includes('owner')) await requireAnotherOwner(tx, user);
      await endSessions(tx, user.id);
      const result = await updateUser(tx, user.id, sql`roles = ${roles}`);
      const audited = { action: 'user.set-roles', before: { roles: user.roles }, after: { roles } };
      return { result, audited };
    }),
});

function disabling(verb: 'disable' | 'enable') {
  return changing({
    name: `user.${verb}`,
    summary:
      verb === 'disable'
        ? 'Stop a user from signing in, and end their sessions'
        : 'Let a disabled user sign in again',
    path: `/users/:id/${verb}`,
    input: { id: NamedUser },
    output: UserSchema,
    isForPeople: verb === 'enable',
    roles: GOVERN,
    approval: alone('It can be undone, and the person has the same password, factors and roles as before.'),
    risk: 'step-up',
    run: (caller, { id }) =>
      changeUser(caller, toId(id), async (tx, user) => {
        if (user.state === 'erased') throw new Problem('conflict', 'this user has been erased');
        const [was, disabled] = [user.state === 'disabled', verb === 'disable'];
        if (was === disabled) return { result: user };
        if (disabled) {
          await requireAnotherOwner(tx, user);
          await endSessions(tx, user.id);
        }
        const at = disabled ? caller.service.clock() : null;
        // An open invitation becomes void.
        const values = sql`disabled_at = ${at}, invitation_hash = null, invitation_expires_at = null`;
        const result = await updateUser(tx, user.id, values);
        const audited = { action: `user.${verb}`, before: { disabled: was }, after: { disabled } };
        return { result, audited };
      }),
  });
}

const remove = changing({
  name: 'user.remove',
  title: 'Remove the invitation',
  summary: 'Remove an invited user who has never enrolled',
  path: '/users/:id/remove',
  input: { id: NamedUser },
  output: UserSchema,
  roles: GOVERN,
  approval: alone('It takes back an invitation that nobody has accepted.'),
  run: (caller, { id }) =>
    changeUser(caller, toId(id), async (tx, user) => {
      const { email, roles, merchantId } = user;
      const [row] = await tx.query<{ removed: boolean }>(sql`select remove_invited(${user.id}) as removed`);
      if (!row?.removed)
        throw new Problem(
          'conflict',
          'this user has enrolled before: disable it, since others may refer to it',
        );
      const audited = { action: 'user.remove', before: { email, roles, merchantId } };
      return { result: user, audited };
    }),
});

/** The end of the addresses of erased people, which nobody can have. */
export const ERASED_HOST = '@erased.invalid';

const erase = changing({
  name: 'user.erase',
  title: 'Erase',
  summary: 'Erase the name, the address and the credentials of a disabled user, for good',
  description:
    'The account stays as a number, since others refer to it. The audit and past approvals keep the name: ' +
    'they prove who did what.',
  path: '/users/:id/erase',
  input: { id: NamedUser },
  output: UserSchema,
  roles: GOVERN,
  approval: alone('The person cannot sign in any more, and the audit keeps what it proves.'),
  risk: 'step-up',
  run: (caller, { id }) =>
    changeUser(caller, toId(id), async (tx, user) => {
      if (user.state === 'erased') return { result: user };
      if (user.state !== 'disabled') throw new Problem('conflict', 'disable this user first');
      await eraseAnswers(tx, user);
      await forgetCredentials(tx, user.id);
      const result = await updateUser(
        tx,
        user.id,
        sql`email = ${`user-${user.id}${ERASED_HOST}`}, name = 'Erased', erased_at = ${caller.service.clock()}`,
      );
      return { result, audited: { action: 'user.erase' } };
    }),
});

/** Takes the name and the address of a user out of the stored answers of requests with an Idempotency-Key. */
async function eraseAnswers(tx: Queries, { email, name }: User): Promise<void> {
  const [address, person] = [email, name].map((text) => JSON.stringify(text));
  await tx.query(sql`
update operator_requests set output = replace(replace(output, ${address}, '"erased"'), ${person}, '"Erased"')
where position(${address} in output) > 0`);
}

/** Takes the password, the second factors and the single sign-on of a user, and ends its sessions. */
export async function forgetCredentials(tx: Queries, id: number): Promise<void> {
  await tx.query(sql`
with gone as (delete from passkeys where user_id = ${id}),
  codes as (delete from recovery_codes where user_id = ${id})
update users set
  password_hash = null, totp_secret = null, totp_step = null, oidc_issuer = null, oidc_subject = null
where id = ${id}`);
  await endSessions(tx, id);
}

const endUserSessions = changing({
  name: 'user.end-sessions',
  summary: 'End all sessions of a user',
  path: '/users/:id/end-sessions',
  input: { id: NamedUser },
  output: Type.Object({ id: UserId, ended: Count }),
  roles: GOVERN,
  approval: alone('It takes nothing away for good: the person signs in again.'),
  run: (caller, { id }) =>
    changeUser(caller, toId(id), async (tx, user) => {
      const ended = await endSessions(tx, user.id);
      const audited = { action: 'user.end-sessions', before: { sessions: ended }, after: { sessions: 0 } };
      return { result: { id, ended }, audited };
    }),
});

/** Returns what two people have to know of a user. */
export async function ofUser(asked: Asked<{ readonly id: string }>) {
  const { email, name, merchantId } = await requireUser(asked.caller.service.db, asked.input.id);
  return { email, name, merchant: await merchantNamed(asked, merchantId), link: '/users' };
}

export const users = {
  list,
  setRoles,
  disable: disabling('disable'),
  enable: disabling('enable'),
  erase,
  remove,
  endSessions: endUserSessions,
};

export const OPERATIONS = tableOf(...Object.values(users));
