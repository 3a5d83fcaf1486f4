import { existsSync } from 'node:fs';
import { flushCalls } from '../api-keys/guesses.ts';
import { flushRefusals } from '../audit/refusals.ts';
import { type Config, readConfig } from '../config.ts';
import { createService, type Operator, type Service } from '../context.ts';
import { readBuckets } from '../db/buckets.ts';
import { openClock, type ServiceClock } from '../db/clock.ts';
import { requireOneServer } from '../db/distribute.ts';
import { archiveLog, type Embedded, findEmbedded, openEmbedded } from '../db/embedded.ts';
import {
  isLockTimeout,
  isOfTls,
  isUnavailable,
  nodeOf,
  refusalOf,
  STANDBY,
  StartError,
  sqlState,
} from '../db/errors.ts';
import { hostAddresses, hostsOf } from '../db/health.ts';
import { hasSchema, migrate } from '../db/migrate.ts';
import { createPartitions } from '../db/partitions.ts';
import { openDatabase, openReader, type Queries } from '../db/pool.ts';
import { withWorkers } from '../db/workers.ts';
import { keyFile, ownKeyFile } from '../keyring/file.ts';
import { checkBeforeMigration, isExposed, openKeyRing } from '../keyring/store.ts';
import { createLogger, type Logger } from '../log.ts';
import { checkDurability } from '../monitor/status.ts';
import { ensureDefaultProduct } from '../products/products.ts';
import { flushDeclines } from '../vouchers/declines.ts';
import { deploymentOf } from './deployment.ts';
import { explainOutcome, interrupted, unavailable, unknownOutcome } from './output.ts';
import { listenForStop, type Stop } from './signals.ts';
import { actor, readVersion } from './usage.ts';

/**
 * Opens the key ring, which a first start creates. With an external database it is easily lost, so the log
 * shows where it is.
 */
async function openKeys(db: Service['db'], config: Config, log: Logger): Promise<Service['keys']> {
  const { path: file } = keyFile(config);
  const isElsewhere = config.databaseUrl !== undefined && ownKeyFile(config) !== undefined;
  const existed = existsSync(file);
  const keys = await openKeyRing(db, config);
  if (await isExposed(config))
    log.warn({ file }, 'the key file can be read by other accounts: chmod 600, then scrip keyring rotate');
  if (isElsewhere && !existed) {
    log.warn(
      { file },
      `SCRIP_KEYS is not set, so a new key ring was written to ${file}. Back this file up apart from the database: ` +
        'without it no code can be read again. Every other process needs the same keys (`scrip keyring make` prints ' +
        'a key for SCRIP_KEYS)',
    );
  }
  return keys;
}

/** A service that is ready, and a function that closes everything. */
export type Opened = {
  readonly service: Service;
  readonly config: Config;
  /** The address of the account that migrates. */
  readonly ownerUrl: string;
  readonly clock: ServiceClock;
  /**
   * Closes everything, the embedded database last. It waits for work in progress until `urged` resolves.
   * @returns whether it stopped waiting early: something may still keep the process alive
   */
  close(urged?: Promise<void>): Promise<boolean>;
};

type Opening = {
  /** The name of the database's connections. */
  readonly name: string;
  /** Whether a missing database is created. A command with a mistyped or forgotten setting must not. */
  readonly create: boolean;
  /** Whether it books, so that the partitions of today must be there. */
  readonly books?: boolean;
  readonly log: Logger;
  /**
   * Whether this is the service itself. It decides where the log of the database is archived, which a command
   * does not change, and it starts only on a durable server.
   */
  readonly isService?: boolean;
};

/**
 * Opens the database (the embedded one, or that of SCRIP_DATABASE_URL), applies the migrations, and opens the
 * key ring.
 * @throws StartError with one clear line, after everything was closed again
 */
export async function openService(
  config: Config,
  { name, create, log, isService = false, books = isService }: Opening,
): Promise<Opened> {
  let embedded: Embedded | undefined;
  let service: Service | undefined;
  const close = async (urged?: Promise<void>) => {
    const inOrder = closeService(service).then(() => false);
    const hadToHurry = await Promise.race([inOrder, ...(urged ? [urged.then(() => true)] : [])]);
    await embedded?.release();
    return hadToHurry;
  };
  try {
    if (!create) await findDatabase(config);
    if (config.databaseUrl === undefined) embedded = await openEmbedded(config.dataDir, log);
    const url = embedded?.url ?? (config.databaseUrl as string);
    const ownerUrl = embedded?.ownerUrl ?? url;
    const applied = await migrate(ownerUrl, async (owner) => {
      if (!create) await requireSchema(owner, url);
      await checkBeforeMigration(owner, config, false);
    });
    // A first start does not list the migrations: its output would begin with a list of files.
    const isNew = applied[0]?.startsWith('001-');
    if (applied.length > 0) log[isNew ? 'debug' : 'info']({ applied }, 'migrations applied');
    const waits = { isPatient: !isService }; // a till is answered soon, a command waits for a busy server
    let db = openDatabase(url, name, waits);
    const readDb =
      config.readDatabaseUrl === undefined ? undefined : openReader(config.readDatabaseUrl, name, waits);
    try {
      if (isService) await checkDurability(db);
      if (readDb) await requireOneServer(db);
      db = await withWorkers(db, name, waits);
      const keys = await openKeys(db, config, log);
      if (isService && embedded) await archiveLog(embedded, config.archiveDir, keys);
      await ensureDefaultProduct(db, config.currency);
      const clock = await openClock(db);
      if (books) await createAbsent(db, clock.now(), log);
      const buckets = await readBuckets(db);
      const counts = isService && config.metricsPort !== undefined;
      const metrics = counts ? (await import('../monitor/metrics.ts')).createMetrics() : undefined;
      const traces = isService && config.tracesEndpoint !== undefined;
      const tracing = traces
        ? (await import('../monitor/tracing.ts')).startTracing(readVersion(), log)
        : undefined;
      service = createService({
        db,
        readDb: readDb ?? db,
        buckets,
        keys,
        log,
        clock: clock.now,
        wallClock: () => new Date(),
        allowPrivateWebhooks: config.webhookAllowPrivate,
        metrics,
        hasMetrics: config.metricsPort !== undefined,
        deployment: () => deploymentOf(config),
        tracing,
      });
      return { service, config, ownerUrl, clock, close };
    } catch (error) {
      await Promise.all([db.close(), readDb?.close()]);
      throw error;
    }
  } catch (error) {
    await close();
    throw config.databaseUrl === undefined ? error : explain(error, config.databaseUrl);
  }
}

/**
 * Creates the partitions that maintenance would have created. After months without a service, the first rows
 * would otherwise go to the default partitions, and stay there. Beside a long reader it starts without them,
 * and maintenance tries again.
 */
async function createAbsent(db: Queries, now: Date, log: Logger): Promise<void> {
  await createPartitions(db, now, now).catch((error: unknown) => {
    if (!isLockTimeout(error)) throw error;
    log.warn('a long reader delays the partitions of the next months: maintenance tries again');
  });
}

/** Returns the address of the database in use. @throws StartError if it is not there yet */
export async function findDatabase({ databaseUrl, dataDir }: Config): Promise<string> {
  const address = databaseUrl ?? (await findEmbedded(dataDir));
  if (address !== undefined) return address;
  throw new StartError(
    `there is no Scrip database in ${dataDir}: run \`scrip serve\` or \`scrip migrate\` first, or check SCRIP_DATA_DIR and SCRIP_DATABASE_URL`,
  );
}

async function requireSchema(owner: Queries, url: string): Promise<void> {
  if (await hasSchema(owner)) return;
  throw new StartError(
    `the database at ${hostsOf(url)} holds nothing of Scrip: run \`scrip serve\` or \`scrip migrate\` first, or check SCRIP_DATABASE_URL`,
  );
}

/**
 * Runs work on the database in use, as its owner. Ctrl-C does not interrupt it, so that nothing is left
 * running or half done.
 */
export async function asOwner<T>(
  config: Config,
  work: (ownerUrl: string, url: string) => Promise<T>,
): Promise<T> {
  listenForStop();
  const { databaseUrl, dataDir } = config;
  if (databaseUrl !== undefined)
    return work(databaseUrl, databaseUrl).catch((error: unknown) => {
      throw explain(error, databaseUrl);
    });
  const embedded = await openEmbedded(dataDir, troubleLog(config));
  try {
    return await work(embedded.ownerUrl, embedded.url);
  } finally {
    await embedded.release();
  }
}

async function closeService(service: Service | undefined): Promise<void> {
  if (!service) return;
  try {
    await flushDeclines(service);
    await flushCalls(service);
    await flushRefusals(service, true);
  } catch (error) {
    // Without the database nothing can be written, but the rest must still be closed.
    service.log.warn({ error: (error as Error).message }, 'the last calls were not counted');
  }
  await Promise.all([
    service.tracing?.stop(),
    service.db.close(),
    ...(service.readDb === service.db ? [] : [service.readDb.close()]),
  ]);
}

/** Describes failures that an operator can repair in one line, without the password of the address. */
function explain(error: unknown, url: string): unknown {
  if (error instanceof StartError) return error;
  const host = hostsOf(url);
  const { pathname } = new URL(hostAddresses(url)[0] as string);
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  if (code === STANDBY)
    return unavailable(
      `the database at ${host} takes no writes: it is a standby, its recovery has not ended (pg_promote), or default_transaction_read_only is on, as providers set it on a full disk`,
    );
  // While it runs, a process waits for the password. At the start, somebody has to correct it.
  if (code === '28P01' || code === '28000')
    return new StartError(`the database at ${host} refuses the user or password of SCRIP_DATABASE_URL`);
  const node = isUnavailable(error) ? nodeOf(error) : undefined;
  if (node !== undefined && node !== host)
    return unavailable(
      `the node ${node} of the Citus cluster cannot be reached (${code ?? message}): start it, or promote its standby`,
    );
  if (isOfTls(error))
    return unavailable(
      `the database at ${host} cannot be reached by TLS (${code ?? message}): check its certificate, and sslmode and sslrootcert of SCRIP_DATABASE_URL`,
    );
  if (code === '3D000')
    return new StartError(
      `there is no database "${pathname.slice(1)}" at ${host}: create it, or check SCRIP_DATABASE_URL`,
    );
  // With a state, the database has answered: the address is right.
  if (isUnavailable(error))
    return unavailable(
      sqlState(error) === undefined
        ? `the database at ${host} cannot be reached (${code ?? message}): check SCRIP_DATABASE_URL`
        : `the database at ${host} ${refusalOf(error)}: ${message}`,
    );
  return error;
}

/** Runs a command that only reads. A signal ends it. */
export async function withService(run: (service: Service, config: Config) => Promise<void>): Promise<void> {
  await untilStopped((service, config, stop) =>
    Promise.race([stop.asked.then(() => interrupted('interrupted')), run(service, config)]),
  );
}

/**
 * Runs a command that changes data. After a signal during the change, it waits for the outcome. After a
 * second signal it does not wait. The outcome is then reported as unknown, as after a lost connection.
 */
export async function withOperator(
  run: (operator: Operator, config: Config) => Promise<void>,
): Promise<void> {
  await untilStopped(async (service, config, stop) => {
    void stop.asked.then(() => {
      if (process.stderr.isTTY)
        process.stderr.write('scrip: waiting for the outcome; Ctrl-C again does not wait\n');
    });
    await Promise.race([
      run({ service, actor: actor() }, config).catch(explainOutcome),
      stop.urged.then(() => unknownOutcome('the command was interrupted')),
    ]);
  }, true);
}

/** Runs a command that ends in an orderly way when it is asked to stop. */
export async function untilStopped(
  run: (service: Service, config: Config, stop: Stop) => Promise<void>,
  books = false,
): Promise<void> {
  const stop = listenForStop();
  const config = readConfig();
  const { log, flush } = commandLog(config);
  const { service, close } = await openService(config, { name: 'scrip-command', create: false, books, log });
  let isDone = false;
  try {
    if (stop.isAsked()) interrupted();
    await run(service, config, stop);
    flush();
    isDone = true;
  } finally {
    const hadToHurry = await close(stop.urged);
    if (hadToHurry && isDone) process.exit();
  }
}

/** Returns the log of a command, which shows only warnings and errors. */
export const troubleLog = ({ logLevel }: Config, destination?: Parameters<typeof createLogger>[1]): Logger =>
  createLogger(logLevel === 'info' ? 'warn' : logLevel, destination);

/**
 * Returns the log of a command. With `--json` it is held back, so that stderr contains only one JSON document
 * after a failure.
 */
function commandLog(config: Config): { log: Logger; flush: () => void } {
  if (!process.argv.includes('--json')) return { log: troubleLog(config), flush: () => {} };
  const lines: string[] = [];
  const log = troubleLog(config, { write: (line) => void lines.push(line) });
  return { log, flush: () => void process.stderr.write(lines.join('')) };
}
