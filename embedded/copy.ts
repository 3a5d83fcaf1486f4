import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';

/** Copies of files whose digest is taken on the way. */

const CHUNK_BYTES = 1024 ** 2;

export type Copied = { readonly sha256: string; readonly bytes: number };

/**
 * Copies a file, and waits until it is on the disk. Memory does not grow with the file.
 * @param target undefined to take the digest only
 */
export async function copyFile(source: string, target: string | undefined): Promise<Copied> {
  const from = await open(source, 'r');
  try {
    const to = target === undefined ? undefined : await open(target, 'wx', 0o600);
    try {
      const hash = createHash('sha256');
      const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
      let bytes = 0;
      for (;;) {
        const { bytesRead } = await from.read(buffer, 0, CHUNK_BYTES, null);
        if (bytesRead === 0) break;
        const chunk = buffer.subarray(0, bytesRead);
        hash.update(chunk);
        await to?.writeFile(chunk);
        bytes += bytesRead;
      }
      await to?.sync();
      return { sha256: hash.digest('hex'), bytes };
    } finally {
      await to?.close();
    }
  } finally {
    await from.close();
  }
}

/** Writes a small file, and waits until it is on the disk. */
export async function writeWhole(target: string, data: string | Uint8Array): Promise<Copied> {
  const bytes = Buffer.from(data);
  const to = await open(target, 'wx', 0o600);
  try {
    await to.writeFile(bytes);
    await to.sync();
  } finally {
    await to.close();
  }
  return { sha256: createHash('sha256').update(bytes).digest('hex'), bytes: bytes.length };
}

/** Waits until what was created in a folder, or renamed, is on the disk. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  await folder.sync().finally(() => folder.close());
}
