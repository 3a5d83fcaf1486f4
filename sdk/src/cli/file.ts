import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { link, lstat, open, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Voucher } from '../types.ts';
import { fail } from './command.ts';

/** Files of vouchers: CSV that only its owner reads, complete or absent. */

const MODE = 0o600;
/** Rows per piece. */
const PIECE = 500;

/**
 * RFC 4180, every cell in quotation marks. A cell that a spreadsheet would take for a formula gets an
 * apostrophe in front: a response must not run where the file is opened.
 */
function row(cells: readonly string[]): string {
  const quoted = cells.map(
    (cell) => `"${(/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell).replaceAll('"', '""')}"`,
  );
  return `${quoted.join(',')}\r\n`;
}

/** Vouchers as CSV, in pieces. */
export async function* toCsv(vouchers: AsyncIterable<Voucher> | Iterable<Voucher>): AsyncGenerator<string> {
  let rows = [row(['serialNumber', 'code', 'pin'])];
  for await (const { serialNumber, code, pin } of vouchers) {
    rows.push(row([String(serialNumber), code, pin ?? '']));
    if (rows.length < PIECE) continue;
    yield rows.join('');
    rows = [];
  }
  yield rows.join('');
}

/**
 * Refuses a path that cannot be written, before anything is ordered or downloaded.
 * @throws CommandError
 */
export async function checkTarget(path: string, force: boolean): Promise<void> {
  const found = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') fail(`${path} cannot be written (${error.code})`);
  });
  if (found && !found.isFile()) fail(`${path} exists, and is not an ordinary file`);
  if (found && !force) fail(`${path} exists: --force overwrites it`);
  const { draft, file } = await openDraft(path);
  await file.close();
  rmSync(draft, { force: true });
}

/** Writes a file under a name of its own until it is complete and on the disk. */
export async function writeWhole(path: string, pieces: AsyncIterable<string>, force: boolean): Promise<void> {
  const { draft, file } = await openDraft(path);
  const discard = () => rmSync(draft, { force: true });
  // Also when a second signal ends the process.
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

/** A link does not replace a file that has come into being meanwhile; a rename would. */
async function place(draft: string, path: string): Promise<void> {
  try {
    await link(draft, path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') fail(`${path} exists: --force overwrites it`);
    // A file system without links, such as a memory stick.
    if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
    await rename(draft, path);
  }
}

async function openDraft(path: string) {
  const draft = join(
    dirname(path),
    `.${basename(path).slice(0, 100)}.${randomBytes(6).toString('hex')}.part`,
  );
  try {
    return { draft, file: await open(draft, 'wx', MODE) };
  } catch (error) {
    return fail(`${path} cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
}
