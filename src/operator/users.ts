import Type from 'typebox';
import { changeIn } from '../agreement.ts';
import { merchantNamed } from '../merchants/merchants.ts';
import {
  type Asked,
  alone,
  type Caller,
  type Condition,
  changing,
  reading,
  tableOf,
  twoPeople,
} from '../operation.ts';
import { isGlassClosed } from '../operations/four-eyes.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { confirmUser } from '../people/persons.ts';
import {
  endUserSessions,
  findUser,
  type Handing,
  type Invitation,
  inviteUser,
  listUsers,
  removeUser,
  resetUser,
  setUserDisabled,
  setUserRoles,
  type UserInfo,
} from '../people/users.ts';
import { GOVERN, MONEY, PORTAL_ROLES, type PortalRole, ROLES, type Role } from '../principal.ts';
import { notFound } from '../problem.ts';
import {
  Count,
  Id,
  Input,
  Line,
  MerchantId,
  Nullable,
  NullableTime,
  Reason,
  Text,
  Time,
  toId,
  Word,
} from '../schema.ts';

/** The operations on people who sign in. */

const ALL_ROLES = [...new Set([...ROLES, ...PORTAL_ROLES])] as readonly (Role | PortalRole)[];
const UserId = Id('user');
const Email = Line(254, 'An email address.', 'ada@example.com');
const Roles = Type.Array(Word(ALL_ROLES), {
  minItems: 1,
  uniqueItems: true,
  description: 'Their rights add up.',
});

const UserSchema = Type.Object({
  id: UserId,
  email: Text,
  name: Text,
  merchantId: Nullable(MerchantId, {
    description: 'The merchant that the user belongs to; null: the operator.',
  }),
  roles: Type.Array(Word(ALL_ROLES)),
  state: Word(['invited', 'active', 'disabled']),
  confirmed: Type.Boolean({
    description:
      'False: nobody else has confirmed whose account it is. Until then it approves nothing, and may belong to ' +
      'those who made, approved or received its link.',
  }),
  factors: Type.Array(Word(['totp', 'passkey'])),
  recoveryCodes: Type.Integer({ minimum: 0, description: 'How many are left.' }),
  signedInAt: NullableTime,
  createdAt: Time,
});

const InvitationSchema = Type.Object({
  id: UserId,
  link: Type.String({
    secret: true,
    description:
      'The path of the page on which the person enrolls, below the address of the service. Shown once.',
  }),
  expiresAt: Time,
});

/** Returns a user as every door shows it. */
export function toUserJson(user: UserInfo) {
  const { id, merchantId, roles, factors, hasPrintedLink: _hasPrintedLink, ...rest } = user;
  return {
    ...rest,
    id: String(id),
    merchantId: merchantId === null ? null : String(merchantId),
    roles: roles as (Role | PortalRole)[],
    factors: [...factors],
  };
}

/**
 * Returns an invitation with its link. The token is in the fragment of the URL, which browsers do not send,
 * so no proxy logs it.
 */
function toInvitationJson({ userId, token, expiresAt }: Invitation, merchantId: number | null) {
  return {
    id: String(userId),
    link: `/${merchantId === null ? 'console' : 'portal'}/enroll#${token}`,
    expiresAt,
  };
}

/**
 * Returns who receives a link: the user who approved the proposal, or else the caller. A link that the
 * command line prints is trusted as long as one person sets the service up, and after that if it broke the
 * glass.
 */
async function handingOf({ service, principal, checkerId }: Caller): Promise<Handing> {
  const { kind, userId } = principal;
  const handedTo = checkerId === undefined ? userId : checkerId;
  const isConfirmed = userId === null && (kind === 'break-glass' || !(await isGlassClosed(service)));
  return { invitedBy: userId, handedTo, isConfirmed };
}

export const listAllUsers = reading({
  name: 'user.list',
  summary: 'List users, oldest first',
  method: 'GET',
  path: '/users',
  command: 'user list',
  input: Input({ merchantId: Type.Optional(MerchantId), ...PAGE }),
  output: Page(UserSchema),
  roles: ['owner', 'auditor'],
  async run({ service }, { cursor, limit = 50, merchantId }) {
    const filters = { merchantId };
    const [after = 0] = readCursor('users', filters, cursor) ?? [];
    const of = merchantId === undefined ? null : toId(merchantId, 'merchantId');
    const users = await listUsers(service.db, of, Number(after), limit + 1);
    return pageOf('users', filters, users.map(toUserJson), limit, ({ id }) => [Number(id)]);
  },
});

/** Users with one of these roles can approve movements of money. */
const POWERFUL: readonly unknown[] = ['owner', 'finance'];
const grantsPower = (roles: unknown) => [roles].flat().some((role) => POWERFUL.includes(role));

const INVITES_POWER: Condition = {
  text: 'the user is one of the operator with a role that can approve movements of money, or one of a merchant',
  applies: (_caller, { merchantId = null, roles }) => merchantId !== null || grantsPower(roles),
};

export const invite = changing({
  name: 'user.invite',
  summary: 'Invite a person: create a link that is valid once, for 72 hours',
  method: 'POST',
  path: '/users',
  command: 'user invite',
  input: Input({
    email: Email,
    name: Type.Optional(Line(100, 'What the person is called.', 'Ada Lovelace')),
    roles: Roles,
    merchantId: Type.Optional(Nullable(MerchantId)),
    reason: Reason,
  }),
  output: InvitationSchema,
  isForPeople: true,
  roles: GOVERN,
  approval: twoPeople({
    why: 'It gives a right: to approve movements of money, or to take what belongs to a merchant.',
    when: [INVITES_POWER],
  }),
  agreement: {
    sentence: 'Invite {email} to {merchant} with the roles {roles}',
    async of(asked) {
      const { email, name, roles, merchantId } = asked.input;
      return { email, name, merchant: await merchantNamed(asked, merchantId), roles, link: '/users' };
    },
  },
  risk: 'step-up',
  status: 201,
  async run(caller, { email, name, roles, merchantId }) {
    const of = merchantId ? toId(merchantId, 'merchantId') : null;
    const wanted = { email, name, roles, merchantId: of, handing: await handingOf(caller) };
    return toInvitationJson(await inviteUser(caller, wanted), of);
  },
});

const GIVES_POWER: Condition = {
  text: 'a user of the operator gets a role that can approve movements of money, or it is a user of a merchant',
  async applies({ service: { db } }, { id, roles }) {
    const user = await findUser(db, toId(String(id)));
    return user !== undefined && (user.merchantId !== null || grantsPower(roles));
  },
};

export const setRolesOf = changing({
  name: 'user.set-roles',
  summary: 'Replace the roles of a user, who has to sign in again',
  method: 'POST',
  path: '/users/:id/set-roles',
  command: 'user set-roles',
  input: Input({ id: UserId, roles: Roles, reason: Reason }),
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
  run: async (caller, { id, roles }) => toUserJson(await setUserRoles(caller, toId(id), roles)),
});

function disabling(verb: 'disable' | 'enable') {
  return changing({
    name: `user.${verb}`,
    summary:
      verb === 'disable'
        ? 'Let a user sign in no more, and end its sessions'
        : 'Let a disabled user sign in again',
    method: 'POST',
    path: `/users/:id/${verb}`,
    command: `user ${verb}`,
    input: Input({ id: UserId, reason: Reason }),
    output: UserSchema,
    isForPeople: verb === 'enable',
    roles: GOVERN,
    approval: alone('It can be undone, and the person has the same password, factors and roles as before.'),
    risk: 'step-up',
    run: async (caller, { id }) => toUserJson(await setUserDisabled(caller, toId(id), verb === 'disable')),
  });
}

export const disableUser = disabling('disable');
export const enableUser = disabling('enable');

export const removeInvitation = changing({
  name: 'user.remove',
  summary: 'Remove an invited user who has never enrolled',
  method: 'POST',
  path: '/users/:id/remove',
  command: 'user remove',
  input: Input({ id: UserId, reason: Reason }),
  output: UserSchema,
  roles: GOVERN,
  approval: alone('It takes back an invitation that nobody has accepted.'),
  async run(caller, { id }) {
    const user = await requireUser(caller, id);
    await removeUser(caller, user.id);
    return toUserJson(user);
  },
});

export const resetSecondFactor = changing({
  name: 'user.reset-2fa',
  summary: "Take a user's password, second factors and sessions, and make a link to enroll again",
  method: 'POST',
  path: '/users/:id/reset-2fa',
  command: 'user reset-2fa',
  input: Input({ id: UserId, reason: Reason }),
  output: InvitationSchema,
  isForPeople: true,
  roles: GOVERN,
  approval: twoPeople({ why: 'A person who has the link becomes that user.' }),
  agreement: {
    sentence: 'Take the password and second factors of {email} of {merchant}, and make a link for new ones',
    of: ofUser,
  },
  async run(caller, { id }) {
    const { merchantId } = await requireUser(caller, id);
    return toInvitationJson(await resetUser(caller, toId(id), await handingOf(caller)), merchantId);
  },
});

export const endAllSessions = changing({
  name: 'user.end-sessions',
  summary: 'End all sessions of a user',
  method: 'POST',
  path: '/users/:id/end-sessions',
  command: 'user end-sessions',
  input: Input({ id: UserId, reason: Reason }),
  output: Type.Object({ id: UserId, ended: Count }),
  roles: GOVERN,
  approval: alone('It takes nothing away for good: the person signs in again.'),
  run: async (caller, { id }) => ({ id, ended: await endUserSessions(caller, toId(id)) }),
});

const ON_MACHINE: Condition = {
  text: 'the command line confirms it, and not a person',
  applies: ({ principal }) => principal.kind === 'command-line',
};

const LINK_OF_MACHINE: Condition = {
  text: 'the command line printed the link, so that nobody knows who has it',
  async applies({ service: { db } }, { id }) {
    const user = await findUser(db, Number(id));
    return user?.hasPrintedLink === true && !user.confirmed;
  },
};

export const confirmOne = changing({
  name: 'user.confirm',
  summary: 'Confirm that an account belongs to the person it names, and not to those who invited them',
  description:
    'Until then it approves nothing, and those who made, approved or received its link do not approve what ' +
    'it proposes. Somebody else confirms it.',
  method: 'POST',
  path: '/users/:id/confirm',
  command: 'user confirm',
  input: Input({ id: UserId, reason: Reason }),
  output: UserSchema,
  isForPeople: true,
  roles: MONEY,
  approval: twoPeople({
    why: 'It decides who counts as another person.',
    when: [ON_MACHINE, LINK_OF_MACHINE],
  }),
  agreement: {
    sentence: 'Confirm that the account {email} of {merchant} belongs to the person it names',
    of: ofUser,
  },
  risk: 'step-up',
  run: async (caller, { id }) =>
    toUserJson(await confirmUser(caller, toId(id), [caller.principal.userId, caller.checkerId])),
});

async function ofUser(asked: Asked<{ readonly id: string }>) {
  const { email, name, merchantId } = await requireUser(asked.caller, asked.input.id);
  return { email, name, merchant: await merchantNamed(asked, merchantId), link: '/users' };
}

async function requireUser({ service }: Caller, id: string): Promise<UserInfo> {
  const user = await findUser(service.db, toId(id));
  if (!user) throw notFound(`user ${id}`);
  return user;
}

export const USERS = tableOf(
  listAllUsers,
  invite,
  setRolesOf,
  disableUser,
  enableUser,
  removeInvitation,
  resetSecondFactor,
  confirmOne,
  endAllSessions,
);

/** The same operations by name, for the portal. */
export const users = {
  list: listAllUsers,
  invite,
  setRoles: setRolesOf,
  disable: disableUser,
  enable: enableUser,
  remove: removeInvitation,
  reset: resetSecondFactor,
  endSessions: endAllSessions,
};
