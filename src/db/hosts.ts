import pg from 'pg';

/**
 * An address may name several servers, of which one at a time takes writes:
 * `postgres://user:password@one:5432,two:5432/scrip?target_session_attrs=read-write`. The driver knows
 * one host a connection; so each new connection goes to the server that was right last, and where that is
 * gone, or only a standby, the next one goes to the following server.
 */

const PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/]*@)?)([^/?]*)(.*)$/;

/** An address for each server of an address, in the order in which it names them. */
export function hostAddresses(url: string): string[] {
  const [, head = '', hosts = '', tail = ''] = PARTS.exec(url) ?? [];
  if (!hosts.includes(',') && !tail.includes('target_session_attrs')) return [url];
  return hosts.split(',').map((host) => {
    const address = new URL(`${head}${host}${tail}`);
    address.searchParams.delete('target_session_attrs');
    return address.href;
  });
}

/**
 * Whether an address is one that can be followed: each server a host with a port, and none asked for but
 * a primary.
 */
export function isAddress(url: string): boolean {
  if (!PARTS.test(url)) return false;
  const wish = /[?&]target_session_attrs=([^&]*)/.exec(url)?.[1];
  if (wish !== undefined && wish !== 'read-write' && wish !== 'primary') return false;
  try {
    return hostAddresses(url).every((address) => URL.canParse(address));
  } catch {
    return false;
  }
}

/** The hosts of an address, for people: never with its password. */
export function hostsOf(url: string): string {
  return hostAddresses(url)
    .map((address) => new URL(address).host)
    .join(', ');
}

/**
 * The position of the server that was right last, for each address: what one connection has found out,
 * the next ones know.
 */
const rightHosts = new Map<string, number>();

/** A server that is there, but a standby: the primary is another one, or none yet. */
function standby(): Error {
  return Object.assign(new Error('the server is a standby'), { code: '25006' });
}

type Connected = (error: Error) => void;

/**
 * The client of a pool that follows the primary. Who meets a server that is gone or a standby is told
 * that there is no database just now, and the next connection goes on to the following server.
 * @returns the driver's own client for an address with one server
 */
export function clientFor(url: string): typeof pg.Client {
  const addresses = hostAddresses(url);
  if (addresses.length === 1) return pg.Client;
  return class extends pg.Client {
    readonly #at = rightHosts.get(url) ?? 0;

    constructor(config: pg.ClientConfig) {
      super({ ...config, connectionString: addresses[rightHosts.get(url) ?? 0] as string });
    }

    override connect(): Promise<pg.Client>;
    override connect(connected: Connected | ((error: null, client: pg.Client) => void)): void;
    override connect(connected?: Connected | ((error: null, client: pg.Client) => void)): unknown {
      const connecting = this.#connect();
      if (!connected) return connecting;
      connecting.then(
        (client) => (connected as (error: null, client: pg.Client) => void)(null, client),
        connected as Connected,
      );
      return undefined;
    }

    async #connect(): Promise<pg.Client> {
      try {
        await super.connect();
        const { rows } = await this.query('select pg_is_in_recovery() as standby');
        if (rows[0]?.standby) throw standby();
        return this;
      } catch (error) {
        if ((rightHosts.get(url) ?? 0) === this.#at) rightHosts.set(url, (this.#at + 1) % addresses.length);
        this.end().catch(() => {});
        throw error;
      }
    }
  };
}
