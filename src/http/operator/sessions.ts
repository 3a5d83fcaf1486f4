import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from '@simplewebauthn/server';
import type { FastifyInstance } from 'fastify';
import Type, { type Static } from 'typebox';
import type { Service } from '../../context.ts';
import { newSecret } from '../../credentials.ts';
import { findMerchant } from '../../merchants/merchants.ts';
import { isAlone } from '../../operations/admit.ts';
import { onlyPage, Page } from '../../page.ts';
import { recordingRefusal } from '../../people/attempts.ts';
import { enroll, openInvitation } from '../../people/enroll.ts';
import type { Factor } from '../../people/factors.ts';
import { OidcProvider, type OidcSettings } from '../../people/oidc.ts';
import {
  addPasskey,
  askForPasskey,
  beginPasskey,
  listPasskeys,
  PasskeySchema,
  removePasskey,
  signInByPasskey,
  stepUpByPasskey,
} from '../../people/passkeys.ts';
import {
  endOwnSessions,
  findSession,
  ListedSession,
  listSessions,
  type Origin,
  type Session,
  SessionSchema,
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
import {
  Email,
  Input,
  Line,
  MerchantId,
  Nullable,
  NullableText,
  Numbered,
  Text,
  Time,
  toId,
  Word,
} from '../../schema.ts';
import { readLetterhead } from '../../settings/letterhead.ts';
import { zoneOfBooks } from '../../zone.ts';
import { type Desk, PREFIXES } from './desk.ts';
import { OIDC_PATH, oidcRoutes } from './oidc.ts';
import {
  type Asked,
  type Route,
  readCookie,
  rememberDevice,
  requireBegun,
  serveRoute,
  setCookie,
  signedIn,
  visiting,
} from './person.ts';

/**
 * The routes of people below /operator/v1 and /portal/v1, where they sign in and change their own accounts.
 * They accept browsers, not tokens.
 */

const Typed = (maxLength = 300) => Type.String({ minLength: 1, maxLength });

/** The answer of a device to a passkey challenge, sent by a browser. */
const PasskeyAnswer = Type.Unsafe<AuthenticationResponseJSON>({ type: 'object' });

/** One of the ways to sign in, or the second step of one. */
const SignIn = Input({
  email: Type.Optional(Email),
  password: Type.Optional(Typed(1_000)),
  merchantId: Type.Optional(MerchantId),
  totp: Type.Optional(Typed(10)),
  recoveryCode: Type.Optional(Typed(40)),
  link: Type.Optional(Typed()),
  passkey: Type.Optional(PasskeyAnswer),
});
const StepUp = Input({ totp: Type.Optional(Typed(10)), passkey: Type.Optional(PasskeyAnswer) });
const Link = Input({ token: Typed() });
const Enrollment = Input({ token: Typed(), name: Typed(), password: Typed(1_000), totp: Typed(10) });
const Password = Input({ password: Typed(1_000), newPassword: Typed(1_000) });
const NewPasskey = Input({
  name: Line(100, 'What its owner calls the passkey.', 'Laptop'),
  response: Type.Unsafe<RegistrationResponseJSON>({ type: 'object' }),
});

const Own = Type.Object({
  ...SessionSchema.properties,
  user: Type.Object({ ...SessionSchema.properties.user.properties, merchantName: NullableText }),
  idleSeconds: Type.Integer(),
  alone: Type.Boolean({
    description: 'Whether the person does alone what needs two, since nobody else could ever approve.',
  }),
  operator: Nullable(Text, {
    description: 'The operator of a portal, as its letterhead says; null: it has none, or it is the console.',
  }),
  zone: Type.String({ description: 'The time zone of the books, in which days begin and end.' }),
});
/** The next step of a sign-in; at its end, the session. */
const Step = Type.Partial(
  Type.Object({
    ...Own.properties,
    next: Word(['second-factor', 'merchant']),
    factors: Own.properties.user.properties.factors,
    merchants: Type.Array(Type.Object({ id: Numbered(Text), name: Text })),
  }),
);
const Opened = Type.Object({
  ...Type.Pick(Own.properties.user, ['email', 'name', 'roles', 'merchantId']).properties,
  totp: Type.Object({ secret: Text, uri: Text }),
  expiresAt: Time,
});
const recoveryCodes = Type.Array(Text);
const Listed = Type.Object({ ...ListedSession.properties, current: Type.Boolean() });
/** What the browser passes to a device. */
const Request = Type.Unsafe<PublicKeyCredentialRequestOptionsJSON>({ type: 'object' });
const Creation = Type.Unsafe<PublicKeyCredentialCreationOptionsJSON>({ type: 'object' });

/** An attempt with the link of an invitation, for the audit. */
const byLink = (origin: Origin) => ({ userId: undefined, by: 'invitation', origin });

const openLink = visiting('POST /enrollment', { takes: Link, gives: Opened }, async (asked) => {
  const { body, request, reply, ...visitor } = asked;
  const known = readCookie(request, 'enrolling', visitor.door);
  const browser = known ?? newSecret();
  const opened = await recordingRefusal(visitor.service, byLink(visitor.origin), () =>
    openInvitation(visitor, body.token, browser),
  );
  if (known === undefined) setCookie(reply, 'enrolling', visitor.door, browser);
  return opened;
});

const Enrolled = Type.Object({ ...Own.properties, recoveryCodes });

const acceptLink = visiting(
  'POST /enrollment/complete',
  { takes: Enrollment, gives: Enrolled },
  async (asked) => {
    const { service, door, origin, body, request, reply } = asked;
    const browser = readCookie(request, 'enrolling', door);
    if (!browser) throw new Problem('unauthorized', 'open the link again, and allow cookies');
    const link = { token: body.token, browser };
    const made = await recordingRefusal(service, byLink(origin), () => enroll(asked, link, body));
    setCookie(reply, 'enrolling', door, undefined);
    return { ...(await begun(asked, made.token)), recoveryCodes: made.recoveryCodes };
  },
);

const signOut = signedIn('DELETE /session', {}, async (own) => {
  await endOwnSessions(own, own.session.id);
  setCookie(own.reply, 'session', own.door, undefined);
  // What the browser keeps of the pages. Its storage holds only language and colors.
  own.reply.header('clear-site-data', '"cache"');
});

const stepUpAgain = signedIn('POST /session/step-up', { takes: StepUp, gives: Own }, async (own) => {
  const { totp, passkey } = own.body;
  if ((totp === undefined) === (passkey === undefined))
    throw invalid('body', 'oneOf', 'takes totp or passkey');
  const token =
    passkey === undefined
      ? await stepUp(own, { totp: totp ?? '' })
      : await stepUpByPasskey(own, requireBegun(own), passkey);
  return viewOf(own.service, await setSession(own, token));
});

const list = signedIn('GET /sessions', { gives: Page(Listed) }, async (own) =>
  onlyPage((await listSessions(own)).map((each) => ({ ...each, current: each.id === own.session.id }))),
);

const end = signedIn('DELETE /sessions/:id', {}, async (own) => {
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
  visiting('POST /session', { takes: SignIn, gives: Step }, signInStep),
  openLink,
  acceptLink,
  signedIn('GET /session', { gives: Own }, ({ service, session }) => viewOf(service, session)),
  signOut,
  stepUpAgain,
  list,
  end,
  signedIn('POST /sessions/end-others', { gives: Type.Object({ ended: Type.Integer() }) }, async (own) => ({
    ended: await endOwnSessions(own, 'others'),
  })),
  signedIn('POST /account/password', { takes: Password }, (own) => changePassword(own, own.body)),
  signedIn('POST /account/recovery-codes', { gives: Type.Object({ recoveryCodes }) }, async (own) => ({
    recoveryCodes: await renewRecoveryCodes(own),
  })),
  signedIn('GET /account/passkeys', { gives: Page(PasskeySchema) }, async ({ service, session }) =>
    onlyPage(await listPasskeys(service, session.user.id)),
  ),
  signedIn('POST /account/passkeys/options', { gives: Creation }, (own) => challenge(own, beginPasskey(own))),
  signedIn(
    'POST /account/passkeys',
    { takes: NewPasskey, gives: Type.Pick(PasskeySchema, ['id', 'name']) },
    async (own) => {
      const added = await addPasskey(own, requireBegun(own), own.body);
      setCookie(own.reply, 'begun', own.door, undefined);
      return added;
    },
  ),
  signedIn('DELETE /account/passkeys/:id', {}, (own) => removePasskey(own, idIn(own))),
  visiting('POST /session/passkey/options', { gives: Request }, (asked) =>
    challenge(asked, askForPasskey(asked)),
  ),
  signedIn('POST /session/step-up/options', { gives: Request }, (own) =>
    challenge(own, askForPasskey(own, own.session)),
  ),
];

/** The routes at both doors, for the types of the console. */
export const PEOPLE: readonly Route[] = [...ROUTES, ...oidcRoutes(undefined)];

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
async function signInStep(asked: Asked<Static<typeof SignIn>>): Promise<Static<typeof Step>> {
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
  Promise.all(ids.map(async (id) => ({ id, name: (await findMerchant(db, id))?.name ?? '' })));

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

async function viewOf(service: Service, { user, idleMs, ...session }: Session) {
  const { db } = service;
  const { id: userId, merchantId } = user;
  const merchant = merchantId === null ? undefined : await findMerchant(db, merchantId);
  return {
    ...session,
    user: { ...user, merchantName: merchant?.name ?? null },
    idleSeconds: idleMs / 1_000,
    alone: await isAlone(service, { kind: 'user', userId, merchantId }),
    operator: merchantId === null ? null : (await readLetterhead(db)).sender,
    zone: await zoneOfBooks(db),
  };
}
