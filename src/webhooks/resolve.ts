import { type LookupAddress, type LookupAllOptions, Resolver } from 'node:dns';

/** Resolves a host name to all of its addresses. */
export type Resolve = (
  host: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** For one question to one server. It is asked twice, with a longer timeout the second time. */
const TIMEOUT_MS = 2_000;
const TRIES = 2;

/**
 * Makes a resolver that asks the name servers itself. The system's resolver runs on few threads: eight
 * deliveries to a name with silent servers delayed all other endpoints by forty seconds. It knows only
 * DNS, without the hosts file and search domains, which public names do not need.
 * @param servers to ask, as `address:port`; by default those of the system
 */
export function resolverOf(servers?: readonly string[]): Resolve {
  return (host, { family }, done) => {
    const resolver = new Resolver({ timeout: TIMEOUT_MS, tries: TRIES });
    if (servers) resolver.setServers(servers);
    const questions = [
      ...(family === 6 || family === 'IPv6' ? [] : [ask(resolver, 'resolve4', host, 4)]),
      ...(family === 4 || family === 'IPv4' ? [] : [ask(resolver, 'resolve6', host, 6)]),
    ];
    void Promise.all(questions).then((answers) => {
      const found = answers.flatMap(({ addresses }) => addresses);
      if (found.length > 0) return done(null, found);
      // A silent server may know the name. It does not exist only if every answer says so.
      const isUnknown = answers.every(({ code }) => code === 'ENOTFOUND' || code === 'ENODATA');
      const code = isUnknown ? 'ENOTFOUND' : 'EAI_AGAIN';
      done(Object.assign(new Error(`${host} cannot be resolved (${code})`), { code }), []);
    });
  };
}

type Answer = { readonly addresses: LookupAddress[]; readonly code?: string | undefined };

function ask(
  resolver: Resolver,
  question: 'resolve4' | 'resolve6',
  host: string,
  family: 4 | 6,
): Promise<Answer> {
  return new Promise((resolve) => {
    resolver[question](host, (error: NodeJS.ErrnoException | null, addresses: string[] | undefined) =>
      resolve(
        error
          ? { addresses: [], code: error.code }
          : { addresses: (addresses ?? []).map((address) => ({ address, family })) },
      ),
    );
  });
}
