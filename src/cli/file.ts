import { closeSync, openSync, readSync, statSync } from 'node:fs';
import { link, lstat, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { isOrdinary, withDraft, writePrivate } from '../private-file.ts';
import { CommandError, fail, wrongUsage } from './output.ts';
import { blocking } from './signals.ts';

/**
 * Refuses a path that cannot be written, before the command starts its work.
 * @throws CommandError
 */
export async function checkTarget(path: string, force: boolean): Promise<void> {
  const look = (each: string) =>
    lstat(each).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' && each === path) return undefined;
      throw explain(error, path);
    });
  const found = await look(path);
  if (found && !found.isFile()) fail(`${path} is there, and no ordinary file`);
  if (found && !force) fail(`${path} is there already: --force overwrites it`);
  await look(dirname(path));
}

/** What one command takes of a file; the field of the operation has a bound of its own. */
const READ_MAX_BYTES = 64 * 1024 ** 2;
const PIECE_BYTES = 64 * 1024;

/**
 * Reads an ordinary file, or standard input (0), to its end.
 * @param subject names it in the message
 * @throws CommandError if it is too large
 */
export function readWhole(path: string | 0, subject: string): Buffer {
  if (path !== 0 && !isOrdinary(statSync(path))) fail(`${path} is no ordinary file`);
  const file = path === 0 ? path : openSync(path, 'r');
  try {
    const pieces: Buffer[] = [];
    for (let bytes = 0; ; ) {
      const piece = Buffer.alloc(PIECE_BYTES);
      // A pipe or a terminal makes standard input wait.
      const read = blocking(() => readSync(file, piece));
      if (read === 0) return Buffer.concat(pieces);
      bytes += read;
      if (bytes > READ_MAX_BYTES) wrongUsage(`${subject} has more than ${READ_MAX_BYTES / 1024 ** 2} MB`);
      pieces.push(piece.subarray(0, read));
    }
  } catch (error) {
    // The error of a read does not name its file.
    if (path !== 0 && error instanceof Error) Object.assign(error, { path });
    throw error;
  } finally {
    if (file !== 0) closeSync(file);
  }
}

/** Decodes a text file. @throws CommandError if it is in another encoding, such as UTF-16 */
export function decodeText(content: Buffer, subject: string): string {
  try {
    // Every second byte of UTF-16 is often 0.
    if (!content.includes(0)) return new TextDecoder('utf-8', { fatal: true }).decode(content);
  } catch {
    // Refused below.
  }
  return wrongUsage(`${subject} is no text in UTF-8: save the file in UTF-8`);
}

/**
 * Writes a file completely or not at all: it has a draft name until it is on the disk.
 * @param force whether it may replace another file
 */
export async function writeWhole(
  path: string,
  pieces: AsyncIterable<string | Buffer> | string[],
  force: boolean,
): Promise<void> {
  await withDraft(join(dirname(path), `.${basename(path).slice(0, 100)}`), async (draft) => {
    await writePrivate(draft, pieces).catch((error: NodeJS.ErrnoException) => {
      throw error.syscall === 'open' ? explain(error, path) : error;
    });
    if (force) await rename(draft, path);
    // A link fails if the file has been created meanwhile. A rename would replace it silently.
    else
      await link(draft, path).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'EEXIST') fail(`${path} is there already: --force overwrites it`);
        // The file system has no links (a memory stick).
        if (error.code === 'EPERM' || error.code === 'ENOTSUP' || error.code === 'ENOSYS')
          return rename(draft, path);
        throw error;
      });
  });
}

function explain(error: NodeJS.ErrnoException, path: string): Error {
  const reasons: Record<string, string> = {
    ENOENT: 'its folder does not exist',
    ENOTDIR: 'its parent is not a folder',
    EACCES: 'its folder may not be written',
    EPERM: 'its folder may not be written',
    EROFS: 'its folder may not be written',
    ENAMETOOLONG: 'the name is too long',
  };
  return new CommandError(`${path} cannot be written: ${reasons[error.code ?? ''] ?? error.message}`);
}

/** What the system answers for a file or a folder; others are bugs. */
const OF_FILES: Readonly<Record<string, string>> = {
  ENOSPC: 'the disk is full: free some of it, or name another folder',
  EDQUOT: 'the disk quota of this account is used up: free some of it, or name another folder',
  EFBIG: 'it would be larger than this account may write (ulimit -f)',
  EROFS: 'it is on a read-only file system: name another folder',
  EACCES: 'this account may not use it: run Scrip as its owner, or name another path',
  EPERM: 'this account may not use it: run Scrip as its owner, or name another path',
  ENOENT: 'it, or a folder above it, does not exist or is read-only: check the path',
  ENOTDIR: 'a folder in its path is a file: check the path',
  EEXIST: 'a file has its name: name another folder',
  EISDIR: 'it is a folder: name a file',
  'no ordinary file': 'it is a pipe or a device: name a file',
  ELOOP: 'its links go round in a circle: check the path',
  ENAMETOOLONG: 'the name is too long',
  EIO: 'the disk fails (an input or output error)',
};
const FILE_CALLS =
  /^(?:access|copyfile|fsync|f?truncate|f?stat|link|lstat|mkdir|open|read|realpath|rename|rmdir|scandir|unlink|write)$/;

/** Returns why a file or folder could not be used, in one line; undefined for another error. */
export function explainFile({ code = '', syscall = '', path }: NodeJS.ErrnoException): string | undefined {
  const reason = OF_FILES[code];
  if (reason === undefined || !FILE_CALLS.test(syscall)) return undefined;
  // The error of a read or a write does not name its file.
  if (path === undefined) return `a file cannot be ${syscall === 'read' ? 'read' : 'written'}: ${reason}`;
  return `${path} cannot be used: ${reason}`;
}
