import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const MEMORY = '/dev/shm';
/** Enough for the databases of a run, and of some runs beside it. */
const FREE_MIN_BYTES = 6 * 1024 ** 3;

/** Whether programs can run from a folder: some systems mount their memory without that right. */
async function canExecute(parent: string): Promise<boolean> {
  const folder = await mkdtemp(join(parent, 'scrip-probe-'));
  const program = join(folder, 'probe');
  try {
    await writeFile(program, '#!/bin/sh\n');
    await chmod(program, 0o755);
    await promisify(execFile)(program);
    return true;
  } catch {
    return false;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/**
 * Puts temporary folders into memory if there is room. Commits then do not wait for a disk, although the
 * databases keep all settings of durability, and a database is copied in a tenth of the time.
 */
export async function useMemory(): Promise<void> {
  if (process.env['TMPDIR'] !== undefined || process.availableMemory() < FREE_MIN_BYTES) return;
  const space = await statfs(MEMORY).catch(() => undefined);
  if (!space || space.bavail * space.bsize < FREE_MIN_BYTES || !(await canExecute(MEMORY))) return;
  process.env['TMPDIR'] = MEMORY;
  if (process.env['SCRIP_DATABASE_URL']) return;
  // Copying the files takes two checkpoints, which are slow on a disk and fast in memory.
  process.env['SCRIP_TEST_COPY'] = 'file_copy';
}
