import type { Service } from '../context.ts';
import { hashOfBearer, newBearer } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { networkOf } from '../network.ts';
import { invalid, Problem } from '../problem.ts';
import {
  attempt,
  countAttempt,
  factorLimits,
  forget,
  passwordLimits,
  recordingRefusal,
  takeBack,
  trialOf,
} from './attempts.ts';
import { insertSignIn, type OidcAccount, SIGN_IN_EXPIRED, SIGN_IN_MS } from './begun.ts';
import { deviceOf } from './devices.ts';
import { acceptInvitation, hashPasswordOf, wordsOf } from './enroll.ts';
import { acceptFactor, type Factor, replaceRecoveryCodes } from './factors.ts';
import { checkNewPassword, isOutdated, isPassword, matchingHashes } from './password.ts';
import {
  auditOwn,
  beginSession,
  type Door,
  doorOf,
  endSessions,
  renewStepped,
  type Session,
  type SignedIn,
  type Visitor,
} from './sessions.ts';
import { type Account, listAccounts, readAccounts } from './users.ts';

/**
 * Signing in takes a password, then a second factor. Whether the address or the password is wrong, the answer
 * and its delay are the same.
 */

/** Returns the user if it may sign in at a door; undefined otherwise. */
export function signable(user: Account | undefined, door: Door): Account | undefined {
  return user?.state === 'active' && doorOf(user.merchantId) === door ? user : undefined;
}

const wrongPassword = () => new Problem('unauthorized', 'the email address or the password is wrong');
const wrongCode = () =>
  new Problem('unauthorized', 'the code is wrong, or was used already: wait for the next one');

/**
 * Checks that a session is stepped up.
 * @throws Problem if its user gave no second factor within five minutes
 */
export function requireSteppedUp({ steppedUpUntil }: Session): void {
  if (steppedUpUntil) return;
  throw new Problem(
    'step-up-required',
    'this needs your second factor again: it is asked for every five minutes',
  );
}

const setPasswordHash = (id: number, passwordHash: string) =>
  sql`update users set password_hash = ${passwordHash} where id = ${id}`;

/**
 * Begins to sign in with a password.
 * @param asked.merchantId the merchant whose portal it is, if the person has accounts at several
 * @returns the token with which the sign-in continues, which is not stored, and the factors of the user; or
 *   the merchants to choose from, if the password is that of several accounts
 * @throws Problem `too-many-requests`; `unauthorized`, which is the same for an unknown address and a wrong
 *   password
 */
export async function beginSignIn(
  visitor: Visitor,
  asked: { readonly email: string; readonly password: string; readonly merchantId?: number | undefined },
) {
  const { service, door } = visitor;
  const { db } = service;
  const email = asked.email.trim().toLowerCase();
  const rows = await listAccounts(db, email);
  const ofDoor = rows.filter((row) => doorOf(row.merchantId) === door);
  const users = ofDoor.filter(
    (row) => signable(row, door) && (asked.merchantId ?? row.merchantId) === row.merchantId,
  );
  const found = await withPassword(visitor, { email, users, subject: ofDoor[0]?.id }, asked);
  const [user, ...others] = found;
  if (!user) throw wrongPassword();
  if (others.length > 0) return { merchants: found.map(({ merchantId }) => merchantId as number) };
  if (isOutdated(user.passwordHash as string))
    await db.query(setPasswordHash(user.id, await hashPasswordOf(service, user, asked.password)));
  return { token: await beginSecondFactor(service, user.id), factors: user.factors };
}

/**
 * Returns the users who have a password. A device that one of them knows has a limit of its own, with which
 * only the account of that user is tried: the owner of one account gains no guesses at another one.
 * @throws Problem `too-many-requests`; `unauthorized` if there is none
 */
async function withPassword(
  { service, door, origin }: Visitor,
  { email, users, subject }: { email: string; users: readonly Account[]; subject: number | undefined },
  { password }: { readonly password: string },
): Promise<Account[]> {
  const { address, devices } = origin;
  const known = users.filter((user) => deviceOf(devices, user));
  const unknown = users.filter((user) => !known.includes(user));
  const groups = [
    ...known.map((user) => [user]),
    ...(unknown.length > 0 || known.length === 0 ? [unknown] : []),
  ];
  const limitsOf = ([user]: readonly Account[]) =>
    passwordLimits({ door, email, address, device: deviceOf(devices, user) });
  const [first = []] = groups;
  const trial = { limits: limitsOf(first), userId: subject, by: 'password', origin };
  let found: Account[] = [];
  const check = async () => {
    for (const [tried, group] of groups.entries()) {
      if (tried > 0) await countAttempt(service, { ...trial, limits: limitsOf(group), userId: group[0]?.id });
      const hashes = group.flatMap((user) => user.passwordHash ?? []);
      const by = deviceOf(devices, group[0]) ? 'known' : { network: networkOf(address) };
      const matching = await matchingHashes(password, hashes, by);
      found = group.filter((user) => user.passwordHash !== null && matching.includes(user.passwordHash));
      if (found.length === 0) continue;
      for (const each of groups.slice(0, tried + 1)) await takeBack(service, limitsOf(each));
      return true;
    }
    return false;
  };
  await attempt(service, trial, check, wrongPassword);
  return found;
}

/**
 * Begins a sign-in that waits for its second factor.
 * @param binding the account at the identity provider that the factor will bind to the user
 * @returns its token
 */
export async function beginSecondFactor(
  { db, keys, clock }: Service,
  userId: number,
  binding?: OidcAccount,
): Promise<string> {
  const { token, tokenHash } = newBearer(keys, 'sign-in');
  const expiresAt = new Date(clock().getTime() + SIGN_IN_MS);
  await db.query(insertSignIn({ tokenHash, userId, stage: 'second-factor', binding, expiresAt }));
  return token;
}

/**
 * Signs in with a second factor.
 * @param token the token of the started sign-in
 * @returns the token of the session
 * @throws Problem `too-many-requests`; `unauthorized`
 */
export async function finishSignIn(visitor: Visitor, token: string, factor: Factor): Promise<string> {
  const { service, door, origin } = visitor;
  const { db, keys, clock } = service;
  const expired = new Problem('unauthorized', SIGN_IN_EXPIRED);
  const tokenHash = hashOfBearer(keys, 'sign-in', token);
  if (!tokenHash) throw expired;
  const begun = sql`
select user_id from sign_ins
where token_hash = ${tokenHash} and stage = 'second-factor' and expires_at > ${clock()}`;
  const [row] = await readAccounts(db, sql`u.id = (${begun})`);
  const user = signable(row, door);
  if (!user) throw expired;
  const device = deviceOf(origin.devices, user);
  const limits = factorLimits({ userId: user.id, address: origin.address, device });
  const how = 'recoveryCode' in factor ? 'recovery-code' : 'totp';
  const trial = { limits, userId: user.id, by: how, origin };
  await attempt(service, trial, () => acceptFactor(service, user, factor), wrongCode);
  const taken = await takeSignIn(service, tokenHash, 'second-factor');
  if (!taken) throw expired;
  await forget(service, limits);
  const { issuer, subject } = taken;
  const binding = issuer === null || subject === null ? undefined : { issuer, subject };
  return signIn(visitor, user, { how, steppedUpAt: clock(), binding });
}

/** Ends a started sign-in. Of two concurrent calls, one gets it. */
async function takeSignIn({ db, clock }: Service, tokenHash: Buffer, stage: 'second-factor' | 'link') {
  const [taken] = await db.query<{ userId: number; issuer: string | null; subject: string | null }>(sql`
delete from sign_ins where token_hash = ${tokenHash} and stage = ${stage} and expires_at > ${clock()}
returning user_id as "userId", oidc_issuer as issuer, oidc_subject as subject`);
  return taken;
}

/** How a user has proven its identity. */
type Proof = {
  /** What was given, for the audit. */
  readonly how: string;
  /** When a second factor was given; null if that was too long ago to count for a step-up. */
  readonly steppedUpAt: Date | null;
  /** The account at the identity provider that belongs to the user from now on. */
  readonly binding?: OidcAccount | undefined;
  /** Whether the identity provider takes the place of the link of an invitation. */
  readonly accepts?: boolean;
};

/**
 * Begins the session of a user whose identity has been verified.
 * @throws Problem `unauthorized` if the account at the provider, or the invitation, is somebody else's by now
 */
export async function signIn(
  visitor: Visitor,
  user: Account,
  { how, steppedUpAt, binding, accepts = false }: Proof,
): Promise<string> {
  const { clock, db } = visitor.service;
  return db.transaction(async (tx) => {
    const now = clock();
    const accepted = { name: user.name, passwordHash: null, totp: null };
    if (accepts && (await tx.query(acceptInvitation(user.id, null, now, accepted))).length === 0)
      throw notInvited();
    if (binding && !(await bind(tx, user.id, binding))) throw notInvited();
    const token = await beginSession(tx, visitor, user.id, steppedUpAt);
    const bound = { action: 'user.bind-oidc', after: { ...binding } };
    const began = { action: 'session.begin', after: { factor: how } };
    await auditOwn(tx, visitor, user, ...(binding ? [bound] : []), began);
    return token;
  });
}

/**
 * Binds a user to an account at an identity provider.
 * @returns false if one of them is bound to another one
 */
async function bind(tx: Queries, id: number, { issuer, subject }: OidcAccount): Promise<boolean> {
  const [bound] = await tx.query(sql`
update users set oidc_issuer = ${issuer}, oidc_subject = ${subject}
where id = ${id} and oidc_subject is null and not exists (
  select from users u where u.oidc_issuer = ${issuer} and u.oidc_subject = ${subject})
returning id`);
  return bound !== undefined;
}

export const notInvited = () =>
  new Problem('unauthorized', 'nobody was invited under this account', undefined, { reason: 'not-invited' });

/** Signs in with a link that is valid once, from this machine only. @returns the token of the session */
export async function signInByLink(visitor: Visitor, token: string): Promise<string> {
  const { service, door, origin } = visitor;
  const refused = new Problem('unauthorized', 'this link has been used, or has expired');
  if (!/^(127\.|::1$|::ffff:127\.)/.test(origin.address)) throw refused;
  const { db, keys, clock } = service;
  return recordingRefusal(service, { userId: undefined, by: 'link', origin }, async () => {
    const tokenHash = hashOfBearer(keys, 'sign-in', token);
    if (!tokenHash) throw refused;
    const link = await takeSignIn(service, tokenHash, 'link');
    const [row] = link ? await readAccounts(db, sql`u.id = ${link.userId}`) : [];
    const user = signable(row, door);
    if (!user) throw refused;
    return signIn(visitor, user, { how: 'link', steppedUpAt: clock() });
  });
}

/**
 * Accepts a second factor again, for operations that need one within five minutes.
 * @returns the session's new token
 * @throws Problem `too-many-requests`; `unauthorized`
 */
export async function stepUp(own: SignedIn, factor: Factor): Promise<string> {
  const { service, session } = own;
  const [user] = await readAccounts(service.db, sql`u.id = ${session.user.id}`);
  if (!user) throw wrongCode();
  const trial = trialOf(own, 'totp');
  await attempt(service, trial, () => acceptFactor(service, user, factor), wrongCode);
  await forget(service, trial.limits);
  const token = await renewStepped(own, session, own.token, 'totp');
  if (!token) throw new Problem('unauthorized', 'the session has ended: sign in again');
  return token;
}

/** Changes that users make to their own account. */

/**
 * Changes the password, and ends the user's other sessions.
 * @throws Problem `step-up-required`; `invalid`; `too-many-requests`
 */
export async function changePassword(
  own: SignedIn,
  { password, newPassword }: { readonly password: string; readonly newPassword: string },
): Promise<void> {
  const { service, session } = own;
  requireSteppedUp(session);
  const { id } = session.user;
  const [user] = await readAccounts(service.db, sql`u.id = ${id}`);
  if (!user) throw new Problem('unauthorized');
  await checkNewPassword(newPassword, await wordsOf(service, user), 'newPassword');
  const trial = trialOf(own, 'password');
  const isRight = () => isPassword(password, user.passwordHash, 'known');
  await attempt(service, trial, isRight, () => invalid('password', 'wrong', 'is not the present password'));
  await takeBack(service, trial.limits);
  const hash = await hashPasswordOf(service, user, newPassword);
  await service.db.transaction(async (tx) => {
    await tx.query(setPasswordHash(id, hash));
    await endSessions(tx, id, session.id);
    await auditOwn(tx, own, session.user, { action: 'user.change-password' });
  });
}

/** Makes new recovery codes. The old ones become invalid. @throws Problem `step-up-required` */
export async function renewRecoveryCodes(own: SignedIn): Promise<string[]> {
  requireSteppedUp(own.session);
  const { user } = own.session;
  return own.service.db.transaction(async (tx) => {
    const codes = await replaceRecoveryCodes(tx, user.id);
    await auditOwn(tx, own, user, { action: 'user.renew-recovery-codes' });
    return codes;
  });
}
