import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { findNative } from '../embedded/programs.ts';
import { Scrip } from '../sdk/src/index.ts';
import { setBooks } from '../src/books/days.ts';
import { type Opened, openService } from '../src/cli/open.ts';
import { readConfig } from '../src/config.ts';
import { openOwner, type Queries } from '../src/db/pool.ts';
import { raw, sql } from '../src/db/sql.ts';
import { newKeyRing, newRingKey } from '../src/keyring/file.ts';
import { createLogger } from '../src/log.ts';
import { HOUR_MS, MINUTE_MS } from '../src/time.ts';
import { opened, temporaryFolder } from '../test/support/leave-nothing.ts';
import type { Options } from './arguments.ts';
import { findPrograms, makeDataFolder, type Programs, Server, STANDBY_NAME } from './cluster.ts';
import { Hooks } from './hooks.ts';
import { Load, type Sent, type Voucher } from './load.ts';
import { freePort, Supervised } from './process.ts';
import { createMerchants, keepLog, operatorOf, prove, report } from './prove.ts';
import { Random } from './random.ts';
import { Way } from './way.ts';

/**
 * Everything that is changed in the life of an installation is changed while tills redeem: a release, a key
 * of the ring, the server of the database, its password, its major version, the day.
 *
 * Two services share one port, which stays open while they are replaced. They reach the database by a proxy,
 * as by a pooler, which leads them to another server.
 */

const MAIN = fileURLToPath(new URL('../bin/scrip.cjs', import.meta.url));
const RUN = fileURLToPath(new URL('./run.ts', import.meta.url));
/** Statements that the guide of an upgrade names. */
const deployed = (name: string) => readFile(new URL(`../deploy/postgres/${name}`, import.meta.url), 'utf8');
const LOOK_MS = 50;
const CLOSE_LOOK_MS = 10;
/** How long a cluster manager takes to be sure that the primary is gone. */
const WATCHED_MS = 500;
/** How long after a step its effects are counted. */
const CALM_MS = 2_000;
/** Tills with the client, which repeats a call for 30 seconds. */
const CLIENTS = 8;
/** Of these, five in six are redemptions. */
const CALLS_PER_SECOND = 600;
/** What a slower machine is asked for, of what it gives: the steps need their part. */
const PART = 1 / 3;
/** For how long it is measured what the machine gives, after as long for the code to be compiled. */
const MEASURED_MS = 15_000;
/** The part of calls that order up to 1,500 vouchers: the subject are tills. */
const ORDERS = 0.000_5;
const SERVICE = 'scrip_service';
const SECOND = 'scrip_second';
/** The part of calls that may be without an answer, or answered with 91. */
const UNANSWERED_MAX = 0.001;
/** How long a merchant may be without a success. */
const GAP_MAX_MS = 1_500;
const LONGEST = 'longest wait of a merchant (ms)';
/** A subscriber that is less far behind is near. On a busy machine it may never be. */
const NEAR_MS = 300;
const CATCH_UPS = 20;
/** After midnight, a day closes after its grace of five minutes and two marks. */
const CLOSES_AFTER_MS = 9 * MINUTE_MS;

/** The first descriptor after those of the standard streams. */
const SOCKET = 3;
/** Opens a port, and becomes a command that inherits it. */
const WITH_SOCKET = `
import os, socket, sys
port = socket.create_server(("127.0.0.1", 0), backlog=4096)
os.dup2(port.fileno(), ${SOCKET})
os.set_inheritable(${SOCKET}, True)
os.environ["SOAK_PORT"] = str(port.getsockname()[1])
os.execvp(sys.argv[1], sys.argv[1:])
`;

const run = promisify(execFile);

type Life = {
  readonly folder: string;
  readonly programs: Programs;
  readonly way: Way;
  readonly services: readonly { readonly process: Supervised; readonly metricsPort: number }[];
  /** The settings of the services; those of commands are the same, but for the account of the database. */
  readonly settings: Record<string, string>;
  readonly standby: Server;
  /** The server that the way leads to. */
  primary: Server;
};

const STEPS: Readonly<Record<string, (life: Life) => Promise<void>>> = {
  'a release: all functions, then each process': release,
  'a backup, restored elsewhere and reconciled': copy,
  'the key of the ring': rotate,
  'a process killed': async ({ services }) => services[0]?.process.signal('SIGKILL'),
  'the primary lost, its standby promoted': failOver,
  'the password of the database': changePassword,
  'another major version of PostgreSQL': move,
};

/** Runs statements as the owner of the schema, on the server that the way leads to. */
async function asOwner<T>(server: Server, work: (owner: Queries) => Promise<T>): Promise<T> {
  const owner = await openOwner(server.url());
  return work(owner).finally(() => owner.close());
}

const commandSettings = ({ settings, way }: Pick<Life, 'settings' | 'way'>) => ({
  ...settings,
  SCRIP_DATABASE_URL: way.url,
});

async function command(life: Life, args: readonly string[], settings: Record<string, string> = {}) {
  const env = { ...process.env, ...commandSettings(life), ...settings };
  await run(process.execPath, [MAIN, ...args], { env });
}

/** Replaces the services one after the other. */
async function replaceEach({ services }: Life, settings: Record<string, string> = {}): Promise<void> {
  for (const { process, metricsPort } of services)
    await process.replace(settings, () => isReady(metricsPort));
}

async function isReady(metricsPort: number): Promise<boolean> {
  const page = await fetch(`http://127.0.0.1:${metricsPort}/metrics`).catch(() => undefined);
  return page?.ok === true && /^scrip_ready.* 1$/m.test(await page.text());
}

async function release(life: Life): Promise<void> {
  await asOwner(life.primary, async (owner) => {
    const functions = await owner.query<{ text: string }>(
      sql`
select pg_get_functiondef(p.oid) as text from pg_proc p
where p.pronamespace = 'scrip'::regnamespace and p.prokind = 'f'`,
    );
    // In one transaction, as the migrations of a release.
    await owner.query(
      raw(
        `begin; set local search_path = scrip, pg_temp; ${functions.map(({ text }) => text).join(';\n')}; commit`,
      ),
    );
  });
  await command(life, ['migrate']);
  await replaceEach(life);
}

async function copy(life: Life): Promise<void> {
  const elsewhere = new Server(life.programs, join(life.folder, 'cluster', 'copy'), await freePort());
  await opened(() => elsewhere.copy(life.primary));
  await elsewhere.start();
  await command(life, ['reconcile', '--full'], { SCRIP_DATABASE_URL: elsewhere.url() });
  await elsewhere.stop();
}

/** The new key is put first in the ring of each process, used, and the old one taken out. */
async function rotate(life: Life): Promise<void> {
  const [old = '', routing = ''] = (life.settings['SCRIP_KEYS'] ?? '').split(',');
  const next = newRingKey();
  const setRing = async (...entries: string[]) => {
    life.settings['SCRIP_KEYS'] = entries.join(',');
    await replaceEach(life, { SCRIP_KEYS: entries.join(',') });
  };
  await setRing(next, old, routing);
  await command(life, ['keyring', 'rotate']);
  await command(life, ['keyring', 'drop', old.slice(0, old.indexOf(':'))]);
  await setRing(next, routing);
}

async function failOver(life: Life): Promise<void> {
  await opened(() => life.primary.kill());
  await life.way.wait();
  await sleep(WATCHED_MS);
  await life.standby.promote();
  life.primary = life.standby;
  await life.way.lead(life.standby.url());
}

/** The services change over to a second account, and the first one is closed (docs/how-to/leaked-key.md). */
async function changePassword(life: Life): Promise<void> {
  const password = `changed-${Date.now()}`;
  await createSecond(life.primary, password);
  life.settings['SCRIP_DATABASE_URL'] = addressOf(life.way, SECOND, password);
  await replaceEach(life, life.settings);
  await asOwner(life.primary, async (owner) => {
    await owner.query(raw(`alter role ${SERVICE} nologin`));
    await owner.query(sql`select pg_terminate_backend(pid) from pg_stat_activity where usename = ${SERVICE}`);
  });
}

const createSecond = (server: Server, password: string) =>
  asOwner(server, (owner) =>
    owner.query(raw(`create role ${SECOND} login password '${password}' in role ${SERVICE}`)),
  );

function addressOf(way: Way, account: string, password: string): string {
  const url = new URL(way.url);
  url.username = account;
  url.password = password;
  return url.href;
}

/**
 * A server of the next major version subscribes to all tables. When it has caught up, the way waits, until
 * it has the last change and the positions of the sequences.
 */
async function move(life: Life): Promise<void> {
  const { primary: from, way } = life;
  const to = new Server(
    { folder: join(findNative(), 'bin') },
    join(life.folder, 'cluster', 'next'),
    await freePort(),
  );
  // A subscriber confirms what it has written to disk.
  await to.create(['max_connections = 200', 'wal_writer_delay = 10ms']);
  await to.start();
  await command(life, ['migrate'], { SCRIP_DATABASE_URL: to.url() });
  await createSecond(to, new URL(life.settings['SCRIP_DATABASE_URL'] ?? '').password);
  await asOwner(from, (old) => asOwner(to, (owner) => subscribe(old, owner, from.url())));
  await asOwner(from, (old) =>
    asOwner(to, async (owner) => {
      for (let left = CATCH_UPS; left > 0 && (await catchUp(old)) > NEAR_MS; left--);
      await way.wait();
      await endSessions(old);
      await catchUp(old);
      const positions = await old.query<{ format: string }>(raw(await deployed('positions.sql')));
      await owner.query(raw(positions.map(({ format }) => format).join('')));
      life.primary = to;
      await way.lead(to.url());
      await owner.query(raw('drop subscription scrip'));
    }),
  );
}

async function subscribe(old: Queries, owner: Queries, oldUrl: string): Promise<void> {
  await old.query(
    raw('create publication scrip for tables in schema scrip with (publish_via_partition_root = true)'),
  );
  await owner.query(raw(await deployed('empty.sql')));
  await owner.query(
    raw(`create subscription scrip connection '${oldUrl}' publication scrip with (streaming = off)`),
  );
  while ((await owner.query(sql`select from pg_subscription_rel where srsubstate <> 'r'`)).length > 0)
    await sleep(LOOK_MS);
  await owner.query(raw('analyze'));
}

/** Ends all sessions but this one, and waits until they have ended. That of the subscriber is no client. */
async function endSessions(old: Queries): Promise<void> {
  const end = sql`
select pg_terminate_backend(pid) from pg_stat_activity
where backend_type = 'client backend' and pid <> pg_backend_pid()`;
  while ((await old.query(end)).length > 0) await sleep(CLOSE_LOOK_MS);
}

/**
 * Waits until the subscriber has all that its server has written up to now.
 * @returns how long it took, in milliseconds
 */
async function catchUp(old: Queries): Promise<number> {
  const from = performance.now();
  const [now] = await old.query<{ at: string }>(sql`select pg_current_wal_lsn()::text as at`);
  const behind = sql`
select from pg_replication_slots
where slot_type = 'logical' and not temporary and confirmed_flush_lsn < ${now?.at}::pg_lsn`;
  while ((await old.query(behind)).length > 0) await sleep(CLOSE_LOOK_MS);
  return performance.now() - from;
}

/** Redeems by the client, which repeats a call until it knows the outcome. */
function clientOf(load: Load, baseUrl: string, failures: string[]): (one: Sent) => Promise<void> {
  return async (one) => {
    const [keyId = '', secret = ''] = atob(one.merchant.authorization.replace('Basic ', '')).split(':');
    const send = async (...request: Parameters<typeof fetch>) =>
      (await load.attempt(one, () => fetch(...request))).response;
    const client = new Scrip({ baseUrl, keyId, secret, variant: 'a', fetch: send });
    const { code, pin } = one.voucher as Voucher;
    await client
      .redeem({ code, pin, amount: one.minor / 100, reference: one.reference })
      .catch((error: Error) => void failures.push(`${one.reference}: ${error.message}`));
  };
}

/** Moves the books, in which nothing is booked, to a zone in which a day ends at the next full hour. */
async function endDaySoon({ service, ownerUrl }: Opened): Promise<void> {
  const hours = (24 - new Date(Date.now() + HOUR_MS).getUTCHours()) % 24;
  const ahead = hours > 12 ? hours - 24 : hours;
  // The names of these zones count westwards.
  const zone = `Etc/GMT${ahead > 0 ? '-' : '+'}${Math.abs(ahead)}`;
  await setBooks(operatorOf(service), { zone, graceMinutes: 5 });
  const owner = await openOwner(ownerUrl);
  await owner.query(sql`delete from scrip.book_days`).finally(() => owner.close());
}

const isClosed = (server: Server) =>
  asOwner(
    server,
    async (owner) => (await owner.query(sql`select from scrip.book_closings where rows > 0`)).length > 0,
  );

/** Runs all steps one after the other, with calm between them, until the time is over. */
async function live(life: Life, load: Load, untilMs: number): Promise<Map<string, number>> {
  const seen = new Map<string, number>([[LONGEST, 0]]);
  const note = (name: string, value: number) =>
    void seen.set(name, Math.max(seen.get(name) ?? 0, Math.round(value)));
  const noteWait = (name: string) => {
    const ms = load.takeLongestGapMs();
    note(`${name}: longest wait of a merchant (ms)`, ms);
    note(LONGEST, ms);
  };
  const names = Object.keys(STEPS);
  for (const [done, name] of names.entries()) {
    await sleep(Math.max(0, untilMs - performance.now()) / (names.length - done + 1));
    noteWait('between the steps');
    const from = performance.now();
    const before = load.unanswered;
    process.stdout.write(`${new Date().toISOString()} ${name}\n`);
    await opened(() => STEPS[name]?.(life) ?? Promise.resolve());
    note(`${name}: seconds`, (performance.now() - from) / 1_000);
    // Calls that are under way at the end of the step are not answered yet.
    await sleep(CALM_MS);
    note(`${name}: calls without an answer`, load.unanswered - before);
    noteWait(name);
  }
  await sleep(Math.max(0, untilMs - performance.now()));
  noteWait('between the steps');
  return seen;
}

/** Measures what the machine gives, and sends a part of that from then on, or `CALLS_PER_SECOND`. */
async function pace(load: Load): Promise<void> {
  await sleep(MEASURED_MS);
  const before = load.requests;
  await sleep(MEASURED_MS);
  const perSecond = (load.requests - before) / (MEASURED_MS / 1_000);
  const paced = Math.min(CALLS_PER_SECOND, perSecond * PART);
  load.pace(paced);
  process.stdout.write(
    `the machine answers ${Math.round(perSecond)} calls a second, and is sent ${Math.round(paced)}\n`,
  );
}

export async function soakNeverClosed(options: Options): Promise<void> {
  const programs = await findPrograms();
  if (!programs) {
    process.stdout.write(
      'skipped: no PostgreSQL with pg_basebackup is installed below /usr/lib/postgresql\n',
    );
    return;
  }
  if (process.env['SOAK_PORT'] === undefined) return withSocket(options);
  const random = new Random(options.seed);
  const { life, merchants, hooks } = await begin(programs, random);
  const baseUrl = `http://127.0.0.1:${process.env['SOAK_PORT']}`;
  const load = new Load(random.fork(), [baseUrl], merchants, ORDERS);
  for (const { process } of life.services) process.start();
  for (const { metricsPort } of life.services) while (!(await isReady(metricsPort))) await sleep(LOOK_MS);
  await load.prepare();
  await asService(life, (service) => hooks.warn(operatorOf(service.service), merchants));
  const failures: string[] = [];
  load.start();
  for (let each = 0; each < CLIENTS; each++) load.startClient(clientOf(load, baseUrl, failures));
  await pace(load);
  const from = performance.now();
  const minutes = options.minutes * MINUTE_MS;
  const isDayDue = HOUR_MS - (Date.now() % HOUR_MS) + CLOSES_AFTER_MS < minutes;
  const seen = await live(life, load, from + minutes);
  await load.stop();
  const isDayClosed = await isClosed(life.primary);
  const { unanswered } = load;
  const seconds = (performance.now() - from) / 1_000;
  const redeemed = load.sent.filter(
    ({ operation, sendings }) =>
      operation === 'redeem' && sendings.some(({ id, to }) => id !== null && to >= from),
  ).length;
  seen.set('seconds', Math.round(seconds));
  seen.set('redemptions per second', Math.round(redeemed / seconds));
  seen.set(isDayDue ? 'days closed' : 'days closed (none was due)', Number(isDayClosed));
  seen.set('failures of the client', failures.length);
  seen.set('calls without an answer, or with 91', unanswered);
  const proof = await asService(life, ({ service }) =>
    prove(service, life.primary.url(), { load, hooks, baseUrl }),
  );
  await report(seen, load, proof, life.settings['SOAK_LOG'] ?? '');
  if (failures.length > 0) throw new Error(`the client failed: ${failures.slice(0, 5).join('; ')}`);
  if (unanswered > UNANSWERED_MAX * load.requests)
    throw new Error(`${unanswered} of ${load.requests} calls were not answered`);
  if (isDayDue && !isDayClosed) throw new Error('the day was not closed');
  if ((seen.get(LONGEST) ?? 0) > GAP_MAX_MS) throw new Error('a merchant waited too long');
}

/** Runs this soak again, in a process that has inherited a port. */
async function withSocket({ minutes, seed }: Options): Promise<void> {
  const again = [process.execPath, RUN, 'never-closed', '--minutes', String(minutes), '--seed', String(seed)];
  const child = spawn('python3', ['-c', WITH_SOCKET, ...again], { stdio: 'inherit' });
  const [status] = await once(child, 'exit');
  if (status !== 0) throw new Error('the soak failed');
}

/** Opens the service in this process, as an operator who has the present settings. */
async function asService<T>(life: Pick<Life, 'settings' | 'way'>, work: (open: Opened) => Promise<T>) {
  const open = await openService(readConfig(commandSettings(life)), {
    name: 'scrip-soak',
    create: true,
    log: createLogger('fatal'),
  });
  return work(open).finally(() => open.close());
}

async function begin(programs: Programs, random: Random) {
  const folder = await temporaryFolder('scrip-never-closed-');
  const data = await makeDataFolder(folder);
  const primary = new Server(programs, join(data, 'one'), await freePort());
  const standby = new Server(programs, join(data, 'two'), await freePort());
  await primary.create([
    'wal_level = logical',
    'max_connections = 200',
    `synchronous_standby_names = 'ANY 1 (${STANDBY_NAME})'`,
  ]);
  await primary.start();
  await standby.follow(primary);
  await standby.start();
  const way = await Way.open(primary.url());
  const settings: Record<string, string> = {
    SCRIP_KEYS: newKeyRing().replace('\n', ','),
    SCRIP_DATA_DIR: folder,
    SCRIP_LOG_LEVEL: 'warn',
    SOAK_LOG: keepLog(folder),
    SCRIP_WEBHOOK_ALLOW_PRIVATE: 'true',
    SCRIP_DRAIN_SECONDS: '1',
  };
  const { merchants, hooks } = await asService({ settings, way }, async (open) => {
    const { service } = open;
    await endDaySoon(open);
    const merchants = await createMerchants(service);
    return { merchants, hooks: await Hooks.open(operatorOf(service), merchants, random.fork()) };
  });
  await asOwner(primary, (owner) => owner.query(raw(`alter role ${SERVICE} login password 'first'`)));
  settings['SCRIP_DATABASE_URL'] = addressOf(way, SERVICE, 'first');
  const services = await Promise.all(
    [1, 2].map(async (number) => {
      const metricsPort = await freePort();
      const own = { ...settings, SCRIP_METRICS_PORT: String(metricsPort) };
      const args = ['serve', '--processes', '1'];
      return { process: new Supervised(`service ${number}`, args, own, 0, SOCKET), metricsPort };
    }),
  );
  const life: Life = { folder, programs, way, services, settings, standby, primary };
  return { life, merchants, hooks };
}
