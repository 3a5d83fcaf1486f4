import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { isDistributed } from './distribute.ts';
import type { Authenticator } from './embedded.ts';
import { StartError, sqlState } from './errors.ts';
import { connectOwner, type Queries } from './pool.ts';
import { requireStopped } from './session.ts';

/**
 * A dump contains all rows of Scrip as text that every version of PostgreSQL reads, to be loaded into a new
 * database (load.ts). The embedded PostgreSQL does not include its own programs for this.
 */

export const FORMAT = 1;
export const MANIFEST = 'manifest.json';
/** Proves who wrote the manifest, which holds the digest of each other file. */
export const TAG = `${MANIFEST}.hmac`;
export const textToSign = (manifest: string): string => `dump\n${manifest}`;

export type DumpedTable = {
  /** The quoted name, with its schema. */
  readonly name: string;
  readonly columns: readonly string[];
  readonly file: string;
  readonly rows: number;
  readonly bytes: number;
  readonly sha256: string;
};

export type DumpManifest = {
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

/** Tables that describe the schema. A load fills them by migrating. */
const OWN = ['scrip.migrations'];

/** Parents come before the tables that refer to them. Generated columns are left out. */
const TABLES = `
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
where name <> all ($1) group by name, columns order by max(depth), name`;

const SEQUENCES = `
select quote_ident(schemaname) || '.' || quote_ident(sequencename) as name from pg_sequences
where schemaname = 'scrip' order by 1`;

const FIRST_MONTH = `
select min(substring(relname from '\\d{4}_\\d{2}$')) as month from pg_class c
join pg_namespace n on n.oid = c.relnamespace
where nspname = 'scrip' and relispartition and relname ~ '_\\d{4}_\\d{2}$'`;

/** Returns the rows of a query on a client that is also used for COPY. */
export async function rowsOf<Row>(client: pg.Client, text: string, values: unknown[] = []): Promise<Row[]> {
  return (await client.query(text, values)).rows as Row[];
}

/** Wraps a client for the other functions of this folder. */
export const queriesOn = (client: pg.Client): Queries => ({
  query: ({ text, values }) => rowsOf(client, text, [...values]),
});

export const listTables = (client: pg.Client) =>
  rowsOf<{ name: string; columns: string[] }>(client, TABLES, [OWN]);

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
  const draft = `${path}.partial`;
  try {
    await rm(draft, { recursive: true, force: true });
    await mkdir(draft, { recursive: true, mode: 0o700 });
    await client.query('begin isolation level repeatable read, read only');
    const manifest = await write(client, draft, version);
    const text = `${JSON.stringify(manifest, undefined, 2)}\n`;
    const files = { [MANIFEST]: text, ...(writer && { [TAG]: `${writer.sign(textToSign(text))}\n` }) };
    for (const [name, content] of Object.entries(files))
      await writeFile(join(draft, name), content, { mode: 0o600, flush: true });
    await sync(draft);
    await rm(path, { recursive: true, force: true });
    await rename(draft, path);
    return manifest;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw explain(error, path);
  } finally {
    await client.end();
  }
}

async function requireEmpty(path: string): Promise<void> {
  const names = await readdir(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new StartError(`the folder ${path} cannot be used (${error.code}): name another one`);
  });
  if (names.length > 0) throw new StartError(`the folder ${path} is not empty: name a new one`);
}

async function write(client: pg.Client, draft: string, version: string): Promise<DumpManifest> {
  const queries = queriesOn(client);
  await requireStopped(queries);
  if (await isDistributed(queries))
    throw new StartError('a database that is distributed by Citus cannot be dumped: use its own tools');
  const tables: DumpedTable[] = [];
  for (const { name, columns } of await listTables(client)) {
    const file = `${name.replaceAll('"', '')}.copy`;
    const text = `copy (select ${columns.join(', ')} from ${name}) to stdout`;
    tables.push({ name, columns, file, ...(await copyOut(client, text, join(draft, file))) });
  }
  const [first] = await rowsOf<{ month: string | null }>(client, FIRST_MONTH);
  const [server] = await rowsOf<{ postgres: string }>(
    client,
    `select current_setting('server_version') as postgres`,
  );
  const sequences: DumpManifest['sequences'][number][] = [];
  for (const { name } of await rowsOf<{ name: string }>(client, SEQUENCES)) {
    const [row] = await rowsOf<{ last: string; isCalled: boolean }>(
      client,
      `select last_value::text as last, is_called as "isCalled" from ${name}`,
    );
    if (row) sequences.push({ name, ...row });
  }
  return {
    format: FORMAT,
    version,
    takenAt: new Date().toISOString(),
    postgres: server?.postgres ?? '',
    migrations: await rowsOf(client, 'select version, name, digest from scrip.migrations order by version'),
    firstMonth: first?.month ?? null,
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

async function sync(folder: string): Promise<void> {
  const handle = await open(folder);
  await handle.sync().finally(() => handle.close());
}

/** Turns the failure of a dump into one line. */
function explain(error: unknown, path: string): unknown {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === 'ENOSPC') return new StartError(`the folder ${path} is too full: nothing was kept`);
  if (/^E(ACCES|PERM|ROFS)$/.test(code))
    return new StartError(`the folder ${path} cannot be written (${code})`);
  if (sqlState(error) === '42501')
    return new StartError('this account may not read everything: sign in as the owner of the schema');
  if (sqlState(error) === '42P01') return new StartError('the database holds nothing of Scrip');
  return error;
}
