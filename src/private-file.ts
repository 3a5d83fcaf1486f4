import { randomBytes } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';

/** Files that only their owner can read. Each has a draft name until it is complete. */

/** Matches the names of drafts, for code that removes the drafts of a process that died. */
export const DRAFT = /\.[0-9a-f]{12}\.part$/;

/** Returns a new name in the folder of a path. Rename or link the file to its path once it is complete. */
export function draftName(path: string): string {
  return `${path}.${randomBytes(6).toString('hex')}.part`;
}

/**
 * Writes a file that only its owner can read (mode 600), and waits until it is on the disk.
 * @param path must not exist yet, such as a draft name
 */
export async function writePrivate(
  path: string,
  pieces: AsyncIterable<string | Buffer> | string[],
): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  await pipeline(pieces, createWriteStream('', { fd: file, flush: true }));
}
