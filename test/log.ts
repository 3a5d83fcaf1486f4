import { readPieceName } from '../embedded/archive.ts';
import { FolderStorage } from '../embedded/folder-storage.ts';
import type { Storage } from '../embedded/storage.ts';
import { openOwner } from '../src/db/pool.ts';
import type { Installation } from './installation.ts';
import { until } from './until.ts';

/** Whether the archived log contains a segment up to a position. */
export async function isArchived(archive: Storage, segment: string, end: number): Promise<boolean> {
  const names = await archive.list('');
  if (names.some((name) => name.startsWith(`${segment}.`) && name !== `${segment}.tail`)) return true;
  const pieces = await archive.list(`${segment}.tail`);
  for (const name of pieces) {
    let sent = readPieceName(name)?.position ?? 0;
    for await (const chunk of archive.read(`${segment}.tail/${name}`)) sent += chunk.length;
    if (sent >= end) return true;
  }
  return false;
}

/** Waits until all that was written to the log up to now is in the archive. */
export async function archived(installation: Installation): Promise<void> {
  const { out } = await installation.run(['db', 'url']);
  const client = await openOwner(out.trim());
  const [row] = await client
    .query<{ name: string; end: number }>({
      text: `
        select file_name as name, file_offset as "end"
        from pg_walfile_name_offset(pg_current_wal_flush_lsn())`,
      values: [],
    })
    .finally(() => client.close());
  const { name, end } = row as { name: string; end: number };
  const archive = new FolderStorage(installation.at('archive'));
  await until('the log is archived', () => isArchived(archive, name, end));
}
