import { execFile } from 'node:child_process';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { atEnd, opened } from '../test/support/leave-nothing.ts';

/** A small disk for the database alone, which can be filled to the last byte and emptied again. */

const run = promisify(execFile);

/** Room for the database, its programs and the log of some minutes. The disk is in memory. */
const SIZE_MB = 1_536;
/** The size of writes: the small one fills the last bytes. */
const PIECES = [1024 * 1024, 4096];

export class Disk {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Mounts a disk on an empty folder until the end of the run; undefined if the account may not mount one.
   */
  static async mount(folder: string): Promise<Disk | undefined> {
    // Registered before the command, which Ctrl-C may end after it has mounted the disk.
    atEnd(() => run('umount', ['--lazy', folder]).catch(() => {}));
    try {
      await opened(() =>
        run('mount', ['-t', 'tmpfs', '-o', `size=${SIZE_MB}m,mode=711`, 'scrip-soak', folder]),
      );
      return new Disk(folder);
    } catch {
      return undefined;
    }
  }

  get #filler(): string {
    return join(this.#folder, 'filler');
  }

  /** Writes until the disk is full. */
  async fill(): Promise<void> {
    const file = await open(this.#filler, 'a');
    try {
      for (const size of PIECES) {
        const piece = Buffer.alloc(size);
        // A disk that is nearly full accepts only a part of a piece.
        while ((await file.write(piece).catch(() => ({ bytesWritten: 0 }))).bytesWritten === size);
      }
    } finally {
      await file.close();
    }
  }

  async empty(): Promise<void> {
    await rm(this.#filler, { force: true });
  }
}
