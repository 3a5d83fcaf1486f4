import { FolderStorage } from './folder-storage.ts';
import { isRemote, type Storage } from './storage.ts';

/**
 * Opens a place.
 * @param place a path, or `s3://bucket/prefix`
 */
export async function openStorage(place: string): Promise<Storage> {
  if (!isRemote(place)) return new FolderStorage(place);
  // Loaded on demand: a backup to a folder does not wait for the client.
  const { S3Storage } = await import('./s3.ts');
  return new S3Storage(place);
}
