import { randomBytes } from 'node:crypto';
import { createWriteStream, rmSync, type Stats } from 'node:fs';
import { lstat, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';

/** Files that only their owner can read. Each has a draft name until it is complete. */

/** Ends the name of a draft: the id of its process, which 0.1.0 did not write, and chance. */
const DRAFT = /^\.(?:(\d{1,10})-)?[0-9a-f]{12}\.part$/;

/**
 * Returns a new name for a file or folder, in the folder of its path: rename or link it to the path once it
 * is complete. The drafts of the same path that killed processes left are removed: they may hold codes and
 * PINs.
 */
async function newDraft(path: string): Promise<string> {
  const folder = dirname(path);
  // A folder that does not exist or cannot be read is refused where the draft is made.
  for (const name of await readdir(folder).catch(() => []))
    if (name.startsWith(basename(path))) await removeAbandoned(join(folder, name), path);
  return `${path}.${process.pid}-${randomBytes(6).toString('hex')}.part`;
}

/**
 * Makes a file or folder under a draft name, and removes what is left under it, even if the process exits
 * meanwhile, as a signal makes it do.
 * @param make renames or links the draft to its path once it is complete
 */
export async function withDraft<Made>(path: string, make: (draft: string) => Promise<Made>): Promise<Made> {
  const draft = await newDraft(path);
  const discard = () => rmSync(draft, { recursive: true, force: true });
  process.once('exit', discard);
  try {
    return await make(draft);
  } finally {
    discard();
    process.off('exit', discard);
  }
}

async function removeAbandoned(draft: string, path: string): Promise<void> {
  const found = DRAFT.exec(basename(draft).slice(basename(path).length));
  if (!found || (found[1] !== undefined && isAlive(Number(found[1])))) return;
  const facts = await lstat(draft).catch(() => undefined);
  // In a shared folder, another account may have chosen the name.
  if (facts?.uid === process.getuid?.()) await rm(draft, { recursive: true, force: true });
}

/**
 * Whether a process runs. One of another container does not seem to: if it writes to the same path just then,
 * it finds its draft gone, and fails.
 */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
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

/**
 * Whether a path is neither a pipe, which could make the process wait for ever, nor a device, which has no
 * end. A folder is refused where it is read.
 */
export const isOrdinary = (facts: Stats): boolean => facts.isFile() || facts.isDirectory();

/**
 * Reads a text file.
 * @throws an error whose `code` says why it cannot be read
 */
export async function readOrdinary(path: string): Promise<string> {
  if (!isOrdinary(await stat(path)))
    throw Object.assign(new Error(`${path} is no ordinary file`), {
      ...{ code: 'no ordinary file', syscall: 'open', path },
    });
  return readFile(path, 'utf8');
}
