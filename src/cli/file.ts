import { rmSync } from 'node:fs';
import { link, lstat, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { draftName, writePrivate } from '../private-file.ts';
import { CommandError, fail } from './output.ts';

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

/**
 * Writes a file completely or not at all: it has a draft name until it is on the disk.
 * @param force whether it may replace another file
 */
export async function writeWhole(
  path: string,
  pieces: AsyncIterable<string | Buffer>,
  force: boolean,
): Promise<void> {
  const draft = draftName(join(dirname(path), `.${basename(path).slice(0, 100)}`));
  const discard = () => rmSync(draft, { force: true });
  // Even if the process exits without waiting.
  process.once('exit', discard);
  try {
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
  } finally {
    discard();
    process.off('exit', discard);
  }
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
