import type {
  AuthenticationResponseJSON,
  AuthenticatorTransportFuture,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import Type, { type Static } from 'typebox';
import type { Service } from '../context.ts';
import { sql } from '../db/sql.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import { NullableTime, Text, Time } from '../schema.ts';
import { recordingRefusal, trialOf } from './attempts.ts';
import { begin, derived, readBegun, useOnce } from './begun.ts';
import {
  auditOwn,
  endSessions,
  renewStepped,
  type Session,
  type SignedIn,
  type Visitor,
} from './sessions.ts';
import { requireSteppedUp, signable, signIn } from './sign-in.ts';
import { readAccounts } from './users.ts';

/**
 * Passkeys (WebAuthn): keys that a device or a password manager keeps for this site. A passkey asks its owner
 * for a fingerprint or a PIN, so it counts as both factors. Each challenge can be answered once.
 */

const NAME = 'Scrip';
const PASSKEYS_MAX = 20;

/** Loaded at the first use of a passkey, since the package is large and would slow down every start. */
const webAuthn = () => import('@simplewebauthn/server');

/**
 * Returns the name of the host that asks, to which passkeys are bound.
 * @throws Problem `conflict` if it is an IP address
 */
function hostOf({ origin: { page } }: Visitor): string {
  const { hostname } = new URL(page);
  if (/^[\d.]+$|^\[/.test(hostname))
    throw new Problem('conflict', 'passkeys need a name, such as localhost, in place of a numeric address');
  return hostname;
}

/** What a challenge is for. The answer to one of them is not accepted for another one. */
type Use = 'add' | 'sign-in' | 'step-up';

/** Returns the challenge of a browser with a token, for a user if one is signed in. */
function challengeOf(service: Service, token: string, use: Use, userId: number | null): Buffer<ArrayBuffer> {
  return Buffer.from(derived(service, token, `passkey ${use} ${userId}`));
}

/**
 * Returns what the answer of a device to a challenge has to contain.
 * @throws Problem `unauthorized` if the challenge has expired; `conflict`
 */
function expectedOf(visitor: Visitor, token: string, use: Use, userId: number | null) {
  const { service, origin } = visitor;
  if (!readBegun(token, service.clock()))
    throw new Problem('unauthorized', 'the challenge has expired: begin again');
  return {
    expectedChallenge: challengeOf(service, token, use, userId).toString('base64url'),
    expectedOrigin: origin.page,
    expectedRPID: hostOf(visitor),
    requireUserVerification: true,
  };
}

/** The options that the browser passes to a device, and the token that identifies the answer. */
type Asked<Options> = { readonly options: Options; readonly token: string };

/** Begins to add a passkey. @throws Problem `step-up-required` */
export async function beginPasskey(own: SignedIn): Promise<Asked<PublicKeyCredentialCreationOptionsJSON>> {
  const rpID = hostOf(own);
  const { service, session } = own;
  requireSteppedUp(session);
  const { user } = session;
  const known = await listPasskeys(service, user.id);
  if (known.length >= PASSKEYS_MAX)
    throw new Problem('conflict', `there are ${PASSKEYS_MAX} passkeys already: remove one`);
  const { generateRegistrationOptions } = await webAuthn();
  const token = begin(service.clock());
  const options = await generateRegistrationOptions({
    challenge: challengeOf(service, token, 'add', user.id),
    rpName: NAME,
    rpID,
    userName: user.email,
    userID: Buffer.from(`user ${user.id}`),
    attestationType: 'none',
    excludeCredentials: known.map(({ id }) => ({ id })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  });
  return { options, token };
}

/** The ways to reach a device. They are not signed, so the device can state any. */
const TRANSPORTS = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'] as const;

function transportsOf({ response: { transports } }: RegistrationResponseJSON) {
  return TRANSPORTS.filter((each) => Array.isArray(transports) && transports.includes(each));
}

/**
 * Adds a passkey, and ends the user's other sessions.
 * @throws Problem `step-up-required`; `unauthorized`; `invalid`
 */
export async function addPasskey(
  own: SignedIn,
  token: string,
  { name, response }: { readonly name: string; readonly response: RegistrationResponseJSON },
): Promise<{ id: string; name: string }> {
  const { service, session } = own;
  requireSteppedUp(session);
  const { user } = session;
  const expected = expectedOf(own, token, 'add', user.id);
  const { verifyRegistrationResponse } = await webAuthn();
  const verified = await verifyRegistrationResponse({ response, ...expected }).catch(() => undefined);
  if (!verified?.verified || !(await useOnce(service, token)))
    throw invalid('response', 'passkey', 'is not what the device was asked for');
  const { id, publicKey, counter } = verified.registrationInfo.credential;
  const transports = transportsOf(response);
  await service.db.transaction(async (tx) => {
    const [added] = await tx.query(sql`
insert into passkeys (id, user_id, name, public_key, counter, transports, created_at)
values (${id}, ${user.id}, ${name}, ${Buffer.from(publicKey)}, ${counter}, ${transports}, ${service.clock()})
on conflict do nothing returning id`);
    if (!added) throw new Problem('exists', 'this passkey was added already');
    await endSessions(tx, user.id, session.id);
    await auditOwn(tx, own, user, { action: 'user.add-passkey', after: { name } });
  });
  return { id, name };
}

/** Begins to sign in, or to step up, with a passkey. */
export async function askForPasskey(
  visitor: Visitor,
  session?: Session,
): Promise<Asked<PublicKeyCredentialRequestOptionsJSON>> {
  const rpID = hostOf(visitor);
  const { service } = visitor;
  const known = session ? await listPasskeys(service, session.user.id) : [];
  const { generateAuthenticationOptions } = await webAuthn();
  const token = begin(service.clock());
  const use = session ? 'step-up' : 'sign-in';
  const options = await generateAuthenticationOptions({
    challenge: challengeOf(service, token, use, session?.user.id ?? null),
    rpID,
    userVerification: 'required',
    allowCredentials: known.map(({ id, transports }) => ({ id, transports })),
  });
  return { options, token };
}

/** Whether a value has the form of a credential's id. Others could not even be looked up. */
const isCredentialId = (id: unknown): id is string =>
  typeof id === 'string' && /^[A-Za-z0-9_-]{1,1400}$/.test(id);

const refused = () => new Problem('unauthorized', 'this passkey does not sign in here');

/**
 * Checks the answer of a device.
 * @returns the id of the user
 * @throws Problem `unauthorized`
 */
async function acceptPasskey(
  visitor: Visitor,
  response: AuthenticationResponseJSON,
  { token, use, userId }: { readonly token: string; readonly use: Use; readonly userId: number | null },
): Promise<number> {
  const { service } = visitor;
  const { db, clock } = service;
  const expected = expectedOf(visitor, token, use, userId);
  if (!isCredentialId(response.id)) throw refused();
  const [row] = await db.query<{ id: string; userId: number; publicKey: Buffer; counter: bigint }>(sql`
select id, user_id as "userId", public_key as "publicKey", counter from passkeys where id = ${response.id}`);
  if (!row) throw refused();
  const { verifyAuthenticationResponse } = await webAuthn();
  const verified = await verifyAuthenticationResponse({
    response,
    ...expected,
    credential: { id: row.id, publicKey: new Uint8Array(row.publicKey), counter: Number(row.counter) },
  }).catch(() => undefined);
  if (!verified?.verified) throw refused();
  const { newCounter } = verified.authenticationInfo;
  const [used] = await db.query(sql`
update passkeys set counter = ${newCounter}, last_used_at = ${clock()}
where id = ${row.id} and counter = ${row.counter} returning id`);
  // The counter of many devices is always 0.
  if (!used || !(await useOnce(service, token))) throw refused();
  return row.userId;
}

/** Signs in with a passkey, even while the account is locked. @returns the token of the session */
export async function signInByPasskey(
  visitor: Visitor,
  token: string,
  response: AuthenticationResponseJSON,
): Promise<string> {
  const { service, door, origin } = visitor;
  const asked = { token, use: 'sign-in', userId: null } as const;
  return recordingRefusal(service, { userId: undefined, by: 'passkey', origin }, async () => {
    const userId = await acceptPasskey(visitor, response, asked);
    const [row] = await readAccounts(service.db, sql`u.id = ${userId}`);
    const user = signable(row, door);
    if (!user) throw refused();
    return signIn(visitor, user, { how: 'passkey', steppedUpAt: service.clock() });
  });
}

/** Steps up with a passkey. @returns the session's new token */
export async function stepUpByPasskey(
  own: SignedIn,
  token: string,
  response: AuthenticationResponseJSON,
): Promise<string> {
  const { service, session } = own;
  const { user } = session;
  const asked = { token, use: 'step-up', userId: user.id } as const;
  return recordingRefusal(service, trialOf(own, 'passkey'), async () => {
    const isOwn = (await acceptPasskey(own, response, asked)) === user.id;
    const renewed = isOwn ? await renewStepped(own, session, own.token, 'passkey') : undefined;
    if (!renewed) throw refused();
    return renewed;
  });
}

export const PasskeySchema = Type.Object({
  id: Text,
  name: Text,
  createdAt: Time,
  lastUsedAt: NullableTime,
  transports: Type.Unsafe<AuthenticatorTransportFuture[]>({ type: 'array', items: Text }),
});
type Passkey = Static<typeof PasskeySchema>;

/** Lists the passkeys of a user, oldest first. */
export async function listPasskeys({ db }: Service, userId: number): Promise<Passkey[]> {
  return db.query(sql`
select id, name, transports, created_at as "createdAt", last_used_at as "lastUsedAt" from passkeys
where user_id = ${userId} order by created_at, id limit 100`);
}

/** Removes a passkey, and ends the user's other sessions. @throws Problem `step-up-required`; `not-found` */
export async function removePasskey(own: SignedIn, id: string): Promise<void> {
  const { service, session } = own;
  requireSteppedUp(session);
  const { user } = session;
  await service.db.transaction(async (tx) => {
    const statement = sql`delete from passkeys where user_id = ${user.id} and id = ${id} returning name`;
    const [removed] = isCredentialId(id) ? await tx.query<{ name: string }>(statement) : [];
    if (!removed) throw notFound('such passkey');
    await endSessions(tx, user.id, session.id);
    await auditOwn(tx, own, user, { action: 'user.remove-passkey', before: { name: removed.name } });
  });
}
