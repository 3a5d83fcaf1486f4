import { parseCookie, stringifySetCookie } from 'cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Door } from '../../people/sessions.ts';

/**
 * The cookies of people. `__Host-` binds one to this host and to https; browsers take it from
 * http://localhost too, where nobody can listen. Scripts cannot read it, and no other site can
 * make a browser send it.
 */

const NAMES = {
  session: { operator: '__Host-scrip_console', portal: '__Host-scrip_portal' },
  /** A sign-in that waits for its second factor. */
  begun: { operator: '__Host-scrip_console_begun', portal: '__Host-scrip_portal_begun' },
  /**
   * A browser that was sent to the identity provider: it comes back from another site, so that this
   * cookie is `lax`.
   */
  oidc: { operator: '__Host-scrip_console_oidc', portal: '__Host-scrip_portal_oidc' },
} as const;

const ATTRIBUTES = { path: '/', secure: true, httpOnly: true } as const;
/** 256 bits in base64url. */
const FORM = /^[A-Za-z0-9_-]{43}$/;

type Kind = keyof typeof NAMES;

/** The token in a cookie; undefined if there is none, or it does not have the form of a token. */
export function readCookie({ headers }: FastifyRequest, kind: Kind, door: Door): string | undefined {
  const token = parseCookie(headers.cookie ?? '')[NAMES[kind][door]];
  return token !== undefined && FORM.test(token) ? token : undefined;
}

/** Sets a cookie, until the browser is closed; without a token it is taken back. */
export function setCookie(reply: FastifyReply, kind: Kind, door: Door, token: string | undefined): void {
  const sameSite = kind === 'oidc' ? 'lax' : 'strict';
  const attributes = { ...ATTRIBUTES, sameSite, ...(token === undefined && { maxAge: 0 }) } as const;
  reply.header(
    'set-cookie',
    stringifySetCookie({ name: NAMES[kind][door], value: token ?? '', ...attributes }),
  );
}
