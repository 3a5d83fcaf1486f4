import { type LookupAddress, type LookupAllOptions, Resolver } from 'node:dns';

/** Resolves a host name to all of its addresses. */
export type Resolve = (
  host: string,
  options: LookupAllOptions,
  done: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Of one question to one server; asked twice, the second time with more patience. */
const TIMEOUT_MS = 2_000;
const TRIES = 2;

/**
 * Makes a look-up that asks the name servers itself. The system's own look-up waits on one of two threads
 * of the process: eight deliveries to a name whose servers are silent kept the names of all other
 * endpoints waiting for forty seconds. It knows DNS alone, and neither the file of hosts nor names that
 * are completed by the network's own: public names need neither.
 * @param servers to ask, as `address:port`; left out, those of the system, as they are at the time
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
      // A server that was silent may know it after all: only where every answer says so the name does not
      // exist.
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
