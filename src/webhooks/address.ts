import { type LookupAddress, type LookupAllOptions, lookup as systemLookup } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { isIP, type LookupFunction } from 'node:net';
import ipaddr from 'ipaddr.js';

/** Resolves a host name to all of its addresses. */
export type Resolve = (
  host: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** The time limit of one query to one server. The second query has a longer limit. */
const TIMEOUT_MS = 2_000;
const TRIES = 2;

/**
 * Returns a resolver that asks the name servers directly. The system's resolver has few threads: eight
 * deliveries to a name with silent servers delayed all other endpoints by forty seconds. This resolver uses
 * only DNS, without the hosts file and search domains, which public names do not need.
 * @param servers to ask, as `address:port`; by default those of the system
 */
export function resolverOf(servers?: readonly string[]): Resolve {
  return (host, { family }, done) => {
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (servers) resolver.setServers(servers);
    const questions = [
      ...(family === 6 || family === 'IPv6' ? [] : [answerOf(resolver.resolve4(host), 4)]),
      ...(family === 4 || family === 'IPv4' ? [] : [answerOf(resolver.resolve6(host), 6)]),
    ];
    void Promise.all(questions).then((answers) => {
      const found = answers.flatMap(({ addresses }) => addresses);
      if (found.length > 0) return done(null, found);
      // A silent server may know the name. The name does not exist only if every answer says so.
      const isUnknown = answers.every(({ code }) => code === 'ENOTFOUND' || code === 'ENODATA');
      const code = isUnknown ? 'ENOTFOUND' : 'EAI_AGAIN';
      done(Object.assign(new Error(`${host} cannot be resolved (${code})`), { code }), []);
    });
  };
}

/** Returns the addresses of an answer, or the code of its error. */
const answerOf = (question: Promise<string[]>, family: 4 | 6) =>
  question.then(
    (found) => ({ addresses: found.map((address) => ({ address, family })), code: undefined }),
    ({ code }: NodeJS.ErrnoException) => ({ addresses: [], code }),
  );

/**
 * The addresses to which webhooks may be sent. A merchant's address makes this service send a request.
 * Without these rules, the request could reach services inside the operator's network (server-side request
 * forgery).
 */

/** The address is not allowed; the message is the reason. */
export class ForbiddenAddress extends Error {}

const HTTPS_PORT = 443;
/** Lower ports belong to other services: mail, old databases, remote shells. */
const FIRST_FREE_PORT = 1_024;
export const LONGEST_URL = 2_000;
export const EXAMPLE_URL = 'https://example.com/hooks';

/** The routed part of IPv6. `::127.0.0.1` and similar forms are outside it. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3');

/**
 * Whether an address is on the public internet. It must not be private, loopback, link-local, carrier,
 * multicast, documentation or reserved, nor an IPv6 form of an IPv4 address, which would be the real target.
 */
export function isPublic(address: string): boolean {
  // The library also accepts incomplete spellings, such as 1.2.3.
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.parse(address);
  return parsed.range() === 'unicast' && (parsed.kind() === 'ipv4' || parsed.match(GLOBAL_IPV6));
}

/**
 * Reads the URL of an endpoint.
 * @returns the URL that will be called: the parser has normalized every spelling of an IP address
 * @throws ForbiddenAddress with the reason, for the operator
 */
export function readEndpointUrl(text: string, allowPrivate: boolean): URL {
  if (text.length > LONGEST_URL)
    throw new ForbiddenAddress(`the URL is longer than ${LONGEST_URL} characters`);
  if (!URL.canParse(text)) throw new ForbiddenAddress(`the URL is none: give one such as ${EXAMPLE_URL}`);
  const url = new URL(text);
  if (url.protocol !== 'https:' && !(allowPrivate && url.protocol === 'http:'))
    throw new ForbiddenAddress('webhooks go to https addresses only');
  if (url.username || url.password) throw new ForbiddenAddress('the URL contains a user name or password');
  if (url.hash) throw new ForbiddenAddress('the URL contains a fragment, which no server would see');
  if (allowPrivate) return url;
  const port = url.port === '' ? HTTPS_PORT : Number(url.port);
  if (port !== HTTPS_PORT && port < FIRST_FREE_PORT)
    throw new ForbiddenAddress(
      `port ${port} belongs to another service: use 443, or one from ${FIRST_FREE_PORT}`,
    );
  // A name with a final dot is the same name, but would not match the rules.
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  if (isIP(host) ? !isPublic(host) : isPrivateName(host))
    throw new ForbiddenAddress(`${host} is not a public address`);
  return url;
}

/**
 * Whether a name is valid only in private networks: without a dot, or with a reserved ending (RFC 6761, 6762,
 * 8375).
 */
function isPrivateName(host: string): boolean {
  return !host.includes('.') || /\.(localhost|local|internal|home\.arpa|test|invalid|onion)$/i.test(host);
}

/**
 * Returns a look-up for connections that returns only public addresses. If one address of a name is not
 * public, none is used. The connection uses the checked address; there is no second look-up with a different
 * result.
 * @param resolve by default the name servers; in development the system's own look-up, which knows
 *   `localhost`
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
