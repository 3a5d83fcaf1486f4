import assert from 'node:assert/strict';
import { readPieceName } from '../../embedded/archive.ts';
import { openStorage } from '../../embedded/open-storage.ts';
import type { Storage } from '../../embedded/storage.ts';
import type { Installation } from './installation.ts';
import { until } from './until.ts';

/** Whether the archived log contains a segment up to a position. */
async function isArchived(archive: Storage, segment: string, end: number): Promise<boolean> {
  const names = await archive.list('');
  if (names.some((name) => name.startsWith(`${segment}.`) && name !== `${segment}.tail`)) return true;
  const tail = `${segment}.tail`;
  for (const name of await archive.list(tail)) {
    const piece = readPieceName(name);
    // A file without the name of a piece is still being written.
    if (!piece) continue;
    const bytes = await sizeOf(archive, `${tail}/${name}`).catch(async (error: unknown) => {
      // The pieces are removed as soon as the whole segment is archived.
      if ((await archive.list(tail)).includes(name)) throw error;
      return 0;
    });
    if (piece.position + bytes >= end) return true;
  }
  return false;
}

async function sizeOf(archive: Storage, file: string): Promise<number> {
  let bytes = 0;
  for await (const chunk of archive.read(file)) bytes += chunk.length;
  return bytes;
}

/** Waits until all that was written to the log up to now is in the archive. */
export async function archived(installation: Installation): Promise<void> {
  const [row] = await installation.query<{ name: string; end: number }>(`
select file_name as name, file_offset as "end" from pg_walfile_name_offset(pg_current_wal_flush_lsn())`);
  const { name, end } = row ?? assert.fail();
  const archive = await openStorage(installation.settings['SCRIP_ARCHIVE_DIR'] ?? assert.fail());
  await until('the log is archived', () => isArchived(archive, name, end));
}
