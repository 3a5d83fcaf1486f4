import type { FastifyReply } from 'fastify';
import Type from 'typebox';
import { recordRefusal, UNKNOWN_ACCOUNT } from '../../audit/refusals.ts';
import type { OidcProvider } from '../../people/oidc.ts';
import type { Session } from '../../people/sessions.ts';
import { Problem } from '../../problem.ts';
import { HTML } from '../html.ts';
import {
  type Asked,
  type Route,
  readCookie,
  rememberDevice,
  requireSession,
  setCookie,
  visiting,
} from './person.ts';

/** The routes of single sign-on of the operator: the browser goes to the identity provider, and returns. */

export const OIDC_PATH = '/session/oidc';
const SIGN_IN = '/console/sign-in';
const Methods = Type.Object({ password: Type.Boolean(), oidc: Type.Boolean() });

/** Returns the routes. Without an identity provider, the only answer is that there is none. */
export function oidcRoutes(provider: OidcProvider | undefined): readonly Route[] {
  const methods = visiting('GET /session/methods', { gives: Methods }, async () => ({
    password: true,
    oidc: provider !== undefined,
  }));
  if (!provider) return [methods];
  // Without a session, or with one to step up. The provider's page sends the browser to the callback; the
  // cookie and the state prove that it started here.
  const visit = async ({ service, reply }: Asked<unknown>, session?: Session) => {
    const { url, token } = await provider.begin(service, session);
    setCookie(reply, 'oidc', 'operator', token);
    return reply.redirect(url.href);
  };
  return [
    methods,
    answering(OIDC_PATH, (asked) => visit(asked)),
    answering(`${OIDC_PATH}/step-up`, async (asked) => visit(asked, (await requireSession(asked)).session)),
    { ...answering(`${OIDC_PATH}/callback`, (asked) => comeBack(provider, asked)), isFromOutside: true },
  ];
}

/** Defines a route to which a browser goes: a refusal is a page that leads to the sign-in. */
function answering(path: `/${string}`, run: (asked: Asked<unknown>) => Promise<FastifyReply>): Route {
  return visiting(`GET ${path}`, {}, async (asked) => {
    const { service, request, reply, origin } = asked;
    try {
      return await run(asked);
    } catch (error) {
      if (!(error instanceof Problem) || error.code === 'forbidden') throw error;
      setCookie(reply, 'oidc', 'operator', undefined);
      const { address, requestId } = origin;
      const refused = { action: 'session.refused', subject: UNKNOWN_ACCOUNT, by: 'oidc' } as const;
      recordRefusal(service, { ...refused, actor: null, address, requestId });
      request.trace.statusCode = error.code;
      const reason = String(error.details['reason'] ?? error.code);
      return sendPage(reply.code(401), `${SIGN_IN}#single-sign-on=${reason}`, error.message);
    }
  });
}

/** Signs a browser in that comes back from the provider, or steps its session up. */
async function comeBack(provider: OidcProvider, asked: Asked<unknown>): Promise<FastifyReply> {
  const { request, reply } = asked;
  const token = readCookie(request, 'oidc', 'operator');
  const query = (request.raw.url ?? '').replace(/^[^?]*/, '');
  const done = await provider.finish(asked, token, query);
  setCookie(reply, 'oidc', 'operator', undefined);
  if (!('session' in done)) {
    setCookie(reply, 'begun', 'operator', done.begun);
    return sendPage(reply, `${SIGN_IN}#second-factor`, 'Signed in.');
  }
  setCookie(reply, 'session', 'operator', done.session);
  if (!done.isStepUp) rememberDevice(asked, reply, done.userId);
  return sendPage(reply, `${SIGN_IN}#${done.isStepUp ? 'stepped-up' : 'signed-in'}`, 'Signed in.');
}

/**
 * Sends a page of our own that leads to the console. An HTTP redirect would still count as coming from the
 * provider's site, and the browser would not send the session's cookie.
 */
function sendPage(reply: FastifyReply, next: string, text: string): FastifyReply {
  return reply
    .type(HTML)
    .send(
      '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Scrip</title>' +
        `<meta http-equiv="refresh" content="0;url=${next}"></head>` +
        `<body><p>${text}</p><p><a href="${next}">Continue</a></p></body></html>`,
    );
}
