import { readPieceName } from '../embedded/archive.ts';
import type { Storage } from '../embedded/storage.ts';

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
