import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { isAway, sqlState } from './errors.ts';

/**
 * Notices a server that does not answer any more, though no connection to it has broken: its host has lost its power, or
 * what lies between has. Without it every statement waits for its own limit, and so does the pool behind them, long
 * after the server is back.
 *
 * While statements wait and none was answered for a while, the server is asked over a connection of its own. Where nobody
 * answers, every connection is cut and everything is refused at once, until somebody does. Where somebody does, the server tells
 * which of the statements it knows nothing of: their connections are dead, and are cut together with those that have said
 * nothing either since then.
 *
 * The server may not know that they are dead: one that stood within a transaction holds its locks, and those who wait for them
 * wait for its own limit, one after the other. So what was cut is ended there too.
 */

/** So long nothing is wrong: a statement of the hot path takes milliseconds. */
const SILENT_MS = 1_000;
/** For a connection and one statement. Together with the above, what waits for a dead server waits some two seconds. */
const PROBE_MS = 1_000;
/** What the server has just answered may still be on its way. */
const ARRIVE_MS = 50;
/** Between two questions while the server is away: it is noticed soon, and not flooded when it comes back. */
const AGAIN_MS = 200;

/**
 * Which of these processes of the server work on something; asked as the account that signed in, to which they belong. Where
 * a pooler stands between, the numbers are its own, and say nothing.
 */
const LOOK = `select pg_backend_pid() as own,
  array(select pid from pg_stat_activity where pid = any ($1::int[]) and state is distinct from 'idle'
    and state is distinct from 'idle in transaction') as working`;

/**
 * Ends the server's side of connections that were cut. Each by its process, and by when it was last heard of: a process that began
 * before that is still the same one, and not another one that has got its number since.
 */
const END = `select pg_terminate_backend(a.pid) from unnest($1::int[], $2::float8[]) as cut (pid, silent_seconds)
  join pg_stat_activity a on a.pid = cut.pid and a.usename = session_user
  where a.backend_start < clock_timestamp() - make_interval(secs => cut.silent_seconds)`;

type Waiting = { readonly client: pg.ClientBase; readonly since: number };

/** What the driver knows of a connection, and its types do not say. */
type Inside = { readonly processID?: number; readonly connection: { readonly stream: { destroy(): void } } };

const inside = (client: pg.ClientBase) => client as unknown as Inside;

/** Ends a connection without a word to the server: what waits on it fails now. */
export function cut(client: pg.ClientBase): void {
  inside(client).connection.stream.destroy();
}

export class Watch {
  readonly #open: () => pg.Client;
  /** The connections, and when each was last heard of. */
  readonly #clients = new Map<pg.ClientBase, number>();
  readonly #waiting = new Set<Waiting>();
  /** The server's processes of connections that were cut, and when each was last heard of. */
  readonly #cut = new Map<number, number>();
  #heardAt = 0;
  #watching = false;
  #isAway = false;
  #closed = false;

  /** @param open makes a client of the same server, as the account that the pools sign in as; it is not connected yet */
  constructor(open: () => pg.Client) {
    this.#open = open;
  }

  /** Cuts the connections of a pool too, where the server is gone. */
  guard(pool: pg.Pool): void {
    pool.on('connect', (client) => void this.#clients.set(client, performance.now()));
    pool.on('remove', (client) => void this.#clients.delete(client));
  }

  /** @throws at once while nobody answers: what would be sent now would wait for nothing */
  check(): void {
    if (this.#isAway) throw Object.assign(new Error('the database does not answer'), { code: 'ETIMEDOUT' });
  }

  /** Runs a statement on a connection under the watch. */
  async run<T>(client: pg.ClientBase, statement: () => Promise<T>): Promise<T> {
    this.check();
    const waiting = { client, since: performance.now() };
    if (this.#waiting.size === 0) this.#heardAt = waiting.since;
    this.#waiting.add(waiting);
    if (!this.#watching) void this.#watch();
    try {
      const result = await statement();
      this.#hear(client);
      return result;
    } catch (error) {
      if (sqlState(error) !== undefined) this.#hear(client);
      throw error;
    } finally {
      this.#waiting.delete(waiting);
    }
  }

  #hear(client: pg.ClientBase): void {
    this.#heardAt = performance.now();
    if (this.#clients.has(client)) this.#clients.set(client, this.#heardAt);
  }

  close(): void {
    this.#closed = true;
  }

  #isSilent(): boolean {
    return this.#waiting.size > 0 && performance.now() - this.#heardAt >= SILENT_MS;
  }

  /** For as long as something waits. */
  async #watch(): Promise<void> {
    this.#watching = true;
    while (this.#waiting.size > 0 && !this.#closed) {
      await sleep(Math.max(AGAIN_MS, SILENT_MS - (performance.now() - this.#heardAt)), undefined, { ref: false });
      if (!this.#isSilent()) continue;
      if (await this.#answers()) this.#heardAt = performance.now();
      // Under load the answers may be here, and merely not read yet.
      else if (this.#isSilent()) await this.#wait();
    }
    this.#watching = false;
  }

  /** Until somebody answers: nothing of what was sent will be. */
  async #wait(): Promise<void> {
    this.#isAway = true;
    for (const client of this.#clients.keys()) this.#giveUp(client);
    while (!this.#closed && !(await this.#answers())) await sleep(AGAIN_MS, undefined, { ref: false });
    this.#isAway = false;
  }

  /** Whether anybody answers; cuts the connections of statements that the server knows nothing of. */
  async #answers(): Promise<boolean> {
    const late = [...this.#waiting].filter(({ since }) => performance.now() - since >= SILENT_MS);
    const client = this.#open();
    client.on('error', () => {});
    // What has arrived meanwhile is read first.
    const limit = setTimeout(() => setImmediate(() => cut(client)), PROBE_MS);
    try {
      await client.connect();
      const pids = late.map((each) => inside(each.client).processID ?? 0);
      const { rows } = await client.query<{ own: number; working: number[] }>(LOOK, [pids]);
      const [{ own, working } = { own: 0, working: [] }] = rows;
      if (own !== inside(client).processID) return true;
      const unknown = late.filter((each) => !working.includes(inside(each.client).processID ?? 0));
      if (unknown.length > 0) await sleep(ARRIVE_MS);
      this.#bury(unknown.filter((each) => this.#waiting.has(each)));
      await this.#endCut(client);
      return true;
    } catch (error) {
      // A standby answers, but to nothing that waits.
      return !isAway(error) && sqlState(error) !== '25006';
    } finally {
      clearTimeout(limit);
      client.end().catch(() => {});
    }
  }

  /** Cuts dead connections, and all that may have died with them: with them gone, what comes next goes to a new one. */
  #bury(dead: readonly Waiting[]): void {
    const since = Math.min(...dead.map((each) => each.since));
    const inUse = new Set([...this.#waiting].map(({ client }) => client));
    for (const [client, heardAt] of this.#clients) if (heardAt < since && !inUse.has(client)) this.#giveUp(client);
    for (const { client } of dead) this.#giveUp(client);
  }

  /** Gives a connection up. */
  #giveUp(client: pg.ClientBase): void {
    const { processID } = inside(client);
    const heardAt = this.#clients.get(client);
    if (processID !== undefined && heardAt !== undefined) this.#cut.set(processID, heardAt);
    cut(client);
  }

  async #endCut(client: pg.Client): Promise<void> {
    if (this.#cut.size === 0) return;
    const now = performance.now();
    const silent = [...this.#cut.values()].map((heardAt) => (now - heardAt) / 1000);
    const pids = [...this.#cut.keys()];
    this.#cut.clear();
    // Where it may not be done, they end by their own limit.
    await client.query(END, [pids, silent]).catch(() => {});
  }
}
