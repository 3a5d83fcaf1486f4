import { constants } from 'node:fs';
import { open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { SEGMENT_BYTES, TAIL } from './archive.ts';
import { readRange } from './copy.ts';
import { exists, type Folder } from './folder.ts';
import type { Log } from './server.ts';

const TAIL_MS = 1_000;

/** Takes the part of the log that PostgreSQL has not archived yet. */
export type TailTarget = {
  /** Whether this process is the one that writes to it. */
  isOurs(client: pg.Client): Promise<boolean>;
  /** Removes what complete segments have replaced; sends those that must be sent. */
  catchUp(): Promise<void>;
  /** Adds to a segment the bytes from one position up to another. */
  append(segment: string, source: string, from: number, to: number): Promise<void>;
};

/** Copies the segment that is being filled, as it grows. */
export class Tail {
  readonly #folder: Folder;
  readonly #target: TailTarget;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #client: pg.Client;
  #segment = '';
  #copied = 0;
  #running: Promise<void> | undefined;
  #isFailing = false;

  constructor(folder: Folder, target: TailTarget, client: pg.Client, log: Log) {
    this.#folder = folder;
    this.#target = target;
    this.#client = client;
    this.#log = log;
    this.#timer = setInterval(() => void this.#turn(), TAIL_MS).unref();
  }

  /** Goes on with another connection: the server was started again. */
  use(client: pg.Client): void {
    this.#client = client;
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
    await this.#turn();
  }

  async #turn(): Promise<void> {
    if (this.#running) return;
    this.#running = this.#copy()
      .then(() => {
        this.#isFailing = false;
      })
      .catch((error: Error) => {
        // It is logged once; `scrip doctor` and the metrics show an archive that stays behind.
        if (!this.#isFailing) this.#log.error({ error: error.message }, 'the log cannot be archived');
        this.#isFailing = true;
      })
      .finally(() => {
        this.#running = undefined;
      });
    await this.#running;
  }

  async #copy(): Promise<void> {
    if (!(await this.#target.isOurs(this.#client))) return;
    const { rows } = await this.#client.query<{ name: string; end: number }>(
      `
        select file_name as name, file_offset as "end"
        from pg_walfile_name_offset(pg_current_wal_flush_lsn())`,
    );
    const { name, end } = rows[0] as { name: string; end: number };
    const isNext = name !== this.#segment;
    if (isNext) await this.#finish();
    await this.#target.catchUp();
    if (isNext) {
      this.#segment = name;
      this.#copied = 0;
    }
    if (end <= this.#copied) return;
    const source = join(this.#folder.cluster, 'pg_wal', name);
    await this.#target.append(name, source, this.#copied, end);
    this.#copied = end;
  }

  /** A restore reads on in the next segment only from the end of this one. */
  async #finish(): Promise<void> {
    if (this.#segment === '') return;
    const source = join(this.#folder.cluster, 'pg_wal', this.#segment);
    // Where it is not there any more, PostgreSQL has archived it.
    if (await exists(source)) await this.#target.append(this.#segment, source, this.#copied, SEGMENT_BYTES);
  }
}

/** In an archive that is a folder, the tail is a file beside the segments. */
export class FolderTail implements TailTarget {
  readonly #archive: string;

  constructor(archive: string) {
    this.#archive = archive;
  }

  /** Several processes write the same bytes. */
  async isOurs(): Promise<boolean> {
    return true;
  }

  async catchUp(): Promise<void> {
    for (const name of await readdir(this.#archive)) {
      if (!name.endsWith(TAIL)) continue;
      const segment = join(this.#archive, name.slice(0, -TAIL.length));
      if (await exists(segment)) await rm(join(this.#archive, name), { force: true });
    }
  }

  async append(segment: string, source: string, from: number, to: number): Promise<void> {
    const path = join(this.#archive, `${segment}${TAIL}`);
    const target = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
    try {
      // PostgreSQL takes segments of the full size only; the rest of it reads as zeros, where the log ends.
      await target.truncate(SEGMENT_BYTES);
      let at = from;
      for await (const chunk of readRange(source, from, to)) {
        await target.write(chunk, 0, chunk.length, at);
        at += chunk.length;
      }
      await target.datasync();
    } finally {
      await target.close();
    }
  }
}
