import { audit } from '../audit/audit.ts';
import type { Service } from '../context.ts';
import { hashSecret, ownerOfTotp } from '../credentials.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { invalid, Problem } from '../operator/problem.ts';
import { acceptFactor, newTotpSecret, replaceRecoveryCodes, totpUri } from './factors.ts';
import { checkNewPassword, hashPassword } from './password.ts';
import {
  enrollUser,
  findInvitation,
  findUserById,
  type InvitationRow,
  lockUserById,
  setSignedIn,
  setTotpSecret,
  takeInvitation,
  type UserRow,
} from './queries.ts';
import { actorOfUser, beginSession, type Door, doorOf, endSessions, type Origin } from './sessions.ts';

/**
 * Accepting an invitation: a password, an authenticator app that shows the right code, and recovery codes to
 * keep.
 */

export type OpenInvitation = {
  readonly email: string;
  readonly name: string;
  readonly roles: readonly string[];
  readonly merchantId: number | null;
  readonly expiresAt: Date;
  /** For the authenticator app; the same whenever the link is opened. */
  readonly totp: { readonly secret: string; readonly uri: string };
};

const unknownLink = () =>
  new Problem(
    'unauthorized',
    'this link has been used, has expired, or was replaced by a newer one: ask for another one',
  );

/** @throws Problem `unauthorized` where a link is not valid any more, or leads to the other door */
async function findInvited(
  service: Service,
  door: Door,
  token: string,
): Promise<{ user: UserRow; expiresAt: Date }> {
  const { db, clock } = service;
  const [invitation] = await db.query<InvitationRow>(findInvitation(hashSecret(token), 'enroll', clock()));
  const [user] = invitation ? await db.query<UserRow>(findUserById(invitation.user_id)) : [];
  if (!invitation || !user || user.disabled_at || doorOf(user.merchant_id) !== door) throw unknownLink();
  return { user, expiresAt: invitation.expires_at };
}

/** What the page of an invitation shows. @throws Problem `unauthorized` */
export async function openInvitation(service: Service, door: Door, token: string): Promise<OpenInvitation> {
  const { user, expiresAt } = await findInvited(service, door, token);
  const secret = await offerTotp(service, user.id);
  const { email, name, roles, merchant_id: merchantId } = user;
  return { email, name, roles, merchantId, expiresAt, totp: { secret, uri: totpUri(secret, email) } };
}

/** The secret that an invited user's authenticator app is set up with; made when the link is opened first. */
async function offerTotp({ db, keys }: Service, userId: number): Promise<string> {
  return db.transaction(async (tx) => {
    await holdKeyRing(tx, keys);
    const [user] = await tx.query<UserRow>(lockUserById(userId));
    if (user?.totp_secret) return keys.openText(ownerOfTotp(userId), user.totp_secret);
    const secret = newTotpSecret();
    await tx.query(setTotpSecret(userId, keys.sealText(ownerOfTotp(userId), secret)));
    return secret;
  });
}

const NAME_LENGTH_MAX = 100;

export type Enroll = { readonly name: string; readonly password: string; readonly totp: string };

/**
 * Accepts an invitation and signs in.
 * @returns the token of the session, and the recovery codes, which are stored nowhere
 * @throws Problem `unauthorized` for the link; `invalid` for what is wrong with the rest: the link is still
 *   valid then
 */
export async function enroll(
  service: Service,
  door: Door,
  token: string,
  { name, password, totp }: Enroll,
  origin: Origin,
): Promise<{ token: string; recoveryCodes: string[] }> {
  const { user } = await findInvited(service, door, token);
  const called = name.trim();
  if (called === '' || called.length > NAME_LENGTH_MAX || /\p{C}/u.test(called))
    throw invalid('name', 'maxLength', `must have 1 to ${NAME_LENGTH_MAX} characters, all of them visible`);
  await checkNewPassword(password, user.email);
  if (!(await acceptFactor(service, user, { totp })))
    throw invalid('totp', 'code', 'is not what the authenticator app shows now: wait for the next code');
  const passwordHash = await hashPassword(password);
  const { clock, db } = service;
  return db.transaction(async (tx) => {
    const [taken] = await tx.query(takeInvitation(hashSecret(token), 'enroll', clock()));
    if (!taken) throw unknownLink();
    await tx.query(enrollUser(user.id, { name: called, passwordHash, hasTotp: true, now: clock() }));
    const recoveryCodes = await replaceRecoveryCodes(tx, user.id);
    await endSessions(tx, user.id);
    await tx.query(setSignedIn(user.id, clock()));
    const session = await beginSession(service, tx, user.id, origin, true);
    const operator = { service, actor: actorOfUser(user, origin) };
    const after = { name: called, factor: 'totp' };
    await audit(tx, operator, { action: 'user.enroll', subject: `user ${user.id}`, after });
    return { token: session, recoveryCodes };
  });
}
