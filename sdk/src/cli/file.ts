import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { link, lstat, open, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fail } from './command.ts';

/** A file that holds codes: nobody but its owner reads it. */
const MODE = 0o600;

/**
 * Refuses, before anything is ordered or downloaded, a path that cannot be written.
 * @throws CommandError
 */
export async function checkTarget(path: string, force: boolean): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') fail(`${path} cannot be written (${error.code})`);
  });
  if (found && !found.isFile()) fail(`${path} is there, and no ordinary file`);
  if (found && !force) fail(`${path} is there already: --force overwrites it`);
  const { draft, file } = await openDraft(path);
  await file.close();
  rmSync(draft, { force: true });
}

/**
 * Writes a file that is there as a whole or not at all: under a name of its own until everything lies on the disk.
 * @param force whether it may take the place of another
 */
export async function writeWhole(path: string, pieces: AsyncIterable<string>, force: boolean): Promise<void> {
  const { draft, file } = await openDraft(path);
  const discard = () => rmSync(draft, { force: true });
  // Also where the process is ended in a hurry.
  process.once('exit', discard);
  try {
    for await (const piece of pieces) await file.write(piece);
    await file.sync();
    await file.close();
    if (force) await rename(draft, path);
    else await place(draft, path);
  } finally {
    await file.close().catch(() => {});
    discard();
    process.off('exit', discard);
  }
}

/** A link is refused where another file has come to be meanwhile, which a rename would silently replace. */
async function place(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') fail(`${path} is there already: --force overwrites it`);
    // A file system without links (a memory stick).
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    await rename(draft, path);
  }
}

async function openDraft(path: string) {
  const draft = join(dirname(path), `.${basename(path).slice(0, 100)}.${randomBytes(6).toString('hex')}.part`);
  try {
    return { draft, file: await open(draft, 'wx', MODE) };
  } catch (error) {
    return fail(`${path} cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
}
