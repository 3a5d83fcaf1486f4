import type { AuthenticationResponseJSON, RegistrationResponseJSON } from '@simplewebauthn/server';
import type { FastifyInstance } from 'fastify';
import Type, { type Static } from 'typebox';
import type { Service } from '../../context.ts';
import { newSecret } from '../../credentials.ts';
import { zoneOfBooks } from '../../ledger/zone.ts';
import { findMerchant } from '../../merchants/merchants.ts';
import { isAlone } from '../../operations/four-eyes.ts';
import { recordingRefusal } from '../../people/attempts.ts';
import { enroll, openInvitation } from '../../people/enroll.ts';
import type { Factor } from '../../people/factors.ts';
import { OidcProvider, type OidcSettings } from '../../people/oidc.ts';
import {
  addPasskey,
  askForPasskey,
  beginPasskey,
  listPasskeys,
  removePasskey,
  signInByPasskey,
  stepUpByPasskey,
} from '../../people/passkeys.ts';
import {
  endOwnSessions,
  findSession,
  listSessions,
  type Origin,
  type Session,
} from '../../people/sessions.ts';
import {
  beginSignIn,
  changePassword,
  finishSignIn,
  renewRecoveryCodes,
  signInByLink,
  stepUp,
} from '../../people/sign-in.ts';
import { invalid, notFound, Problem } from '../../problem.ts';
import { Input, MerchantId, toId } from '../../schema.ts';
import { type Desk, PREFIXES } from './desk.ts';
import { OIDC_PATH, oidcRoutes } from './oidc.ts';
import {
  type Asked,
  Nothing,
  readCookie,
  rememberDevice,
  requireBegun,
  serveRoute,
  setCookie,
  signedIn,
  Text,
  visiting,
} from './person.ts';

/**
 * The routes of people below /operator/v1 and /portal/v1, where they sign in and change their own accounts.
 * They accept browsers, not tokens.
 */

/** The answer of a device to a passkey challenge, sent by a browser. */
const PasskeyAnswer = Type.Unsafe<AuthenticationResponseJSON>({ type: 'object' });

/** One of the ways to sign in, or the second step of one. */
const SignIn = Input({
  email: Type.Optional(Text()),
  password: Type.Optional(Text(1_000)),
  merchantId: Type.Optional(MerchantId),
  totp: Type.Optional(Text(10)),
  recoveryCode: Type.Optional(Text(40)),
  link: Type.Optional(Text()),
  passkey: Type.Optional(PasskeyAnswer),
});
const StepUp = Input({ totp: Type.Optional(Text(10)), passkey: Type.Optional(PasskeyAnswer) });
const Link = Input({ token: Text() });
const Enrollment = Input({ token: Text(), name: Text(), password: Text(1_000), totp: Text(10) });
const Password = Input({ password: Text(1_000), newPassword: Text(1_000) });
const NewPasskey = Input({
  name: Text(100),
  response: Type.Unsafe<RegistrationResponseJSON>({ type: 'object' }),
});

/** An attempt with the link of an invitation, for the audit. */
const byLink = (origin: Origin) => ({ userId: undefined, by: 'invitation', origin });

const openLink = visiting('POST /enrollment', Link, async ({ body, request, reply, ...visitor }) => {
  const known = readCookie(request, 'enrolling', visitor.door);
  const browser = known ?? newSecret();
  const { expiresAt, merchantId, ...opened } = await recordingRefusal(
    visitor.service,
    byLink(visitor.origin),
    () => openInvitation(visitor, body.token, browser),
  );
  if (known === undefined) setCookie(reply, 'enrolling', visitor.door, browser);
  return { ...opened, merchantId: merchantId === null ? null : String(merchantId), expiresAt };
});

const acceptLink = visiting('POST /enrollment/complete', Enrollment, async (asked) => {
  const { service, door, origin, body, request, reply } = asked;
  const browser = readCookie(request, 'enrolling', door);
  if (!browser) throw new Problem('unauthorized', 'open the link again, and allow cookies');
  const link = { token: body.token, browser };
  const { token, recoveryCodes } = await recordingRefusal(service, byLink(origin), () =>
    enroll(asked, link, body),
  );
  setCookie(reply, 'enrolling', door, undefined);
  return { ...(await begun(asked, token)), recoveryCodes };
});

const signOut = signedIn('DELETE /session', Nothing, async (own) => {
  await endOwnSessions(own, own.session.id);
  setCookie(own.reply, 'session', own.door, undefined);
  // What the browser keeps of the pages. Its storage holds only language and colors.
  own.reply.header('clear-site-data', '"cache"');
});

const stepUpAgain = signedIn('POST /session/step-up', StepUp, async (own) => {
  const { totp, passkey } = own.body;
  if ((totp === undefined) === (passkey === undefined))
    throw invalid('body', 'oneOf', 'takes totp or passkey');
  const token =
    passkey === undefined
      ? await stepUp(own, { totp: totp ?? '' })
      : await stepUpByPasskey(own, requireBegun(own), passkey);
  return viewOf(own.service, await setSession(own, token));
});

const list = signedIn('GET /sessions', Nothing, async (own) => {
  const found = await listSessions(own);
  const items = found.map((each) => ({
    ...each,
    id: String(each.id),
    current: each.id === own.session.id,
  }));
  return { items, nextCursor: null };
});

const end = signedIn('DELETE /sessions/:id', Nothing, async (own) => {
  const id = idIn(own);
  if (!/^\d{1,18}$/.test(id) || (await endOwnSessions(own, BigInt(id))) === 0) throw notFound('such session');
});

const idIn = ({ request }: Asked<unknown>) => (request.params as { id: string }).id;

/** Challenges a device, whose answer is accepted with the cookie of the browser. */
async function challenge<Options>(
  { reply, door }: Asked<unknown>,
  asking: Promise<{ readonly options: Options; readonly token: string }>,
): Promise<Options> {
  const { options, token } = await asking;
  setCookie(reply, 'begun', door, token);
  return options;
}

const ROUTES = [
  visiting('POST /session', SignIn, signInStep),
  openLink,
  acceptLink,
  signedIn('GET /session', Nothing, ({ service, session }) => viewOf(service, session)),
  signOut,
  stepUpAgain,
  list,
  end,
  signedIn('POST /sessions/end-others', Nothing, async (own) => ({
    ended: await endOwnSessions(own, 'others'),
  })),
  signedIn('POST /account/password', Password, (own) => changePassword(own, own.body)),
  signedIn('POST /account/recovery-codes', Nothing, async (own) => ({
    recoveryCodes: await renewRecoveryCodes(own),
  })),
  signedIn('GET /account/passkeys', Nothing, async ({ service, session }) => ({
    items: await listPasskeys(service, session.user.id),
    nextCursor: null,
  })),
  signedIn('POST /account/passkeys/options', Nothing, (own) => challenge(own, beginPasskey(own))),
  signedIn('POST /account/passkeys', NewPasskey, async (own) => {
    const added = await addPasskey(own, requireBegun(own), own.body);
    setCookie(own.reply, 'begun', own.door, undefined);
    return added;
  }),
  signedIn('DELETE /account/passkeys/:id', Nothing, (own) => removePasskey(own, idIn(own))),
  visiting('POST /session/passkey/options', Nothing, (asked) => challenge(asked, askForPasskey(asked))),
  signedIn('POST /session/step-up/options', Nothing, (own) =>
    challenge(own, askForPasskey(own, own.session)),
  ),
];

/**
 * Serves the sign-in, the sessions and the own account at both doors, and single sign-on at the operator's.
 * @param settings of the identity provider; it needs the address of the service for browsers
 */
export function serveSessions(app: FastifyInstance, desk: Desk, settings: OidcSettings | undefined): void {
  const { publicUrl } = desk;
  const provider =
    settings && publicUrl !== undefined
      ? new OidcProvider(settings, `${publicUrl}${PREFIXES.operator}${OIDC_PATH}/callback`)
      : undefined;
  for (const route of [...ROUTES, ...oidcRoutes(provider)]) serveRoute(app, desk, 'operator', route);
  for (const route of ROUTES) serveRoute(app, desk, 'portal', route);
}

/** Accepts a password, a second factor for a sign-in in progress, or a link. */
async function signInStep(asked: Asked<Static<typeof SignIn>>) {
  const { service, door, reply } = asked;
  const { email, password, merchantId, ...proof } = asked.body;
  const proofs = Object.keys(proof).length;
  if (email !== undefined && password !== undefined && proofs === 0) {
    const of = merchantId === undefined ? undefined : toId(merchantId, 'merchantId');
    const first = await beginSignIn(asked, { email, password, merchantId: of });
    if ('merchants' in first) return { next: 'merchant', merchants: await namesOf(service, first.merchants) };
    setCookie(reply, 'begun', door, first.token);
    return { next: 'second-factor', factors: first.factors };
  }
  if (proofs !== 1 || Object.keys(asked.body).length !== 1)
    throw invalid('body', 'oneOf', 'takes email and password, or one of totp, recoveryCode, passkey, link');
  const { link, passkey, ...factor } = proof;
  if (link !== undefined) return begun(asked, await signInByLink(asked, link));
  const token =
    passkey === undefined
      ? await finishSignIn(asked, requireBegun(asked), factor as Factor)
      : await signInByPasskey(asked, requireBegun(asked), passkey);
  setCookie(reply, 'begun', door, undefined);
  return begun(asked, token);
}

const namesOf = ({ db }: Service, ids: readonly number[]) =>
  Promise.all(ids.map(async (id) => ({ id: String(id), name: (await findMerchant(db, id))?.name ?? '' })));

/** Sets the cookie of a session that has begun, and makes the device known. @returns the session */
async function begun(asked: Asked<unknown>, token: string) {
  const session = await setSession(asked, token);
  rememberDevice(asked, asked.reply, session.user.id);
  return viewOf(asked.service, session);
}

/** Sets the cookie of a session. @returns the session */
async function setSession({ service, door, reply }: Asked<unknown>, token: string): Promise<Session> {
  const session = await findSession(service, token, door);
  if (!session) throw new Problem('unauthorized', 'the session has ended: sign in again');
  const { id, merchantId } = session.user;
  reply.request.trace.principal = { kind: 'user', id: String(id), merchantId };
  setCookie(reply, 'session', door, token);
  return session;
}

async function viewOf(service: Service, session: Session) {
  const { db } = service;
  const { id, user, createdAt, expiresAt, idleMs, steppedUpUntil } = session;
  const merchant = user.merchantId === null ? undefined : await findMerchant(db, user.merchantId);
  const merchantId = user.merchantId === null ? null : String(user.merchantId);
  const shown = { ...user, id: String(user.id), merchantId, merchantName: merchant?.name ?? null };
  const zone = await zoneOfBooks(db);
  const idleSeconds = idleMs / 1_000;
  const alone = await isAlone(service, { kind: 'user', userId: user.id, merchantId: user.merchantId });
  return { id: String(id), user: shown, createdAt, expiresAt, idleSeconds, steppedUpUntil, alone, zone };
}
