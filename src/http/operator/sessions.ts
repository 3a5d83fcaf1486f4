import type { AuthenticationResponseJSON } from '@simplewebauthn/server';
import type { FastifyInstance, FastifyReply } from 'fastify';
import Type, { type Static } from 'typebox';
import type { Service } from '../../context.ts';
import { newSecret } from '../../credentials.ts';
import { zoneOfBooks } from '../../ledger/zone.ts';
import { findMerchant } from '../../merchants/merchants.ts';
import { isAlone } from '../../operations/four-eyes.ts';
import { recordingRefusal } from '../../people/attempts.ts';
import { enroll, openInvitation } from '../../people/enroll.ts';
import type { Factor } from '../../people/factors.ts';
import { placeOf, signInByPasskey, stepUpByPasskey } from '../../people/passkeys.ts';
import {
  type Door,
  endOwnSession,
  endOwnSessions,
  findSession,
  listSessions,
  type Origin,
  type Session,
} from '../../people/sessions.ts';
import { beginSignIn, finishSignIn, signInByLink, stepUp } from '../../people/sign-in.ts';
import { invalid, notFound, Problem } from '../../problem.ts';
import { MerchantId, toId } from '../../schema.ts';
import type { Desk } from './desk.ts';
import {
  type Asked,
  Nothing,
  originOfPage,
  readCookie,
  rememberDevice,
  requireBegun,
  requireSession,
  route,
  type Serving,
  type SessionReach,
  serveAccount,
  setCookie,
  Text,
} from './person.ts';

/**
 * The routes of sessions below /operator/v1 and /portal/v1, where people sign in. They accept browsers, not
 * tokens.
 */

/** The answer of a device to a passkey challenge, sent by a browser. */
const PasskeyAnswer = Type.Unsafe<AuthenticationResponseJSON>({ type: 'object' });

/** One of the ways to sign in, or the second step of one. */
const SignIn = Type.Object(
  {
    email: Type.Optional(Text()),
    password: Type.Optional(Text(1_000)),
    merchantId: Type.Optional(MerchantId),
    totp: Type.Optional(Text(10)),
    recoveryCode: Type.Optional(Text(40)),
    link: Type.Optional(Text()),
    passkey: Type.Optional(PasskeyAnswer),
  },
  { additionalProperties: false },
);
const StepUp = Type.Object(
  { totp: Type.Optional(Text(10)), passkey: Type.Optional(PasskeyAnswer) },
  { additionalProperties: false },
);
const Link = Type.Object({ token: Text() }, { additionalProperties: false });
const Enrollment = Type.Object(
  { token: Text(), name: Text(), password: Text(1_000), totp: Text(10) },
  { additionalProperties: false },
);

/** Serves the sign-in and the sessions of both doors. */
export function serveSessions(app: FastifyInstance, desk: Desk, reach: SessionReach): void {
  for (const door of ['operator', 'portal'] as const) {
    const serving = { desk, door, reach };
    serveSignIn(app, serving);
    serveOwnSessions(app, serving);
    serveAccount(app, serving);
  }
}

function serveSignIn(app: FastifyInstance, serving: Serving): void {
  const { door } = serving;
  route(app, serving, 'POST', '/session', SignIn, (asked) => signInStep(serving, asked));
  route(app, serving, 'POST', '/enrollment', Link, async ({ service, body, request, reply, origin }) => {
    const known = readCookie(request, 'enrolling', door);
    const browser = known ?? newSecret();
    const { expiresAt, merchantId, ...opened } = await recordingRefusal(service, byLink(origin), () =>
      openInvitation(service, door, body.token, browser),
    );
    if (known === undefined) setCookie(reply, 'enrolling', door, browser);
    return { ...opened, merchantId: merchantId === null ? null : String(merchantId), expiresAt };
  });
  route(
    app,
    serving,
    'POST',
    '/enrollment/complete',
    Enrollment,
    async ({ service, body, request, reply, origin }) => {
      const browser = readCookie(request, 'enrolling', door);
      if (!browser) throw new Problem('unauthorized', 'open the link again, and allow cookies');
      const link = { token: body.token, browser };
      const { token, recoveryCodes } = await recordingRefusal(service, byLink(origin), () =>
        enroll(service, door, link, body, origin),
      );
      setCookie(reply, 'enrolling', door, undefined);
      return { ...(await signedIn(service, door, reply, token, origin)), recoveryCodes };
    },
  );
}

/** An attempt with the link of an invitation, for the audit. */
const byLink = (origin: Origin) => ({ userId: undefined, by: 'invitation', origin });

function serveOwnSessions(app: FastifyInstance, serving: Serving): void {
  const { door } = serving;
  route(app, serving, 'GET', '/session', Nothing, async ({ service, request }) =>
    viewOf(service, (await requireSession(service, door, request)).session),
  );
  route(app, serving, 'DELETE', '/session', Nothing, async ({ service, request, reply, origin }) => {
    const { session } = await requireSession(service, door, request);
    await endOwnSession(service, session, session.id, origin);
    setCookie(reply, 'session', door, undefined);
    // What the browser keeps of the pages. Its storage holds only language and colors.
    reply.header('clear-site-data', '"cache"');
    return undefined;
  });
  route(
    app,
    serving,
    'POST',
    '/session/step-up',
    StepUp,
    async ({ service, body, request, reply, origin }) => {
      const { session, token } = await requireSession(service, door, request);
      const { totp, passkey } = body;
      if ((totp === undefined) === (passkey === undefined))
        throw invalid('body', 'oneOf', 'takes totp or passkey');
      if (passkey === undefined)
        return signedIn(
          service,
          door,
          reply,
          await stepUp(service, session, token, { totp: totp ?? '' }, origin),
        );
      const begun = requireBegun(serving, request);
      const place = placeOf(originOfPage(request));
      const renewed = await stepUpByPasskey(service, session, token, begun, passkey, place, origin);
      return signedIn(service, door, reply, renewed);
    },
  );
  route(app, serving, 'GET', '/sessions', Nothing, async ({ service, request }) => {
    const { session } = await requireSession(service, door, request);
    const found = await listSessions(service, session.user.id, door);
    const items = found.map((each) => ({ ...each, id: String(each.id), current: each.id === session.id }));
    return { items, nextCursor: null };
  });
  route(app, serving, 'DELETE', '/sessions/:id', Nothing, async ({ service, request, origin }) => {
    const { session } = await requireSession(service, door, request);
    const { id } = request.params as { id: string };
    const isKnown = /^\d{1,18}$/.test(id) && (await endOwnSession(service, session, BigInt(id), origin));
    if (!isKnown) throw notFound('such session');
    return undefined;
  });
  route(app, serving, 'POST', '/sessions/end-others', Nothing, async ({ service, request, origin }) => {
    const { session } = await requireSession(service, door, request);
    return { ended: await endOwnSessions(service, session, origin) };
  });
}

/** Accepts a password, a second factor for a sign-in in progress, or a link. */
async function signInStep(
  serving: Serving,
  { service, body, request, reply, origin }: Asked<Static<typeof SignIn>>,
) {
  const { door } = serving;
  const signed = (token: string) => signedIn(service, door, reply, token, origin);
  const { email, password, merchantId, totp, recoveryCode, link, passkey } = body;
  const names = Object.keys(body).filter((name) => name !== 'merchantId');
  if (names.length === 2 && email !== undefined && password !== undefined) {
    const of = merchantId === undefined ? undefined : toId(merchantId, 'merchantId');
    const begun = await beginSignIn(service, door, { email, password, merchantId: of }, origin);
    if ('merchants' in begun) return { next: 'merchant', merchants: await namesOf(service, begun.merchants) };
    setCookie(reply, 'begun', door, begun.token);
    return { next: 'second-factor', factors: begun.factors };
  }
  const factor: Factor | undefined =
    totp === undefined ? (recoveryCode === undefined ? undefined : { recoveryCode }) : { totp };
  if (Object.keys(body).length !== 1 || (factor === undefined && link === undefined && passkey === undefined))
    throw invalid('body', 'oneOf', 'takes email and password, or one of totp, recoveryCode, passkey, link');
  if (passkey !== undefined) {
    const place = placeOf(originOfPage(request));
    const begun = requireBegun(serving, request);
    const token = await signInByPasskey(service, door, begun, passkey, place, origin);
    setCookie(reply, 'begun', door, undefined);
    return signed(token);
  }
  if (factor === undefined) return signed(await signInByLink(service, door, link ?? '', origin));
  const token = await finishSignIn(service, door, requireBegun(serving, request), factor, origin);
  setCookie(reply, 'begun', door, undefined);
  return signed(token);
}

const namesOf = ({ db }: Service, ids: readonly number[]) =>
  Promise.all(ids.map(async (id) => ({ id: String(id), name: (await findMerchant(db, id))?.name ?? '' })));

/**
 * Sets the cookie of a session, and returns the session.
 * @param origin of a sign-in, which makes the device known; undefined for a step-up
 */
async function signedIn(service: Service, door: Door, reply: FastifyReply, token: string, origin?: Origin) {
  const session = await findSession(service, token, door);
  if (!session) throw new Problem('unauthorized', 'the session has ended: sign in again');
  const { id, merchantId } = session.user;
  reply.request.trace.principal = { kind: 'user', id: String(id), merchantId };
  setCookie(reply, 'session', door, token);
  if (origin) rememberDevice(service, door, reply, session.user.id, origin.devices);
  return viewOf(service, session);
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
