import { mkdir, readdir, realpath, rename, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { contentOf, readChunks, syncFolder, writeChunks } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { codeOf, makeFolder } from './folder.ts';
import type { Draft, Storage } from './storage.ts';

/** The end of the name of a folder that is not complete. */
export const PARTIAL = '.partial';

/** Backups in a folder of the file system. */
export class FolderStorage implements Storage {
  readonly name: string;
  /** More would only make the disk seek. */
  readonly parallel = 1;

  constructor(path: string) {
    this.name = resolve(path);
  }

  async prepare(): Promise<void> {
    await makeFolder(this.name).catch((error: Error) => {
      throw new EmbeddedError(error.message.replace('the data folder', 'the backup folder'));
    });
  }

  async list(folder: string): Promise<string[]> {
    return readdir(join(this.name, folder)).catch((error: unknown) => {
      if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return [];
      throw new EmbeddedError(`the folder ${join(this.name, folder)} cannot be read (${codeOf(error)})`);
    });
  }

  async *read(file: string): AsyncGenerator<Uint8Array> {
    const path = join(this.name, file);
    // A link could lead to any file, and a pipe would be waited for.
    const [root, target] = await Promise.all([realpath(this.name), realpath(path)]);
    if (target !== join(root, file) || !(await stat(target)).isFile())
      throw new EmbeddedError(`${path} is not a file of this folder: use another one`);
    yield* readChunks(target);
  }

  async write(file: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    const path = join(this.name, file);
    const draft = `${path}.new`;
    if (dirname(path) !== this.name) await this.#makeFolder(dirname(path));
    await rm(draft, { force: true });
    await writeChunks(draft, content);
    await rename(draft, path);
    await syncFolder(dirname(path));
  }

  /** Not the place itself: if that is gone, it is a disk that is not mounted. */
  async #makeFolder(path: string): Promise<void> {
    await mkdir(path, { mode: 0o700 }).catch((error: unknown) => {
      if (codeOf(error) !== 'EEXIST') throw error;
    });
  }

  async remove(path: string): Promise<void> {
    await rm(join(this.name, path), { recursive: true, force: true });
  }

  async begin(name: string): Promise<Draft> {
    const path = join(this.name, name);
    const draft = `${path}${PARTIAL}`;
    await mkdir(draft, { mode: 0o700 });
    const write = (file: string, content: AsyncIterable<Uint8Array>) =>
      writeChunks(join(draft, file), content);
    return {
      write,
      makeFolder: async (folder) => {
        await mkdir(join(draft, folder), { recursive: true, mode: 0o700 });
      },
      commit: async (folders, { file, text }) => {
        await write(file, contentOf(text));
        for (const folder of ['', ...folders]) await syncFolder(join(draft, folder));
        await rename(draft, path);
        await syncFolder(this.name);
      },
      abandon: () => rm(draft, { recursive: true, force: true }),
    };
  }

  async removeDrafts(): Promise<void> {
    for (const name of await this.list('')) if (name.endsWith(PARTIAL)) await this.remove(name);
  }

  async free(): Promise<number> {
    const { bavail, bsize } = await statfs(this.name);
    return bavail * bsize;
  }
}
