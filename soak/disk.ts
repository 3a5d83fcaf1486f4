import { execFile } from 'node:child_process';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { atEnd, opened } from '../test/leave-nothing.ts';

/** A small disk of its own for the database, which can be filled to the last byte, and emptied again. */

const run = promisify(execFile);

/** Room for the database, its programs and the log of some minutes; it lies in memory. */
const SIZE_MB = 1_536;
/** So that the last bytes are taken too. */
const PIECES = [1024 * 1024, 4096];

export class Disk {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Mounts a disk on an empty folder, until the end; undefined where this machine or account does not let us.
   */
  static async mount(folder: string): Promise<Disk | undefined> {
    // Also where a Ctrl-C has ended the command, which may have mounted it by then.
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

  /** Until nothing more can be written. */
  async fill(): Promise<void> {
    const file = await open(this.#filler, 'a');
    try {
      for (const size of PIECES) {
        const piece = Buffer.alloc(size);
        // A disk that is nearly full takes a part of a piece.
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
