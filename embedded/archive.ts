import { basename } from 'node:path';
import { TAG } from './authenticator.ts';
import { contentOf } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { codeOf } from './folder.ts';
import { readText, type Storage } from './storage.ts';

/**
 * The archived write-ahead log: what a restore to a point in time replays on top of a backup.
 *
 * PostgreSQL archives each segment (16 MB) when it is complete. What was written since lies in the
 * segment that is being filled, so a process of the service copies that one as it grows, in pieces. When the
 * data folder is lost, the archive lacks at most what was committed in the last second.
 */

/** The size of a segment, initdb's default. */
export const SEGMENT_BYTES = 16 * 1024 ** 2;
const SEGMENTS_PER_FILE_NUMBER = 2 ** 32 / SEGMENT_BYTES;
export const SEGMENT = /^[0-9A-F]{24}$/;
export const HISTORY = /^[0-9A-F]{8}\.history$/;
/** The end of the name of what is known of a segment that is being filled. */
export const TAIL = '.tail';
/** Whole segments are compressed. Those of earlier versions in a folder are not. */
const PACKED = '.gz';
/** Names the installation whose log lies in the folder: segments of two databases have the same names. */
const MARKER = 'archive.json';

/**
 * The folder into which PostgreSQL archives, beside the folder of its files. From there, a process of the
 * service sends each segment, with its tag, to the archive (sender.ts).
 */
export const SPOOL = 'postgres.archive';
/** PostgreSQL runs its commands in the folder of its files. */
const FILE = `../${SPOOL}/%f`;

/** A segment that a stop ends is zeros for the most part, which take no space on the disk. */
const COPY = `(cp --sparse=always "%p" ${FILE}.new 2>/dev/null || cp "%p" ${FILE}.new)`;
/** The command that archives a segment: whole and on the disk, or not at all; never over another one. */
export const ARCHIVE_COMMAND = [
  `test ! -f ${FILE} && ${COPY} && sync ${FILE}.new && mv ${FILE}.new ${FILE}`,
  `cmp -s "%p" ${FILE}`,
].join(' || ');
/** A database without an archive takes each segment as archived, so that it is not kept for one. */
export const ARCHIVE_NOTHING = 'true';

/**
 * The command that fetches a segment for a restore, or what is known of it if it was never completed.
 * @param folder a folder beside that of the database's files; undefined: none
 */
export function restoreCommand(folder: string | undefined): string {
  // Fails for every segment: what there is of the log lies in the backup itself.
  if (folder === undefined) return 'false';
  const file = `../${basename(folder)}/%f`;
  return `cp ${file} "%p" 2>/dev/null || cp ${file}${TAIL} "%p" 2>/dev/null`;
}

/**
 * A file in the archive: `FILE.TAG.gz`. What is known of a segment that is being filled lies in pieces below
 * `FILE.tail`, named by position and tag: `POSITION.TAG`.
 */
export type ArchivedFile = { readonly file: string; readonly tag: string; readonly isPacked: boolean };

const ARCHIVED = new RegExp(`^([0-9A-F]{24}|[0-9A-F]{8}\\.history)\\.(${TAG})(\\.gz)?$`);
const PIECE = new RegExp(`^(\\d{8})\\.(${TAG})$`);

/** Reads the name of a file in the archive; undefined if it is not one of the log. */
export function readName(name: string): ArchivedFile | undefined {
  const [, file, tag, packed] = ARCHIVED.exec(name) ?? [];
  return file === undefined || tag === undefined ? undefined : { file, tag, isPacked: packed !== undefined };
}

export const nameOf = ({ file, tag, isPacked }: ArchivedFile): string =>
  `${file}.${tag}${isPacked ? PACKED : ''}`;

export type Piece = { readonly position: number; readonly tag: string };

export function readPieceName(name: string): Piece | undefined {
  const [, position, tag] = PIECE.exec(name) ?? [];
  return position === undefined || tag === undefined ? undefined : { position: Number(position), tag };
}

export const pieceName = ({ position, tag }: Piece): string => `${String(position).padStart(8, '0')}.${tag}`;

export const pieceOf = (segment: string, position: number): string => `${segment}@${position}`;

/**
 * The text whose tag proves who archived a file, or a piece of one.
 * @param file its name, or the result of `pieceOf`
 */
export const textToSign = (systemIdentifier: string, file: string, sha256: string): string =>
  `log\n${systemIdentifier}\n${file}\n${sha256}`;

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

/** The names from a segment on, up to another one of the same timeline, which is left out. */
export function segmentsUpTo(first: string, end: string): string[] {
  const timeline = first.slice(0, 8);
  if (first === '' || timeline !== end.slice(0, 8)) return [];
  const names: string[] = [];
  const inHex = (number: number) => number.toString(16).toUpperCase().padStart(8, '0');
  for (let number = segmentNumber(first); number < segmentNumber(end); number++)
    names.push(
      timeline +
        inHex(Math.floor(number / SEGMENTS_PER_FILE_NUMBER)) +
        inHex(number % SEGMENTS_PER_FILE_NUMBER),
    );
  return names;
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
 * @param names of segments, whole or begun
 * @param after the last segment that the backup holds
 * @param isNeeded whether the restore goes through a segment
 * @returns its number, or undefined if nothing is missing
 */
export function findGap(
  names: readonly string[],
  after: number,
  isNeeded: (segment: string) => boolean,
): number | undefined {
  const found = names.filter((name) => SEGMENT.test(name) && isNeeded(name)).map(segmentNumber);
  const numbers = new Set(found.filter((number) => number > after));
  const last = Math.max(after, ...numbers);
  for (let number = after + 1; number <= last; number++) if (!numbers.has(number)) return number;
  return undefined;
}

/** The file of the log to which a name in the archive belongs: whole, or a segment that is being filled. */
export function fileIn(name: string): string | undefined {
  const segment = name.endsWith(TAIL) ? name.slice(0, -TAIL.length) : undefined;
  return segment !== undefined && SEGMENT.test(segment) ? segment : readName(name)?.file;
}

/** Removes the segments that no backup needs any more: those before the first segment of the oldest one. */
export async function pruneArchive(archive: Storage, first: number): Promise<void> {
  for (const name of await archive.list('')) {
    const [segment = ''] = name.split('.');
    if (SEGMENT.test(segment) && segmentNumber(segment) < first) await archive.remove(name);
  }
}
