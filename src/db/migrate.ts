import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { adaptFunctions, isDistributed } from './distribute.ts';
import { StartError, sqlState } from './errors.ts';
import { finds, openOwner, type Queries } from './pool.ts';
import { requireOwnSession, requireSessions } from './pooler.ts';
import { SERVICE_ROLE } from './session.ts';
import { raw, splitStatements, sql } from './sql.ts';

const FOLDER = new URL('../../sql/', import.meta.url);

type Migration = {
  readonly version: number;
  readonly name: string;
  readonly text: string;
  readonly digest: string;
  /** The oldest version of the schema whose programs also work on the schema of this migration. */
  readonly worksFrom: number;
};

/**
 * Marks a migration that only adds. Processes of the previous release can then continue while others are
 * already upgraded. Without the line, programs that do not know the migration refuse to start.
 */
const WORKS_FROM = /^-- Works from: (\d{3})$/m;
/** How long a migration waits for the locks that it needs. Tills wait behind it meanwhile. */
const LOCK_TIMEOUT_MS = 2_000;
/** How often it tries again after a pause. */
const LOCK_ATTEMPTS = 30;
const LOCK_PAUSE_MS = 1_000;

/** Reads the numbered files of a folder, in order. */
async function readMigrations(folder: URL): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{3}-.*\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, folder), 'utf8');
      return {
        version: Number(name.slice(0, 3)),
        name,
        text,
        digest: createHash('sha256').update(text).digest('hex'),
        worksFrom: Number(WORKS_FROM.exec(text)?.[1] ?? name.slice(0, 3)),
      };
    }),
  );
}

/**
 * Brings the schema up to date. If two processes do so at once, one waits for the other. If no migration is
 * pending, an account without the owner's rights is enough.
 * @param url of the schema's owner
 * @param before runs on the owner's connection before pending migrations are applied
 * @param wanted the migrations of a dump, if the schema is made for it; by default all migrations
 * @param folder the migrations, which end with `/`
 * @returns the names of the migrations applied
 * @throws StartError if the schema is newer than this program, was changed, or this account may not
 *   alter it; behind a pooler that cannot serve it
 */
export async function migrate(
  url: string,
  before?: (owner: Queries) => Promise<void>,
  wanted?: readonly Pick<Migration, 'version' | 'name' | 'digest'>[],
  folder = FOLDER,
): Promise<string[]> {
  const migrations = select(await readMigrations(folder), wanted);
  const owner = await openOwner(url);
  try {
    if (pending(await readApplied(owner), migrations).length === 0) {
      await requireSessions(owner, url);
      return [];
    }
    await requireOwnSession(url, 'migrations need');
    // The server ends the migration of a process that was killed, instead of finishing its statement first.
    await owner.query(raw(`set client_connection_check_interval = '1s'`));
    // One process migrates; the others wait here and then find nothing pending. The lock ends with the
    // connection. No other lock has this number.
    await owner.query(sql`select pg_advisory_lock(7311990001)`);
    await before?.(owner);
    await createRoles(owner);
    return await applyInTurns(owner, migrations);
  } catch (error) {
    if (sqlState(error) === '42501') {
      throw new StartError(
        'the database is not up to date, and this account may not alter it: run `scrip migrate` as its owner',
      );
    }
    throw error;
  } finally {
    await owner.close();
  }
}

/** Applies the migrations in one transaction that never makes tills wait for long. */
async function applyInTurns(owner: Queries, migrations: readonly Migration[]): Promise<string[]> {
  for (let left = LOCK_ATTEMPTS; ; left--) {
    try {
      return await apply(owner, migrations);
    } catch (error) {
      if (sqlState(error) !== '55P03') throw error;
      if (left === 1)
        throw new StartError(
          'the migrations need a lock that something else has held for a minute: end long statements, and try again',
        );
      await sleep(LOCK_PAUSE_MS);
    }
  }
}

/** Selects the migrations of a dump, which must be known to this program. */
function select(
  migrations: Migration[],
  wanted: readonly Pick<Migration, 'version' | 'name' | 'digest'>[] | undefined,
): Migration[] {
  if (!wanted) return migrations;
  for (const { version, name, digest } of wanted) {
    const own = migrations.find((each) => each.version === version);
    if (own?.digest !== digest)
      throw new StartError(
        `the dump has a schema (${name}) that this version of Scrip does not know: load it by the version that made it, or a later one`,
      );
  }
  return migrations.slice(0, wanted.length);
}

async function apply(owner: Queries, migrations: readonly Migration[]): Promise<string[]> {
  await owner.query(raw('begin'));
  try {
    await owner.query(raw('create schema if not exists scrip; set local search_path to scrip'));
    await owner.query(raw(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`));
    await owner.query(
      raw(`create table if not exists scrip.migrations (
        version integer primary key, name text not null, digest text not null, works_from integer not null,
          applied_at timestamptz not null default now())`),
    );
    // On a Citus coordinator the schema stays local until `--distribute`. After that every migration reaches
    // the workers, one statement at a time, since Citus forwards each statement as it was sent. Other servers
    // ignore this setting.
    const distributed = await isDistributed(owner);
    await owner.query(
      raw(
        distributed
          ? `set local citus.multi_shard_modify_mode = 'sequential'`
          : 'set local citus.enable_ddl_propagation = off',
      ),
    );
    const todo = pending(await readApplied(owner), migrations);
    for (const { version, name, text, digest, worksFrom } of todo) {
      for (const statement of distributed ? splitStatements(text) : [text]) await owner.query(raw(statement));
      await owner.query(
        sql`insert into scrip.migrations (version, name, digest, works_from)
          values (${version}, ${name}, ${digest}, ${worksFrom})`,
      );
    }
    if (distributed && todo.length > 0) await adaptFunctions(owner);
    await owner.query(raw(`grant select on scrip.migrations to ${SERVICE_ROLE}`));
    await owner.query(raw('commit'));
    return todo.map((migration) => migration.name);
  } catch (error) {
    await owner.query(raw('rollback'));
    throw error;
  }
}

type Applied = { version: number; name: string; digest: string; worksFrom: number };

/** Whether a database holds the schema of Scrip, of whichever version. */
export const hasSchema = (owner: Queries) =>
  finds(owner, sql`select where to_regclass('scrip.migrations') is not null`);

async function readApplied(owner: Queries): Promise<Applied[]> {
  if (!(await hasSchema(owner))) return [];
  return owner.query<Applied>(
    sql`select version, name, digest, works_from as "worksFrom" from scrip.migrations order by version`,
  );
}

/**
 * Returns the migrations that are not yet applied.
 * @throws StartError for a schema on which this program cannot work
 */
function pending(applied: readonly Applied[], migrations: readonly Migration[]): Migration[] {
  const newest = migrations.at(-1)?.version ?? 0;
  const beyond = applied.find(({ version, worksFrom }) => version > newest && worksFrom > newest);
  if (beyond) {
    throw new StartError(
      `the database has a newer schema (${beyond.name}) than this version of Scrip can work on (up to ${newest}): use the newer version`,
    );
  }
  for (const { version, name, digest } of applied.filter((each) => each.version <= newest)) {
    const own = migrations.find((migration) => migration.version === version);
    if (own?.digest !== digest)
      throw new StartError(`migration ${name} was changed after it had been applied to this database`);
  }
  return migrations.filter(({ version }) => !applied.some((done) => done.version === version));
}

/** Roles belong to the whole server, so the migration of another database may create them first. */
async function createRoles(owner: Queries): Promise<void> {
  await owner.query(
    raw(`do $$ begin
      if not exists (select from pg_roles where rolname = '${SERVICE_ROLE}') then
        create role ${SERVICE_ROLE} nologin;
      end if;
    exception when duplicate_object or unique_violation then null;
    end $$`),
  );
  // The account that migrates also works as the service, if no other account is set up for it.
  await owner.query(
    raw(`do $$ begin
      if not pg_has_role(current_user, '${SERVICE_ROLE}', 'member') then
        execute format('grant ${SERVICE_ROLE} to %I', current_user);
      end if;
    end $$`),
  );
}
