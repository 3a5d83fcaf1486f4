import { type LookupAllOptions, lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';
import { type Resolve, resolverOf } from './resolve.ts';

/**
 * Where webhooks may go. A merchant's address is input that makes this service call somewhere: without
 * these rules it could reach what only the operator's own network should (server-side request forgery).
 */

/** Why an address is not called. */
export class ForbiddenAddress extends Error {}

const HTTPS_PORT = 443;
/** Below are the ports of other services: mail, databases of old, remote shells. */
const FIRST_FREE_PORT = 1_024;
const LONGEST_URL = 2_000;

/** All of IPv6 that was ever given out to be routed; `::127.0.0.1` and its like lie outside. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3');

/**
 * Whether an address is one of the public internet: no private, loopback, link-local, carrier, multicast,
 * documentation or reserved one, and no form of IPv6 that carries an IPv4 address within it, since that
 * one is where it ends up.
 */
export function isPublic(address: string): boolean {
  // The library also reads spellings that are none, such as 1.2.3.
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.parse(address);
  return parsed.range() === 'unicast' && (parsed.kind() === 'ipv4' || parsed.match(GLOBAL_IPV6));
}

/**
 * Reads the URL of an endpoint.
 * @returns it as it will be called: the parser has turned every odd spelling of an IP address into the
 *   plain one
 * @throws ForbiddenAddress with what is wrong, for the operator
 */
export function readEndpointUrl(text: string, allowPrivate: boolean): URL {
  if (text.length > LONGEST_URL)
    throw new ForbiddenAddress(`the URL is longer than ${LONGEST_URL} characters`);
  if (!URL.canParse(text))
    throw new ForbiddenAddress('the URL is none: give one such as https://example.com/hooks');
  const url = new URL(text);
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:'))
    throw new ForbiddenAddress('webhooks go to https addresses only');
  if (url.username || url.password) throw new ForbiddenAddress('the URL holds a user name or password');
  if (url.hash) throw new ForbiddenAddress('the URL holds a fragment, which no server would see');
  if (allowPrivate) return url;
  const port = url.port === '' ? HTTPS_PORT : Number(url.port);
  if (port !== HTTPS_PORT && port < FIRST_FREE_PORT)
    throw new ForbiddenAddress(
      `port ${port} belongs to another service: use 443, or one from ${FIRST_FREE_PORT}`,
    );
  // A last dot means the same name; without it, it would pass for another one.
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (isIP(host) ? !isPublic(host) : isPrivateName(host))
    throw new ForbiddenAddress(`${host} is not a public address`);
  return url;
}

/**
 * Names that never leave a network: they have no dot, or end in one of the names kept for that (RFC 6761,
 * 6762, 8375).
 */
function isPrivateName(host: string): boolean {
  return !host.includes('.') || /\.(localhost|local|internal|home\.arpa|test|invalid|onion)$/i.test(host);
}

/**
 * A look-up for connections that gives public addresses only: if one of a name's addresses is not, none
 * of them is called. The connection is made to what was checked here; there is no second look-up that
 * could say something else.
 * @param resolve but for tests the name servers; for development the system's own look-up, which knows
 *   `localhost` and its like
 */
export function guardedLookup(
  allowPrivate: boolean,
  resolve: Resolve = allowPrivate ? systemLookup : resolverOf(),
): LookupFunction {
  return (host, options, done) => {
    resolve(
      host,
      { family: options.family, hints: options.hints ?? 0, all: true } as LookupAllOptions,
      (error, found) => {
        if (error) return done(error, '', 0);
        const forbidden = allowPrivate ? undefined : found.find(({ address }) => !isPublic(address));
        if (forbidden)
          return done(new ForbiddenAddress(`${host} resolves to an address that is not public`), '', 0);
        const [first] = found;
        if (!first) return done(new Error(`${host} has no address`), '', 0);
        if (options.all) done(null, found);
        else done(null, first.address, first.family);
      },
    );
  };
}
