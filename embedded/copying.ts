import { stat } from 'node:fs/promises';
import { type Copied, contentOf, Digest, digestOf, readChunks } from './copy.ts';
import { codeOf } from './folder.ts';
import { CLUSTER } from './manifest.ts';
import type { Draft } from './storage.ts';

/** Copies files into a backup, several at once, and keeps their digests. */
export class Copying {
  readonly files = new Map<string, Copied>();
  readonly #draft: Draft;
  readonly #parallel: number;
  readonly #running = new Set<Promise<void>>();
  readonly #failures: unknown[] = [];

  constructor(draft: Draft, parallel: number) {
    this.#draft = draft;
    this.#parallel = parallel;
  }

  makeFolder(path: string): Promise<void> {
    return this.#draft.makeFolder(`${CLUSTER}/${path}`);
  }

  async text(file: string, data: string | Uint8Array): Promise<void> {
    await this.#draft.write(file, contentOf(data));
    this.files.set(file, digestOf(data));
  }

  /** Begins to copy a file; waits while too many are being copied. */
  async file(file: string, source: string): Promise<void> {
    const copy = this.#copy(file, source)
      .catch((error: unknown) => {
        this.#failures.push(error);
      })
      .finally(() => this.#running.delete(copy));
    this.#running.add(copy);
    if (this.#running.size >= this.#parallel) await Promise.race(this.#running);
    if (this.#failures.length > 0) await this.done();
  }

  /** Waits for all of them. @throws what the first of them failed with */
  async done(): Promise<void> {
    await Promise.all(this.#running);
    if (this.#failures.length > 0) throw this.#failures[0];
  }

  async #copy(file: string, source: string): Promise<void> {
    const digest = new Digest();
    try {
      await this.#draft.write(file, digest.of(readChunks(source)));
    } catch (error) {
      // A table may be dropped, and its file with it, while the backup is made.
      if (codeOf(error) === 'ENOENT' && !(await stat(source).catch(() => undefined))) return;
      throw error;
    }
    this.files.set(file, digest.end());
  }
}
