import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { withDraft } from '../private-file.ts';
import { isDistributed } from './distribute.ts';
import { type Authenticator, requireAuthentic, type Writer } from './embedded.ts';
import { StartError, sqlState } from './errors.ts';
import { hasSchema, migrate } from './migrate.ts';
import { connectOwner, finds, type Queries, queriesOn } from './pool.ts';
import { requireStopped } from './session.ts';
import { raw, sql } from './sql.ts';

/**
 * A dump contains all rows of Scrip as text that every version of PostgreSQL reads, to be loaded into a new
 * database. The embedded PostgreSQL does not include its own programs for this.
 */

const FORMAT = 1;
const MANIFEST = 'manifest.json';
/** Proves who wrote the manifest, which holds the digest of each other file. */
const TAG = `${MANIFEST}.hmac`;
const textToSign = (manifest: string): string => `dump\n${manifest}`;

type DumpedTable = {
  /** The quoted name, with its schema. */
  readonly name: string;
  readonly columns: readonly string[];
  readonly file: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
};

type DumpManifest = {
  readonly format: typeof FORMAT;
  /** The version of Scrip. */
  readonly version: string;
  readonly takenAt: string;
  readonly postgres: string;
  readonly migrations: readonly {
    readonly version: number;
    readonly name: string;
    readonly digest: string;
  }[];
  /** The first month that has a partition; null if there is none. */
  readonly firstMonth: string | null;
  readonly tables: readonly DumpedTable[];
  readonly sequences: readonly { readonly name: string; readonly last: string; readonly isCalled: boolean }[];
};

/**
 * Lists the tables, except that of the migrations, which a load fills by migrating. Parents come before the
 * tables that refer to them. Generated columns are left out.
 */
const listTables = (db: Queries) =>
  db.query<{ name: string; columns: string[] }>(sql`
with recursive tables as (
  select c.oid, quote_ident(n.nspname) || '.' || quote_ident(c.relname) as name,
    array(
      select quote_ident(attname) from pg_attribute
      where attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = ''
      order by attnum
    ) as columns
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = 'scrip' and c.relkind in ('r', 'p') and not c.relispartition
), depths as (
  select oid, 0 as depth from tables
  union
  select f.conrelid, depth + 1 from depths
  join pg_constraint f on f.contype = 'f' and f.confrelid = depths.oid and f.conrelid <> f.confrelid
)
select name, columns from tables join depths using (oid)
where name <> 'scrip.migrations' group by name, columns order by max(depth), name`);

/**
 * Writes all rows into a new folder, from one snapshot. The service must be stopped: later changes would be
 * lost.
 * @param url of the owner
 * @param writer proves who wrote it; undefined without a key ring
 * @throws StartError, one line; the folder is then removed
 */
export async function dump(
  url: string,
  folder: string,
  version: string,
  writer: Authenticator | undefined,
): Promise<DumpManifest> {
  const path = resolve(folder);
  await requireEmpty(path);
  const client = await connectOwner(url);
  try {
    return await withDraft(path, async (draft) => {
      await mkdir(draft, { recursive: true, mode: 0o700 });
      await client.query('begin isolation level repeatable read, read only');
      const manifest = await write(client, draft, version);
      const text = `${JSON.stringify(manifest, undefined, 2)}\n`;
      const files = { [MANIFEST]: text, ...(writer && { [TAG]: `${writer.sign(textToSign(text))}\n` }) };
      for (const [name, content] of Object.entries(files))
        await writeFile(join(draft, name), content, { mode: 0o600, flush: true });
      const handle = await open(draft);
      await handle.sync().finally(() => handle.close());
      // It replaces an empty folder, and nothing else.
      await rename(draft, path);
      return manifest;
    });
  } catch (error) {
    throw explain(error, path);
  } finally {
    await client.end();
  }
}

const isFull = (path: string) => new StartError(`the folder ${path} is not empty: name a new one`);

async function requireEmpty(path: string): Promise<void> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new StartError(`the folder ${path} cannot be used (${error.code}): name another one`);
  });
  if (names.length > 0) throw isFull(path);
}

async function write(client: pg.Client, draft: string, version: string): Promise<DumpManifest> {
  const db = queriesOn(client);
  await requireStopped(db);
  if (await isDistributed(db))
    throw new StartError('a database that is distributed by Citus cannot be dumped: use its own tools');
  const tables: DumpedTable[] = [];
  for (const { name, columns } of await listTables(db)) {
    const file = `${name.replaceAll('"', '')}.copy`;
    const text = `copy (select ${columns.join(', ')} from ${name}) to stdout`;
    tables.push({ name, columns, file, ...(await copyOut(client, text, join(draft, file))) });
  }
  const [found] = await db.query<Pick<DumpManifest, 'postgres' | 'firstMonth'>>(sql`
select current_setting('server_version') as postgres,
  (
    select min(substring(relname from '\\d{4}_\\d{2}$')) from pg_class c
    join pg_namespace n on n.oid = c.relnamespace
    where nspname = 'scrip' and relispartition and relname ~ '_\\d{4}_\\d{2}$'
  ) as "firstMonth"`);
  const sequences: DumpManifest['sequences'][number][] = [];
  for (const { name } of await db.query<{ name: string }>(sql`
select quote_ident(schemaname) || '.' || quote_ident(sequencename) as name from pg_sequences
where schemaname = 'scrip' order by 1`))
    sequences.push(
      ...(await db.query<DumpManifest['sequences'][number]>(sql`
select ${name} as name, last_value::text as last, is_called as "isCalled" from ${raw(name)}`)),
    );
  return {
    format: FORMAT,
    version,
    takenAt: new Date().toISOString(),
    ...(found as NonNullable<typeof found>),
    migrations: await db.query(sql`select version, name, digest from scrip.migrations order by version`),
    tables,
    sequences,
  };
}

/** Copies the rows of a table to a file. Memory does not grow with the table. */
async function copyOut(
  client: pg.Client,
  text: string,
  file: string,
): Promise<Pick<DumpedTable, 'rows' | 'bytes' | 'sha256'>> {
  const hash = createHash('sha256');
  let bytes = 0;
  const measure = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk);
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  const copying = client.query(copyTo(text));
  await pipeline(copying, measure, createWriteStream(file, { mode: 0o600, flush: true }));
  return { rows: copying.rowCount, bytes, sha256: hash.digest('hex') };
}

/** Turns the failure of a dump into one line. */
function explain(error: unknown, path: string): unknown {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'ENOTEMPTY' || code === 'EEXIST') return isFull(path);
  if (code === 'ENOSPC') return new StartError(`the folder ${path} is too full: nothing was kept`);
  if (/^E(ACCES|PERM|ROFS)$/.test(code))
    return new StartError(`the folder ${path} cannot be written (${code})`);
  if (sqlState(error) === '42501')
    return new StartError('this account may not read everything: sign in as the owner of the schema');
  if (sqlState(error) === '42P01') return new StartError('the database holds nothing of Scrip');
  return error;
}

/**
 * Reads the manifest of a dump.
 * @throws StartError for a folder that is not a dump, a dump of a later format, or of somebody else
 */
async function readManifest(folder: string, writer: Writer): Promise<DumpManifest> {
  const read = (name: string) => readFile(join(folder, name), 'utf8').catch(() => undefined);
  const text = await read(MANIFEST);
  if (text === undefined) throw new StartError(`${folder} is not a dump: it has no ${MANIFEST}`);
  const subject = { what: `the dump ${folder}`, instead: 'another copy' };
  await requireAuthentic(writer, subject, textToSign(text), (await read(TAG))?.trim());
  try {
    const manifest = JSON.parse(text) as DumpManifest;
    if (manifest.format === FORMAT && Array.isArray(manifest.tables)) return manifest;
  } catch {}
  throw new StartError(`the dump ${folder} has a ${MANIFEST} that this version of Scrip cannot read`);
}

/** Reads a file, and compares it with its checksum at the end. @throws StartError if it is damaged */
async function* read(folder: string, { file, sha256 }: DumpedTable): AsyncGenerator<Buffer> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(join(folder, file))) {
      hash.update(chunk);
      yield chunk;
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StartError(`the dump ${folder} is damaged: ${file} cannot be read (${code})`);
  }
  if (hash.digest('hex') !== sha256)
    throw new StartError(`the dump ${folder} is damaged: ${file} differs from its checksum`);
}

type Dump = { readonly folder: string; readonly manifest: DumpManifest };

/**
 * Opens a complete dump of an accepted writer, and compares every file with its checksum.
 * @throws StartError, one line
 */
export async function openDump(from: string, writer: Writer): Promise<Dump> {
  const folder = resolve(from);
  const manifest = await readManifest(folder, writer);
  for (const table of manifest.tables) for await (const _ of read(folder, table));
  return { folder, manifest };
}

/**
 * Loads a dump into an empty database in one transaction, and migrates it to the schema of this program.
 * @param url of the owner
 * @throws StartError, one line; then nothing was loaded
 */
export async function load(url: string, { folder, manifest }: Dump): Promise<void> {
  const client = await connectOwner(url);
  try {
    await requireNothing(queriesOn(client));
    await migrate(url, undefined, manifest.migrations);
    await client.query('begin; set local search_path to scrip');
    await fill(client, folder, manifest);
    await client.query('commit');
    await client.query('analyze');
  } catch (error) {
    if (sqlState(error) === '53100')
      throw new StartError('the disk of the database is full: nothing was loaded');
    throw error;
  } finally {
    await client.end();
  }
  await migrate(url);
}

/** Checks that the database was never used. @throws StartError if it was */
async function requireNothing(db: Queries): Promise<void> {
  await requireStopped(db);
  if (!(await hasSchema(db))) return;
  const used = sql`
select from scrip.merchants union all select from scrip.journal union all select from scrip.keyring_keys
limit 1`;
  if (await finds(db, used))
    throw new StartError('the database holds data already, which a load would replace: load into a new one');
}

async function fill(client: pg.Client, folder: string, manifest: DumpManifest): Promise<void> {
  const db = queriesOn(client);
  const { tables, sequences, firstMonth } = manifest;
  if (firstMonth) {
    const from = `${firstMonth.replace('_', '-')}-01T00:00:00Z`;
    await db.query(sql`select create_partition(parent, month) from missing_partitions(${from}, now())`);
  }
  const own = new Map((await listTables(db)).map(({ name, columns }) => [name, new Set(columns)]));
  for (const { name, columns } of tables)
    if (!columns.every((column) => own.get(name)?.has(column)))
      throw new StartError(`the table ${name} of the dump does not fit this version of Scrip`);
  // The migrations insert some rows that are in the dump too.
  await db.query(raw(`truncate ${[...own.keys()].join(', ')}`));
  for (const table of tables) {
    const { name, columns, rows } = table;
    const copying = client.query(copyFrom(`copy ${name} (${columns.join(', ')}) from stdin`));
    await pipeline(read(folder, table), copying);
    if (copying.rowCount !== rows)
      throw new StartError(`the table ${name} took ${copying.rowCount} rows of ${rows}: nothing was loaded`);
  }
  for (const { name, last, isCalled } of sequences)
    await db.query(sql`select setval(${name}::regclass, ${last}, ${isCalled})`);
}
