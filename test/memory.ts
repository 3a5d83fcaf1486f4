import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const MEMORY = '/dev/shm';
/** What the databases of a run need, and some runs beside it. */
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
 * Puts temporary folders into memory where there is room: commits then wait for no disk, though the
 * databases keep every setting of durability. A database is copied there in a tenth of the time.
 */
export async function useMemory(): Promise<void> {
  if (process.env['TMPDIR'] !== undefined || process.availableMemory() < FREE_MIN_BYTES) return;
  const space = await statfs(MEMORY).catch(() => undefined);
  if (!space || space.bavail * space.bsize < FREE_MIN_BYTES || !(await canExecute(MEMORY))) return;
  process.env['TMPDIR'] = MEMORY;
  if (process.env['SCRIP_DATABASE_URL']) return;
  // Copying the files takes two checkpoints, which wait for a disk, and not for memory.
  process.env['SCRIP_TEST_COPY'] = 'file_copy';
}
