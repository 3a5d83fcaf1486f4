import { join } from 'node:path';
import { contentOf } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { codeOf, type Folder } from './folder.ts';
import { isRemote, readText, type Storage } from './storage.ts';

/**
 * The archived write-ahead log: what a restore to a point in time replays on top of a backup.
 *
 * PostgreSQL archives each segment (16 MB) when it is complete. What was written since lies in the
 * segment that is being filled, so a process of the service copies that one as it grows, to a file that
 * ends in `.tail`. When the data folder is lost, the archive lacks at most what was committed in the last
 * second.
 */

/** The size of a segment, initdb's default. */
export const SEGMENT_BYTES = 16 * 1024 ** 2;
const SEGMENTS_PER_FILE_NUMBER = 2 ** 32 / SEGMENT_BYTES;
export const SEGMENT = /^[0-9A-F]{24}$/;
/** The end of the name of what is known of a segment that is being filled. */
export const TAIL = '.tail';
/** In a bucket, whole segments are compressed. */
export const PACKED = '.gz';
/** Names the installation whose log lies in the folder: segments of two databases have the same names. */
const MARKER = 'archive.json';

const quoteForShell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
/** `%` introduces a placeholder in PostgreSQL's commands. */
const pathInCommand = (folder: string) => folder.replaceAll('%', '%%');

/** In the data folder: segments that have to be sent to a bucket. */
export const SPOOL = 'postgres.archive';

/**
 * The folder into which PostgreSQL archives: the archive itself; for a bucket, one in the data folder,
 * from which a process of the service sends the segments.
 */
export const archiveFolder = ({ root }: Pick<Folder, 'root'>, archive: string): string =>
  isRemote(archive) ? join(root, SPOOL) : archive;

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
 * Creates the archive, or checks that it is this installation's.
 * @throws EmbeddedError
 */
export async function prepareArchive(archive: Storage, systemIdentifier: string): Promise<void> {
  await archive.prepare().catch((error: Error) => {
    throw new EmbeddedError(error.message.replace('the backup folder', 'the archive folder'));
  });
  const owner = await readMarker(archive);
  if (owner !== undefined && owner !== systemIdentifier)
    throw new EmbeddedError(
      `the archive folder ${archive.name} belongs to another installation: use an empty folder`,
    );
  await archive
    .write(MARKER, contentOf(`${JSON.stringify({ systemIdentifier })}\n`))
    .catch((error: unknown) => {
      if (error instanceof EmbeddedError) throw error;
      throw new EmbeddedError(`the archive folder ${archive.name} cannot be written (${codeOf(error)})`);
    });
}

async function readMarker(archive: Storage): Promise<string | undefined> {
  try {
    return (JSON.parse(await readText(archive, MARKER)) as { systemIdentifier: string }).systemIdentifier;
  } catch (error) {
    if (error instanceof EmbeddedError) throw error;
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new EmbeddedError(
      `the file ${archive.name}/${MARKER} is damaged or cannot be read: restore a copy of it`,
    );
  }
}

/**
 * Checks that a restore can use an archive.
 * @throws EmbeddedError if it is not there, or holds the log of another installation
 */
export async function requireArchive(archive: Storage, systemIdentifier: string): Promise<void> {
  const owner = await readMarker(archive);
  if (owner === undefined) throw new EmbeddedError(`there is no archived log in ${archive.name}`);
  if (owner !== systemIdentifier)
    throw new EmbeddedError(
      `the archived log in ${archive.name} belongs to another installation than the backup`,
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
 * @param isNeeded whether the restore goes through a segment
 * @returns its number, or undefined if nothing is missing
 */
export async function findGap(
  archive: Storage,
  after: number,
  isNeeded: (segment: string) => boolean,
): Promise<number | undefined> {
  const names = (await archive.list('')).map(segmentIn);
  const found = names.filter((name) => SEGMENT.test(name) && isNeeded(name)).map(segmentNumber);
  const numbers = new Set(found.filter((number) => number > after));
  const last = Math.max(after, ...numbers);
  for (let number = after + 1; number <= last; number++) if (!numbers.has(number)) return number;
  return undefined;
}

/** The segment that a name in the archive stands for: whole, packed, or being filled. */
export function segmentIn(name: string): string {
  for (const ending of [TAIL, PACKED]) if (name.endsWith(ending)) return name.slice(0, -ending.length);
  return name;
}

/** Removes the segments that no backup needs any more: those before the first segment of the oldest one. */
export async function pruneArchive(archive: Storage, first: number): Promise<void> {
  for (const name of await archive.list('')) {
    const [segment = ''] = name.split('.');
    if (SEGMENT.test(segment) && segmentNumber(segment) < first) await archive.remove(name);
  }
}
