import type { FastifyRequest } from 'fastify';
import { Problem } from '../../operator/problem.ts';

/** A header that no form can send, and no script of another site without a permission that is never given. */
const OWN_HEADER = 'x-scrip-request';

const SAFE = new Set(['GET', 'HEAD']);

/**
 * Refuses requests that a page of another site made a browser send (CSRF). A request that carries a cookie,
 * or sets one, must come from a page of this origin, by a script of ours; a read may also be typed into the
 * address bar.
 * @param publicUrl where browsers reach the service; undefined where that is the Host that they name
 * @throws Problem `forbidden` that names what is missing
 */
export function requireSameOrigin({ headers, method }: FastifyRequest, publicUrl: string | undefined): void {
  const site = headers['sec-fetch-site'];
  if (SAFE.has(method)) {
    if (site === undefined || site === 'same-origin' || site === 'none') return;
    throw new Problem('forbidden', 'a page of another site may not read this');
  }
  if (site !== 'same-origin') throw new Problem('forbidden', 'Sec-Fetch-Site must be same-origin');
  if (!isOwn(headers.origin, headers.host, publicUrl))
    throw new Problem(
      'forbidden',
      'Origin must be the address of this service (SCRIP_PUBLIC_URL behind a proxy)',
    );
  if (headers[OWN_HEADER] === undefined)
    throw new Problem('forbidden', 'the header X-Scrip-Request is missing');
}

function isOwn(origin: string | undefined, host: string | undefined, publicUrl: string | undefined): boolean {
  if (origin === undefined || host === undefined) return false;
  if (publicUrl !== undefined) return origin === new URL(publicUrl).origin;
  return origin === `https://${host.toLowerCase()}` || origin === `http://${host.toLowerCase()}`;
}
