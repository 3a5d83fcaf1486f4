import { audit, type Change } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { newBearer } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import { type Holders, setHolders } from './persons.queries.ts';
import {
  clearFactors,
  findUserByEmail,
  findUserById,
  insertUser,
  listUserRows,
  listUsersByEmail,
  lockOwners,
  lockUserByEmail,
  lockUserById,
  removeInvited,
  setDisabled,
  setInvitation,
  setRoles,
  type UserRow,
} from './queries.ts';
import { checkRoles } from './roles.ts';
import { endSessions, factorsOf } from './sessions.ts';

/** People who may sign in: users of the operator and of merchants. */

const INVITATION_MS = 72 * 3_600_000;

export type UserInfo = {
  readonly id: number;
  readonly email: string;
  readonly name: string;
  readonly merchantId: number | null;
  readonly roles: readonly string[];
  /** `invited`: the invitation has not been accepted yet. */
  readonly state: 'invited' | 'active' | 'disabled';
  /** Whether somebody who does not know the link has confirmed whose account it is. */
  readonly confirmed: boolean;
  /** Whether the command line printed the link, so that nobody knows who has it. */
  readonly hasPrintedLink: boolean;
  readonly factors: readonly ('totp' | 'passkey')[];
  /** The number of unused recovery codes. */
  readonly recoveryCodes: number;
  readonly signedInAt: Date | null;
  readonly createdAt: Date;
};

export function toUser(row: UserRow): UserInfo {
  const state = row.disabled_at ? 'disabled' : row.enrolled_at ? 'active' : 'invited';
  return {
    id: row.id,
    email: row.email,
    name: row.name,
    merchantId: row.merchant_id,
    roles: row.roles,
    state,
    confirmed: row.confirmed_at !== null,
    hasPrintedLink: row.handed_to === null,
    factors: row.enrolled_at ? factorsOf(row.totp_secret !== null, row.has_passkey) : [],
    recoveryCodes: row.recovery_codes,
    signedInAt: row.signed_in_at,
    createdAt: row.created_at,
  };
}

export const subjectOf = (id: number) => `user ${id}`;

export async function findUser(db: Queries, id: number): Promise<UserInfo | undefined> {
  const [row] = await db.query<UserRow>(findUserById(id));
  return row && toUser(row);
}

/** Finds the account of an address: at the operator (null), or at a merchant. */
export async function findAccount(
  db: Queries,
  email: string,
  merchantId: number | null,
): Promise<UserInfo | undefined> {
  const [row] = await db.query<UserRow>(findUserByEmail(email.trim().toLowerCase(), merchantId));
  return row && toUser(row);
}

/** Lists all accounts of an address, that of the operator first. */
export async function listAccounts(db: Queries, email: string): Promise<UserInfo[]> {
  return (await db.query<UserRow>(listUsersByEmail(email.trim().toLowerCase()))).map(toUser);
}

/**
 * Returns a page of users, oldest first.
 * @param merchantId a merchant; 0 for the operator; null for all
 * @param after the page begins after this id
 */
export async function listUsers(
  db: Queries,
  merchantId: number | null,
  after: number,
  count: number,
): Promise<UserInfo[]> {
  return (await db.query<UserRow>(listUserRows(merchantId, after, count))).map(toUser);
}

export type Invite = {
  readonly email: string;
  readonly name?: string | undefined;
  readonly roles: readonly string[];
  /** Null for a user of the operator. */
  readonly merchantId: number | null;
  readonly handing?: Handing;
};

/** Who receives a link. */
export type Handing = Holders & {
  /** Whether the account counts as that of the person it names, since the machine is trusted. */
  readonly isConfirmed: boolean;
};

/** The machine receives the link, and is trusted with it. */
const TO_MACHINE: Handing = { invitedBy: null, handedTo: null, isConfirmed: true };

/** A link for enrolling. Its token is not stored. */
export type Invitation = { readonly userId: number; readonly token: string; readonly expiresAt: Date };

/**
 * Invites a person. A person who has not enrolled yet gets another link, and the previous link becomes
 * invalid.
 * @throws Problem `invalid`; `not-found` for the merchant; `exists` for a person who has enrolled
 */
export async function inviteUser(operator: Operator, invite: Invite): Promise<Invitation> {
  const email = invite.email.trim().toLowerCase();
  if (!/^[^\s@"<>]{1,64}@[^\s@"<>]{1,189}$/.test(email) || /\p{C}/u.test(email))
    throw invalid('email', 'format', 'must be an email address');
  const { merchantId } = invite;
  const roles = checkRoles(invite.roles, merchantId);
  const { service } = operator;
  return service.db.transaction(async (tx) => {
    if (merchantId !== null && !(await findMerchant(tx, merchantId))) throw notFound('such merchant');
    const name = invite.name?.trim() || email.slice(0, email.indexOf('@'));
    await tx.query(insertUser({ email, name, merchantId, roles, now: service.clock() }));
    const [user] = await tx.query<UserRow>(lockUserByEmail(email, merchantId));
    if (!user) throw new Error('a user was inserted, and no row came back');
    if (user.enrolled_at || user.disabled_at)
      throw new Problem(
        'exists',
        'there is a user with this email address: change its roles, or reset its second factor',
      );
    await tx.query(setRoles(user.id, name, roles));
    const invitation = await insertLink(operator, tx, user.id, invite.handing);
    const after = { email, name, roles, merchantId, expiresAt: invitation.expiresAt };
    await audit(tx, operator, { action: 'user.invite', subject: subjectOf(user.id), after });
    return invitation;
  });
}

async function insertLink(
  { service }: Operator,
  tx: Queries,
  userId: number,
  { isConfirmed, ...holders }: Handing = TO_MACHINE,
): Promise<Invitation> {
  const { token, tokenHash } = newBearer(service.keys, 'invitation');
  const now = service.clock();
  const expiresAt = new Date(now.getTime() + INVITATION_MS);
  await tx.query(setHolders(userId, holders, isConfirmed ? now : null));
  await tx.query(setInvitation(userId, tokenHash, expiresAt));
  return { userId, token, expiresAt };
}

/** Changes a user in one transaction, with an entry in the audit. */
export async function changeUser<Result>(
  operator: Operator,
  id: number,
  change: (tx: Queries, user: UserRow) => Promise<{ result: Result; audited?: Change }>,
): Promise<Result> {
  return operator.service.db.transaction(async (tx) => {
    const [user] = await tx.query<UserRow>(lockUserById(id));
    if (!user) throw notFound('such user');
    const { result, audited } = await change(tx, user);
    if (audited) await audit(tx, operator, audited);
    return result;
  });
}

/**
 * Checks that another user can give people their roles.
 * @throws Problem `conflict` if this is the last one
 */
async function requireAnotherOwner(tx: Queries, user: UserRow): Promise<void> {
  if (user.merchant_id !== null || !user.roles.includes('owner') || !user.enrolled_at) return;
  const owners = await tx.query<{ id: number }>(lockOwners());
  if (!owners.some(({ id }) => id !== user.id))
    throw new Problem('conflict', 'this is the last owner: invite another one first');
}

/**
 * Sets the roles of a user, who then has to sign in again.
 * @throws Problem `not-found`; `invalid`; `conflict` for the last owner
 */
export async function setUserRoles(
  operator: Operator,
  id: number,
  wanted: readonly string[],
): Promise<UserInfo> {
  return changeUser(operator, id, async (tx, user) => {
    const roles = checkRoles(wanted, user.merchant_id);
    if (String(roles) === String(user.roles)) return { result: toUser(user) };
    if (!roles.includes('owner')) await requireAnotherOwner(tx, user);
    await tx.query(setRoles(id, user.name, roles));
    await endSessions(tx, id);
    const audited = {
      action: 'user.set-roles',
      subject: subjectOf(id),
      before: { roles: user.roles },
      after: { roles },
    };
    return { result: toUser({ ...user, roles }), audited };
  });
}

/**
 * Disables a user and ends its sessions, or enables it again.
 * @throws Problem `not-found`; `conflict` for the last owner
 */
export async function setUserDisabled(operator: Operator, id: number, disabled: boolean): Promise<UserInfo> {
  return changeUser(operator, id, async (tx, user) => {
    const was = user.disabled_at !== null;
    if (was === disabled) return { result: toUser(user) };
    if (disabled) {
      await requireAnotherOwner(tx, user);
      await endSessions(tx, id);
    }
    const disabledAt = disabled ? operator.service.clock() : null;
    await tx.query(setDisabled(id, disabledAt));
    const action = disabled ? 'user.disable' : 'user.enable';
    const audited = { action, subject: subjectOf(id), before: { disabled: was }, after: { disabled } };
    return { result: toUser({ ...user, disabled_at: disabledAt }), audited };
  });
}

/**
 * Removes a user's password, second factors and recovery codes, ends the sessions, and makes a new link for
 * enrolling.
 * @throws Problem `not-found`; `conflict` for a disabled user
 */
export async function resetUser(operator: Operator, id: number, handing?: Handing): Promise<Invitation> {
  return changeUser(operator, id, async (tx, user) => {
    if (user.disabled_at) throw new Problem('conflict', 'this user is disabled: enable it first');
    await tx.query(clearFactors(id));
    await endSessions(tx, id);
    const result = await insertLink(operator, tx, id, handing);
    const before = { factors: toUser(user).factors };
    const after = { factors: [], expiresAt: result.expiresAt };
    return { result, audited: { action: 'user.reset-2fa', subject: subjectOf(id), before, after } };
  });
}

/**
 * Removes a user who was invited and has never enrolled. The link becomes void.
 * @throws Problem `not-found`; `conflict` for a user who has enrolled before
 */
export async function removeUser(operator: Operator, id: number): Promise<void> {
  await changeUser(operator, id, async (tx, { email, roles, merchant_id: merchantId }) => {
    const [row] = await tx.query<{ removed: boolean }>(removeInvited(id));
    if (!row?.removed)
      throw new Problem(
        'conflict',
        'this user has enrolled before: disable it, since others may refer to it',
      );
    const before = { email, roles, merchantId };
    return { result: undefined, audited: { action: 'user.remove', subject: subjectOf(id), before } };
  });
}

/**
 * Ends the sessions of a user.
 * @returns how many
 * @throws Problem `not-found`
 */
export async function endUserSessions(operator: Operator, id: number): Promise<number> {
  return changeUser(operator, id, async (tx, user) => {
    const result = await endSessions(tx, user.id);
    const audited = {
      action: 'user.end-sessions',
      subject: subjectOf(id),
      before: { sessions: result },
      after: { sessions: 0 },
    };
    return { result, audited };
  });
}
