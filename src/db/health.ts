import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { STANDBY } from './errors.ts';

/**
 * Detects a server that no longer answers, although its connections seem open: the host lost power, or the
 * network was cut. Otherwise each statement would wait for its own time limit, and the pools would stay full.
 *
 * If a statement takes long, a probe opens a new connection. If the probe gets no answer, all statements in
 * flight and all new ones fail at once, until a probe is answered. The server ends lost connections by its
 * own `client_connection_check_interval` and keep-alive.
 */

/** A statement that takes longer starts a probe. A statement of the hot path takes milliseconds. */
const SUSPECT_AFTER_MS = 500;
/**
 * The time limit of a connection and one statement. With the limit above, a call waits two seconds for a dead
 * server.
 */
const PROBE_TIMEOUT_MS = 1_400;
const PROBE_INTERVAL_MS = 200;
/** A server that has just answered is not probed again at once because one statement takes long. */
const ANSWERED_INTERVAL_MS = 500;
const STEP_MS = 100;
/**
 * Reports and closes read for minutes. A single probe that a busy machine answers late must not end them. A
 * failover takes seconds, so a server that is away for this long has lost the transaction.
 */
const PATIENCE_MS = 30_000;

type InFlight = {
  readonly sentAt: number;
  readonly isPatient: boolean;
  readonly giveUp: (error: Error) => void;
};

export class Health {
  readonly #open: () => pg.Client;
  readonly #isPatient: boolean;
  readonly #inFlight = new Set<InFlight>();
  #awaySince: number | undefined;
  #isChecking = false;
  #isClosed = false;

  /**
   * @param open returns a client of the same server that is not connected yet
   * @param isPatient whether every statement is patient
   */
  constructor(open: () => pg.Client, isPatient = false) {
    this.#open = open;
    this.#isPatient = isPatient;
  }

  /** Throws while the server is away, so that no statement waits for it. */
  check(): void {
    if (this.#awaySince !== undefined && !this.#isPatient) throw silence();
  }

  /**
   * Runs a statement, and makes it fail if the server is away.
   * @param isPatient fails the statement only after the server has been away for a while
   */
  track<T>(statement: () => Promise<T>, isPatient = this.#isPatient): Promise<T> {
    if (!isPatient) this.check();
    return new Promise((resolve, reject) => {
      const sent = { sentAt: performance.now(), isPatient, giveUp: reject };
      this.#inFlight.add(sent);
      if (!this.#isChecking) void this.#check();
      statement()
        .then(resolve, reject)
        .finally(() => this.#inFlight.delete(sent));
    });
  }

  close(): void {
    this.#isClosed = true;
  }

  /** Probes the server while statements are in flight, or while the server is away. */
  async #check(): Promise<void> {
    this.#isChecking = true;
    let interval = PROBE_INTERVAL_MS;
    while ((this.#inFlight.size > 0 || this.#awaySince !== undefined) && !this.#isClosed) {
      await sleep(interval, undefined, { ref: false });
      interval = PROBE_INTERVAL_MS;
      const [oldest] = this.#inFlight;
      const isSuspect = oldest !== undefined && performance.now() - oldest.sentAt >= SUSPECT_AFTER_MS;
      if (this.#awaySince === undefined && !isSuspect) continue;
      if (await this.#probe()) {
        this.#awaySince = undefined;
        interval = ANSWERED_INTERVAL_MS;
      } else this.#giveUp();
    }
    this.#isChecking = false;
  }

  #giveUp(): void {
    this.#awaySince ??= performance.now();
    const isLost = performance.now() - this.#awaySince >= PATIENCE_MS;
    for (const sent of this.#inFlight)
      if (isLost || !sent.isPatient) {
        sent.giveUp(silence());
        this.#inFlight.delete(sent);
      }
  }

  async #probe(): Promise<boolean> {
    const client = this.#open();
    client.on('error', () => {});
    const answered = (async () => {
      await client.connect();
      await client.query('select 1');
      return true;
    })().catch((error: { code?: unknown }) => typeof error.code === 'string' && /^\d/.test(error.code));
    try {
      return await Promise.race([answered, elapsed(PROBE_TIMEOUT_MS)]);
    } finally {
      void client.end().catch(() => {});
    }
  }
}

/**
 * Waits in steps, between which the event loop reads input. Otherwise a process without processor time would
 * mistake its own delay for a silent server.
 */
export async function elapsed(ms: number): Promise<false> {
  for (let left = ms; left > 0; left -= STEP_MS) await sleep(STEP_MS, undefined, { ref: false });
  return false;
}

function silence(): Error {
  return Object.assign(new Error('the database does not answer'), { code: 'ETIMEDOUT' });
}

/**
 * An address can name several servers, one of which accepts writes:
 * `postgres://user:password@one:5432,two:5432/scrip?target_session_attrs=read-write`. The driver supports one
 * host for a connection, so each new connection goes to the last server that was the primary. If that server
 * is down or only a standby, the next connection tries the following one.
 */

const PARTS = /^(postgres(?:ql)?:\/\/(?:[^@/]*@)?)([^/?]*)(.*)$/;

/** Returns one address for each server of an address, in the same order. */
export function hostAddresses(url: string): string[] {
  const [, head = '', hosts = '', tail = ''] = PARTS.exec(url) ?? [];
  if (!hosts.includes(',') && !tail.includes('target_session_attrs')) return [url];
  return hosts.split(',').map((host) => {
    const address = new URL(`${head}${host}${tail}`);
    address.searchParams.delete('target_session_attrs');
    return address.href;
  });
}

/** Whether the address has hosts with ports, and any `target_session_attrs` in it asks for a primary. */
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

/** Returns the hosts of an address for messages, never with the password. */
export function hostsOf(url: string): string {
  return hostAddresses(url)
    .map((address) => new URL(address).host)
    .join(', ');
}

/** The position of the last primary, for each address. All connections share it. */
const rightHosts = new Map<string, number>();

/** The error of a server that is only a standby. Another server is the primary, or there is none yet. */
function standby(): Error {
  return Object.assign(new Error('the server is a standby'), { code: STANDBY });
}

type Connected = (error: Error) => void;

/**
 * Returns the client class of a pool that follows the primary. A connection to a server that is down or a
 * standby fails as "no database", and the next connection tries the following server.
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
