import pg from 'pg';

/**
 * An address can name several servers, of which one takes writes:
 * `postgres://user:password@one:5432,two:5432/scrip?target_session_attrs=read-write`. The driver knows
 * one host for a connection. So each new connection goes to the server that was right last. If that
 * server is gone or only a standby, the next connection tries the following one.
 */

const PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/]*@)?)([^/?]*)(.*)$/;

/** One address for each server of an address, in the same order. */
export function hostAddresses(url: string): string[] {
  const [, head = '', hosts = '', tail = ''] = PARTS.exec(url) ?? [];
  if (!hosts.includes(',') && !tail.includes('target_session_attrs')) return [url];
  return hosts.split(',').map((host) => {
    const address = new URL(`${head}${host}${tail}`);
    address.searchParams.delete('target_session_attrs');
    return address.href;
  });
}

/** Whether the address has several hosts with ports, and asks for nothing but a primary. */
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

/** The hosts of an address, for messages: never with the password. */
export function hostsOf(url: string): string {
  return hostAddresses(url)
    .map((address) => new URL(address).host)
    .join(', ');
}

/** The position of the server that was right last, for each address. All connections share it. */
const rightHosts = new Map<string, number>();

/** The server is there, but a standby. The primary is another one, or there is none yet. */
function standby(): Error {
  return Object.assign(new Error('the server is a standby'), { code: '25006' });
}

type Connected = (error: Error) => void;

/**
 * The client of a pool that follows the primary. A connection to a server that is gone or a standby
 * fails as "no database", and the next connection tries the following server.
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
