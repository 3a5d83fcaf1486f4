import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import {
  type DumpedTable,
  type DumpManifest,
  FORMAT,
  listTables,
  MANIFEST,
  queriesOn,
  rowsOf,
  TAG,
  textToSign,
} from './dump.ts';
import { requireAuthentic, type Writer } from './embedded.ts';
import { StartError, sqlState } from './errors.ts';
import { migrate } from './migrate.ts';
import { connectOwner } from './pool.ts';
import { requireStopped } from './session.ts';

/** Loads a dump into an empty database, in one transaction. */

/**
 * Reads the manifest of a dump.
 * @throws StartError for a folder that is not a dump, a dump of a later format, or of somebody else
 */
async function readManifest(folder: string, writer: Writer): Promise<DumpManifest> {
  const read = (name: string) => readFile(join(folder, name), 'utf8').catch(() => undefined);
  const text = await read(MANIFEST);
  if (text === undefined) throw new StartError(`${folder} is not a dump: it has no ${MANIFEST}`);
  const subject = { what: `the dump ${folder}`, instead: 'another copy' };
  requireAuthentic(writer, subject, textToSign(text), (await read(TAG))?.trim());
  try {
    const manifest = JSON.parse(text) as DumpManifest;
    if (manifest.format === FORMAT && Array.isArray(manifest.tables)) return manifest;
  } catch {}
  throw new StartError(`the dump ${folder} has a ${MANIFEST} that this version of Scrip cannot read`);
}

/** Compares every file with its checksum, before the database is changed. */
async function checkFiles(folder: string, { tables }: DumpManifest): Promise<void> {
  for (const table of tables) for await (const _ of read(folder, table));
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

export type Dump = { readonly folder: string; readonly manifest: DumpManifest };

/** Opens a complete dump of an accepted writer. @throws StartError, one line */
export async function openDump(from: string, writer: Writer): Promise<Dump> {
  const folder = resolve(from);
  const manifest = await readManifest(folder, writer);
  await checkFiles(folder, manifest);
  return { folder, manifest };
}

/**
 * Loads a dump, and migrates it to the schema of this program.
 * @param url of the owner
 * @throws StartError, one line; then nothing was loaded
 */
export async function load(url: string, { folder, manifest }: Dump): Promise<void> {
  const client = await connectOwner(url);
  try {
    await requireNothing(client);
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
async function requireNothing(client: pg.Client): Promise<void> {
  const queries = queriesOn(client);
  await requireStopped(queries);
  const [found] = await rowsOf<{ schema: string | null }>(
    client,
    `select to_regclass('scrip.merchants') as schema`,
  );
  if (!found?.schema) return;
  const [used] = await rowsOf<{ used: boolean }>(
    client,
    `select exists (select from scrip.merchants) or exists (select from scrip.journal)
       or exists (select from scrip.keyring_keys) as used`,
  );
  if (used?.used)
    throw new StartError('the database holds data already, which a load would replace: load into a new one');
}

async function fill(client: pg.Client, folder: string, manifest: DumpManifest): Promise<void> {
  const { tables, sequences, firstMonth } = manifest;
  if (firstMonth)
    await client.query('select create_partition(parent, month) from missing_partitions($1, now())', [
      `${firstMonth.replace('_', '-')}-01T00:00:00Z`,
    ]);
  const own = new Map((await listTables(client)).map(({ name, columns }) => [name, new Set(columns)]));
  for (const { name, columns } of tables)
    if (!columns.every((column) => own.get(name)?.has(column)))
      throw new StartError(`the table ${name} of the dump does not fit this version of Scrip`);
  // The migrations insert some rows that are in the dump too.
  await client.query(`truncate ${[...own.keys()].join(', ')}`);
  for (const table of tables) {
    const { name, columns, rows } = table;
    const copying = client.query(copyFrom(`copy ${name} (${columns.join(', ')}) from stdin`));
    await pipeline(read(folder, table), copying);
    if (copying.rowCount !== rows)
      throw new StartError(`the table ${name} took ${copying.rowCount} rows of ${rows}: nothing was loaded`);
  }
  for (const { name, last, isCalled } of sequences)
    await client.query('select setval($1::regclass, $2, $3)', [name, last, isCalled]);
}
