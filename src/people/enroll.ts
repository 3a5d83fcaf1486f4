import type { Service } from '../context.ts';
import { hashOfBearer, hashSecret, ownerOfTotp } from '../credentials.ts';
import { type Sql, sql } from '../db/sql.ts';
import { holdKeyRing } from '../keyring/store.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { invalid, Problem } from '../problem.ts';
import { offeredTotpSecret, replaceRecoveryCodes, totpStep, totpUri } from './factors.ts';
import { checkNewPassword, hashPassword } from './password.ts';
import { auditOwn, beginSession, doorOf, endSessions, type Visitor } from './sessions.ts';
import { type Account, listAccounts, readAccounts } from './users.ts';

/**
 * The acceptance of an invitation: a password, an authenticator app that shows the correct code, and recovery
 * codes for the user to keep.
 */

const unknownLink = () =>
  new Problem(
    'unauthorized',
    'this link has been used, has expired, or was replaced by a newer one: ask for another one',
  );

type At = Pick<Visitor, 'service' | 'door'>;

/**
 * Finds the user of an invitation.
 * @throws Problem `unauthorized` if the link is no longer valid, or belongs to the other door
 */
async function requireInvited({ service, door }: At, token: string): Promise<Account> {
  const { db, keys, clock } = service;
  const tokenHash = hashOfBearer(keys, 'invitation', token);
  const open = sql`u.invitation_hash = ${tokenHash} and u.invitation_expires_at > ${clock()}`;
  const [user] = tokenHash ? await readAccounts(db, open) : [];
  if (!user || doorOf(user.merchantId) !== door) throw unknownLink();
  return user;
}

/**
 * Returns the content of an invitation's page, with a secret for the authenticator app. Each browser that
 * opens the link is offered another one.
 * @param browser a random token in a cookie of the browser
 * @throws Problem `unauthorized`
 */
export async function openInvitation(at: At, token: string, browser: string) {
  const user = await requireInvited(at, token);
  const secret = offeredTotpSecret(at.service, token, browser);
  const { email, name, roles, merchantId } = user;
  const expiresAt = user.invitationExpiresAt as Date;
  return { email, name, roles, merchantId, expiresAt, totp: { secret, uri: totpUri(secret, email) } };
}

/** Returns what an attacker knows of a user's account. */
export async function wordsOf({ db }: Service, { email, name, merchantId }: Account): Promise<string[]> {
  const merchant = merchantId === null ? undefined : await findMerchant(db, merchantId);
  return [email, name, ...(merchant ? [merchant.name] : [])];
}

/**
 * Returns the hash of a new password of a user. The portal compares a password with all accounts of an
 * address, so these have one salt.
 */
export async function hashPasswordOf(
  { db }: Service,
  { id, email, merchantId }: Pick<Account, 'id' | 'email' | 'merchantId'>,
  password: string,
): Promise<string> {
  const accounts = merchantId === null ? [] : await listAccounts(db, email);
  const others = accounts.filter((each) => each.merchantId !== null && each.id !== id);
  return hashPassword(password, others.find((each) => each.passwordHash)?.passwordHash ?? undefined);
}

/**
 * Accepts the open invitation of a user, which is then void. Of two concurrent calls, one gets a row.
 * @param tokenHash of the link; null if the identity provider takes its place
 */
export function acceptInvitation(
  id: number,
  tokenHash: Buffer | null,
  now: Date,
  user: {
    readonly name: string;
    readonly passwordHash: string | null;
    /** The sealed secret of the authenticator app, and the period of its first code. */
    readonly totp: { readonly secret: Buffer; readonly step: number } | null;
  },
): Sql {
  const { name, passwordHash, totp } = user;
  return sql`
update users set
  name = ${name}, password_hash = ${passwordHash}, totp_secret = ${totp?.secret ?? null},
  totp_step = ${totp?.step ?? null}, enrolled_at = ${now}, invitation_hash = null,
  invitation_expires_at = null
where id = ${id} and invitation_hash = coalesce(${tokenHash}::bytea, invitation_hash)
  and invitation_expires_at > ${now}
returning id`;
}

const NAME_LENGTH_MAX = 100;

/**
 * Accepts an invitation and signs in.
 * @param browser the token of the browser that opened the invitation
 * @returns the token of the session and the recovery codes, neither of which is stored
 * @throws Problem `unauthorized` for the link; `invalid` for any other wrong field, and the link then stays
 *   valid
 */
export async function enroll(
  visitor: Visitor,
  { token, browser }: { readonly token: string; readonly browser: string },
  { name, password, totp }: { readonly name: string; readonly password: string; readonly totp: string },
): Promise<{ token: string; recoveryCodes: string[] }> {
  const { service } = visitor;
  const user = await requireInvited(visitor, token);
  const called = name.trim();
  if (called === '' || called.length > NAME_LENGTH_MAX || /\p{C}/u.test(called))
    throw invalid('name', 'maxLength', `must have 1 to ${NAME_LENGTH_MAX} characters, all of them visible`);
  await checkNewPassword(password, [called, ...(await wordsOf(service, user))]);
  const { clock, wallClock, db, keys } = service;
  const secret = offeredTotpSecret(service, token, browser);
  const step = totpStep(secret, totp, wallClock());
  if (step === undefined)
    throw invalid('totp', 'code', 'is not what the authenticator app shows now: wait for the next code');
  const passwordHash = await hashPasswordOf(service, user, password);
  return db.transaction(async (tx) => {
    await holdKeyRing(tx, keys);
    const sealed = keys.sealText(ownerOfTotp(user.id), secret);
    const accepted = { name: called, passwordHash, totp: { secret: sealed, step } };
    const [enrolled] = await tx.query(acceptInvitation(user.id, hashSecret(token), clock(), accepted));
    if (!enrolled) throw unknownLink();
    const recoveryCodes = await replaceRecoveryCodes(tx, user.id);
    await endSessions(tx, user.id);
    const session = await beginSession(tx, visitor, user.id, clock());
    const after = { name: called, factor: 'totp' };
    await auditOwn(tx, visitor, user, { action: 'user.enroll', after });
    return { token: session, recoveryCodes };
  });
}
