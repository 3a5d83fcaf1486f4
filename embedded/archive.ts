import { constants } from 'node:fs';
import { access, type FileHandle, open, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { EmbeddedError } from './error.ts';
import { codeOf, exists, type Folder, makeFolder } from './folder.ts';
import type { Log } from './server.ts';

/**
 * The archived write-ahead log: what a restore to a point in time replays on top of a backup.
 *
 * PostgreSQL archives each segment (16 MB) when it is complete. What was written since lies in the
 * segment that is being filled, so a process of the service copies that one as it grows, to a file that
 * ends in `.tail`. When the data folder is lost, the archive lacks at most what was committed in the last
 * second.
 */

/** The size of a segment, initdb's default. */
const SEGMENT_BYTES = 16 * 1024 ** 2;
const SEGMENTS_PER_FILE_NUMBER = 2 ** 32 / SEGMENT_BYTES;
const SEGMENT = /^[0-9A-F]{24}$/;
const TAIL = '.tail';
const TAIL_MS = 1_000;
const COPY_BYTES = 1024 ** 2;
/** Names the installation whose log lies in the folder: segments of two databases have the same names. */
const MARKER = 'archive.json';

const quoteForShell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
/** `%` introduces a placeholder in PostgreSQL's commands. */
const pathInCommand = (folder: string) => folder.replaceAll('%', '%%');

/**
 * The command that archives a segment: whole and on the disk, or not at all; never over another one of
 * the same name.
 */
export function archiveCommand(archiveDir: string | undefined): string {
  // A database without an archive takes each segment as archived, so that it is not kept for one.
  if (archiveDir === undefined) return 'true';
  const file = quoteForShell(`${pathInCommand(archiveDir)}/%f`);
  const draft = quoteForShell(`${pathInCommand(archiveDir)}/%f.new`);
  return `test ! -f ${file} && cp "%p" ${draft} && sync ${draft} && mv ${draft} ${file} || cmp -s "%p" ${file}`;
}

/** The command that fetches a segment for a restore; from the tail where the segment was never completed. */
export function restoreCommand(archiveDir: string | undefined): string {
  // Fails for every segment: what there is of the log lies in the backup itself.
  if (archiveDir === undefined) return 'false';
  const file = quoteForShell(`${pathInCommand(archiveDir)}/%f`);
  const tail = quoteForShell(`${pathInCommand(archiveDir)}/%f${TAIL}`);
  return `cp ${file} "%p" 2>/dev/null || cp ${tail} "%p" 2>/dev/null`;
}

/**
 * Creates the folder of the archive, or checks that it is this installation's.
 * @throws EmbeddedError
 */
export async function prepareArchive(archiveDir: string, systemIdentifier: string): Promise<void> {
  await makeFolder(archiveDir);
  await access(archiveDir, constants.R_OK | constants.W_OK | constants.X_OK).catch((error: unknown) => {
    throw new EmbeddedError(`the archive folder ${archiveDir} cannot be written (${codeOf(error)})`);
  });
  const marker = join(archiveDir, MARKER);
  const owner = await readMarker(marker);
  if (owner === undefined)
    await writeFile(marker, `${JSON.stringify({ systemIdentifier })}\n`, { mode: 0o600 });
  else if (owner !== systemIdentifier)
    throw new EmbeddedError(
      `the archive folder ${archiveDir} belongs to another installation: use an empty folder`,
    );
}

async function readMarker(marker: string): Promise<string | undefined> {
  try {
    return (JSON.parse(await readFile(marker, 'utf8')) as { systemIdentifier: string }).systemIdentifier;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new EmbeddedError(`the file ${marker} is damaged or cannot be read: restore a copy of it`);
  }
}

/**
 * Checks that a restore can use an archive.
 * @throws EmbeddedError where it is not there, or holds the log of another installation
 */
export async function requireArchive(archiveDir: string, systemIdentifier: string): Promise<void> {
  const owner = await readMarker(join(archiveDir, MARKER));
  if (owner === undefined) throw new EmbeddedError(`there is no archived log in ${archiveDir}`);
  if (owner !== systemIdentifier)
    throw new EmbeddedError(
      `the archived log in ${archiveDir} belongs to another installation than the backup`,
    );
}

/** The number of a segment, the same on every timeline. */
export function segmentNumber(name: string): number {
  return (
    Number.parseInt(name.slice(8, 16), 16) * SEGMENTS_PER_FILE_NUMBER +
    Number.parseInt(name.slice(16, 24), 16)
  );
}

/** The number of the segment that a byte of the log lies in. */
export function segmentAt(lsn: string): number {
  const [high = '', low = ''] = lsn.split('/');
  return (
    Number.parseInt(high, 16) * SEGMENTS_PER_FILE_NUMBER +
    Math.floor(Number.parseInt(low, 16) / SEGMENT_BYTES)
  );
}

/**
 * Finds the first segment that a restore would miss: one that is absent although later ones are there.
 * @param after the last segment that the backup holds
 * @returns its number, or undefined where nothing is missing
 */
export async function findGap(archiveDir: string, after: number): Promise<number | undefined> {
  const numbers = new Set(
    (await listSegments(archiveDir)).map(segmentNumber).filter((number) => number > after),
  );
  const last = Math.max(after, ...numbers);
  for (let number = after + 1; number <= last; number++) if (!numbers.has(number)) return number;
  return undefined;
}

async function listSegments(archiveDir: string): Promise<string[]> {
  const names = (await readdir(archiveDir)).map((name) =>
    name.endsWith(TAIL) ? name.slice(0, -TAIL.length) : name,
  );
  return [...new Set(names.filter((name) => SEGMENT.test(name)))];
}

/** Removes the segments that no backup needs any more: those before the first segment of the oldest one. */
export async function pruneArchive(archiveDir: string, first: number): Promise<void> {
  for (const name of await readdir(archiveDir)) {
    const [segment = ''] = name.split('.');
    if (SEGMENT.test(segment) && segmentNumber(segment) < first)
      await rm(join(archiveDir, name), { force: true });
  }
}

/** Copies the segment that is being filled, as it grows. */
export class Tail {
  readonly #folder: Folder;
  readonly #archiveDir: string;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #client: pg.Client;
  #segment = '';
  #copied = 0;
  #running: Promise<void> | undefined;
  #isFailing = false;

  constructor(folder: Folder, archiveDir: string, client: pg.Client, log: Log) {
    this.#folder = folder;
    this.#archiveDir = archiveDir;
    this.#client = client;
    this.#log = log;
    this.#timer = setInterval(() => void this.#turn(), TAIL_MS).unref();
  }

  /** Goes on with another connection: the server was started again. */
  use(client: pg.Client): void {
    this.#client = client;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
    await this.#turn();
  }

  async #turn(): Promise<void> {
    if (this.#running) return;
    this.#running = this.#copy()
      .then(() => {
        this.#isFailing = false;
      })
      .catch((error: Error) => {
        // It is logged once; `scrip doctor` and the metrics show an archive that stays behind.
        if (!this.#isFailing) this.#log.error({ error: error.message }, 'the log cannot be archived');
        this.#isFailing = true;
      })
      .finally(() => {
        this.#running = undefined;
      });
    await this.#running;
  }

  async #copy(): Promise<void> {
    const { rows } = await this.#client.query<{ name: string; end: number }>(
      `
        select file_name as name, file_offset as "end"
        from pg_walfile_name_offset(pg_current_wal_flush_lsn())`,
    );
    const { name, end } = rows[0] as { name: string; end: number };
    if (name !== this.#segment) {
      this.#segment = name;
      this.#copied = 0;
      await this.#removeComplete();
    }
    if (end <= this.#copied) return;
    const source = await open(join(this.#folder.cluster, 'pg_wal', name), 'r');
    try {
      const target = await open(
        join(this.#archiveDir, `${name}${TAIL}`),
        constants.O_RDWR | constants.O_CREAT,
        0o600,
      );
      try {
        // PostgreSQL takes segments of the full size only; the rest of it reads as zeros, where the log ends.
        await target.truncate(SEGMENT_BYTES);
        await copyRange(source, target, this.#copied, end);
        await target.datasync();
      } finally {
        await target.close();
      }
    } finally {
      await source.close();
    }
    this.#copied = end;
  }

  /** Removes the tails of segments that were archived since. */
  async #removeComplete(): Promise<void> {
    for (const name of await readdir(this.#archiveDir)) {
      if (!name.endsWith(TAIL)) continue;
      const segment = join(this.#archiveDir, name.slice(0, -TAIL.length));
      if (await exists(segment)) await rm(join(this.#archiveDir, name), { force: true });
    }
  }
}

async function copyRange(source: FileHandle, target: FileHandle, from: number, to: number): Promise<void> {
  const buffer = Buffer.allocUnsafe(COPY_BYTES);
  for (let at = from; at < to; ) {
    const { bytesRead } = await source.read(buffer, 0, Math.min(COPY_BYTES, to - at), at);
    if (bytesRead === 0) throw new Error('the log is shorter than the database says');
    await target.write(buffer, 0, bytesRead, at);
    at += bytesRead;
  }
}
