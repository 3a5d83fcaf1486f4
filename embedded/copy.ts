import { createHash } from 'node:crypto';
import { open, rm } from 'node:fs/promises';

/** Copies of files whose digest is taken on the way. Memory does not grow with a file. */

const CHUNK_BYTES = 1024 ** 2;
/** A page of PostgreSQL. */
const CHUNK_MIN_BYTES = 8_192;

export type Copied = { readonly sha256: string; readonly bytes: number };

/** The content of a file, a piece at a time. */
export async function* readChunks(path: string): AsyncGenerator<Uint8Array> {
  yield* readRange(path, 0, Number.POSITIVE_INFINITY);
}

/** The bytes of a file from one position up to another, or to its end. */
export async function* readRange(path: string, start: number, end: number): AsyncGenerator<Uint8Array> {
  const from = await open(path, 'r');
  try {
    // Most files are small. A megabyte for each kept the garbage collector busy for a third of a backup.
    const { size } = await from.stat();
    for (let at = start; at < end; ) {
      // Each piece has memory of its own: a reader may hold several.
      const rest = Math.max(size - at, CHUNK_MIN_BYTES);
      const buffer = Buffer.allocUnsafeSlow(Math.min(CHUNK_BYTES, end - at, rest));
      const { bytesRead } = await from.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
  } finally {
    await from.close();
  }
}

/** A text as the content of a file. */
export async function* contentOf(data: string | Uint8Array): AsyncGenerator<Uint8Array> {
  yield Buffer.from(data);
}

/** Writes a new file, and waits until it is on the disk; what fails leaves none. */
export async function writeChunks(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const to = await open(path, 'wx', 0o600);
  try {
    for await (const chunk of content) await to.writeFile(chunk);
    await to.sync();
  } catch (error) {
    await rm(path, { force: true }).catch(() => {});
    throw error;
  } finally {
    await to.close();
  }
}

/** Takes the digest of a content that passes through to a reader. */
export class Digest {
  readonly #hash = createHash('sha256');
  #bytes = 0;

  async *of(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      this.#hash.update(chunk);
      this.#bytes += chunk.length;
      yield chunk;
    }
  }

  /** Of what has passed; once. */
  end(): Copied {
    return { sha256: this.#hash.digest('hex'), bytes: this.#bytes };
  }
}

/** Reads a content to its end. */
export async function digestOfAll(content: AsyncIterable<Uint8Array>): Promise<Copied> {
  const digest = new Digest();
  for await (const _ of digest.of(content));
  return digest.end();
}

export function digestOf(data: string | Uint8Array): Copied {
  const bytes = Buffer.from(data);
  return { sha256: createHash('sha256').update(bytes).digest('hex'), bytes: bytes.length };
}

/** Waits until what was created in a folder, or renamed, is on the disk. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  await folder.sync().finally(() => folder.close());
}
