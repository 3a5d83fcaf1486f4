import type { Config } from '../config.ts';
import { readConfig } from '../config.ts';
import type { Operator, Service } from '../context.ts';
import { type Embedded, openEmbedded } from '../db/embedded.ts';
import { isUnavailable } from '../db/errors.ts';
import { hostAddresses, hostsOf } from '../db/hosts.ts';
import { checkBeforeMigration, isExposed, keyFile, openKeyRing } from '../db/key-ring.ts';
import { migrate } from '../db/migrate.ts';
import { openDatabase } from '../db/pool.ts';
import { StartError } from '../db/start-error.ts';
import { createLogger } from '../log.ts';
import { flushCalls } from '../merchants/guessing.ts';
import { ensureDefaultProduct } from '../merchants/products.ts';
import { actor } from './actor.ts';
import { fail } from './output.ts';
import { listenForStop, type Stop } from './stop.ts';

/** A service that is ready to work, with what has to be closed after it. */
export type Opened = {
  readonly service: Service;
  readonly config: Config;
  /**
   * Closes everything, the embedded database last. What is under way is waited for until `hurried` settles.
   * @returns whether it had to hurry: something may then still hold the process
   */
  close(hurried?: Promise<void>): Promise<boolean>;
};

/**
 * Opens the database (the embedded one, or that of SCRIP_DATABASE_URL), brings its schema up to date, and opens the key ring.
 * @throws StartError, one clear line, with everything closed that was opened
 */
export async function openService(
  name = 'scrip',
  config = readConfig(),
  log = createLogger(config.logLevel),
): Promise<Opened> {
  let embedded: Embedded | undefined;
  let service: Service | undefined;
  const close = async (hurried?: Promise<void>) => {
    const inOrder = closeService(service).then(() => false);
    const hadToHurry = await Promise.race([inOrder, ...(hurried ? [hurried.then(() => true)] : [])]);
    await embedded?.release();
    return hadToHurry;
  };
  try {
    if (config.databaseUrl === undefined) embedded = await openEmbedded(config.dataDir, log);
    const url = embedded?.url ?? (config.databaseUrl as string);
    const applied = await migrate(embedded?.ownerUrl ?? url, (owner) => checkBeforeMigration(owner, config, false));
    if (applied.length > 0) log.info({ applied }, 'schema brought up to date');
    const db = openDatabase(url, name);
    try {
      const keys = await openKeyRing(db, config);
      if (await isExposed(config))
        log.warn({ file: keyFile(config) }, 'the key file can be read by other accounts: chmod 600');
      await ensureDefaultProduct(db, config.currency);
      service = { db, keys, log, clock: () => new Date() };
    } catch (error) {
      await db.close();
      throw error;
    }
    return { service, config, close };
  } catch (error) {
    await close();
    throw config.databaseUrl === undefined ? error : explain(error, config.databaseUrl);
  }
}

/**
 * Brings the schema up to date and does nothing else: who has the owner's account need not have the key ring. One that is given, and
 * is not that of the database, is told all the same.
 */
export async function migrateOnly(): Promise<string[]> {
  // A Ctrl-C leaves nothing running, and nothing half done.
  listenForStop();
  const config = readConfig();
  let embedded: Embedded | undefined;
  try {
    if (config.databaseUrl === undefined) embedded = await openEmbedded(config.dataDir, createLogger('warn'));
    const url = embedded?.ownerUrl ?? (config.databaseUrl as string);
    return await migrate(url, (owner) => checkBeforeMigration(owner, config, true));
  } catch (error) {
    throw config.databaseUrl === undefined ? error : explain(error, config.databaseUrl);
  } finally {
    await embedded?.release();
  }
}

async function closeService(service: Service | undefined): Promise<void> {
  if (!service) return;
  try {
    await flushCalls(service);
  } catch (error) {
    // Without its database there is nothing left to write to, and the rest has to be closed all the same.
    service.log.warn({ error: (error as Error).message }, 'the last calls were not counted');
  }
  await service.db.close();
}

/** What the operator can do something about, said in one line, and never with the address's password. */
function explain(error: unknown, url: string): unknown {
  if (error instanceof StartError) return error;
  const host = hostsOf(url);
  const { pathname } = new URL(hostAddresses(url)[0] as string);
  const { code, message } = (error ?? {}) as { code?: string; message?: string };
  if (isUnavailable(error))
    return new StartError(`the database at ${host} cannot be reached (${code ?? message}): check SCRIP_DATABASE_URL`);
  if (code === '28P01' || code === '28000')
    return new StartError(`the database at ${host} refuses the user or password of SCRIP_DATABASE_URL`);
  if (code === '3D000')
    return new StartError(
      `there is no database "${pathname.slice(1)}" at ${host}: create it, or check SCRIP_DATABASE_URL`,
    );
  return error;
}

/** Runs a command on an open service and closes it after, whatever happens; a Ctrl-C leaves nothing running. */
export async function withService(run: (service: Service, config: Config) => Promise<void>): Promise<void> {
  await untilStopped((service, config, stop) =>
    Promise.race([stop.asked.then(() => fail('interrupted')), run(service, config)]),
  );
}

/** Like `withService`, for a command that changes something: with who changes it, for the audit. */
export async function withOperator(run: (operator: Operator, config: Config) => Promise<void>): Promise<void> {
  await withService((service, config) => run({ service, actor: actor() }, config));
}

/** Like `withService`, for a command that has something to leave in order: it ends by itself once it is asked to stop. */
export async function untilStopped(
  run: (service: Service, config: Config, stop: Stop) => Promise<void>,
): Promise<void> {
  const stop = listenForStop();
  const config = readConfig();
  // A command says what it has to say itself; of the log only trouble is of interest beside it.
  const log = createLogger(config.logLevel === 'info' ? 'warn' : config.logLevel);
  const opened = await openService('scrip-command', config, log);
  try {
    if (stop.isAsked()) fail('interrupted');
    await Promise.race([run(opened.service, opened.config, stop), stop.hurried.then(() => fail('interrupted'))]);
  } finally {
    if (await opened.close(stop.hurried)) process.exit(1);
  }
}
