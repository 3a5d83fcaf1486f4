import files, { type FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

/**
 * Loaded before the program (`--import`): the process kills itself at step KILLED_AT of those that it takes
 * on files. It dies in the middle of a write, or just before a rename or a link.
 */

let left = Number(process.env['KILLED_AT']);
const isNow = () => --left === 0;
const die = () => process.kill(process.pid, 'SIGKILL');

const { open, writeFile, rename, link } = files;
files.writeFile = (async (path: string, text: string, options: object) => {
  if (!isNow()) return writeFile(path, text, options);
  await writeFile(path, text.slice(0, text.length / 2), options).finally(die);
}) as typeof writeFile;
files.rename = async (from, to) => void (isNow() ? die() : await rename(from, to));
files.link = async (from, to) => void (isNow() ? die() : await link(from, to));

files.open = async (...args) => {
  const file = await open(...args);
  const write = file.write.bind(file) as (bytes: Buffer, ...rest: unknown[]) => Promise<unknown>;
  const writeAndDie = async (bytes: Buffer, ...rest: unknown[]) => {
    const isLast = isNow();
    const done = await write(isLast ? bytes.subarray(0, bytes.length / 2) : bytes, ...(isLast ? [] : rest));
    return isLast ? die() : done;
  };
  return Object.assign(file, { write: writeAndDie as FileHandle['write'] });
};
syncBuiltinESMExports();
