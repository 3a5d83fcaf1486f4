import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, open, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { constants, createGunzip, createGzip } from 'node:zlib';
import type pg from 'pg';
import { PACKED, SEGMENT, SEGMENT_BYTES, SPOOL, segmentIn, segmentNumber, TAIL } from './archive.ts';
import { Digest, readRange } from './copy.ts';
import { EmbeddedError } from './error.ts';
import type { Storage } from './storage.ts';
import type { TailTarget } from './tail.ts';

/**
 * The archived log in a bucket. PostgreSQL archives into a folder, from which one process sends each
 * segment, compressed. Of the segment that is being filled it sends the bytes that came since the last
 * time, as an object below `SEGMENT.tail` that is named by its position: objects cannot be appended to.
 */

/** A segment is sent within a second. One that has waited for so long shows that none can be sent. */
const LATE_MS = 60_000;
/** A file that PostgreSQL has not finished. */
const UNFINISHED = '.new';
/** The process that sends holds this lock of the server; when it ends, another one takes over. */
const LOCK = 7_236_921;
const POSITION_DIGITS = 8;

export class RemoteTail implements TailTarget {
  readonly #archive: Storage;
  readonly #spool: string;
  #client: pg.Client | undefined;

  constructor(archive: Storage, spool: string) {
    this.#archive = archive;
    this.#spool = spool;
  }

  async isOurs(client: pg.Client): Promise<boolean> {
    if (this.#client === client) return true;
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
      LOCK,
    ]);
    this.#client = rows[0]?.taken ? client : undefined;
    return this.#client !== undefined;
  }

  async catchUp(): Promise<void> {
    const names = (await readdir(this.#spool)).filter((name) => !name.endsWith(UNFINISHED)).sort();
    for (const name of names) {
      await this.#send(name);
      await this.#archive.remove(`${name}${TAIL}`);
      await rm(join(this.#spool, name), { force: true });
    }
  }

  async append(segment: string, source: string, from: number, to: number): Promise<void> {
    const position = String(from).padStart(POSITION_DIGITS, '0');
    await this.#archive.write(`${segment}${TAIL}/${position}`, readRange(source, from, to));
  }

  /** Sends a segment, but never over another one of the same name. */
  async #send(name: string): Promise<void> {
    const source = join(this.#spool, name);
    const packed = () =>
      createReadStream(source).compose(
        createGzip({ level: constants.Z_BEST_SPEED }),
      ) as AsyncIterable<Uint8Array>;
    if ((await this.#archive.list('')).includes(`${name}${PACKED}`)) {
      const sent = Readable.from(this.#archive.read(`${name}${PACKED}`)).compose(createGunzip());
      if ((await digestOfAll(sent)) === (await digestOfAll(createReadStream(source)))) return;
      throw new EmbeddedError(
        `${this.#archive.name} contains another segment ${name}: archive to an empty place, and make a backup`,
      );
    }
    await this.#archive.write(`${name}${PACKED}`, packed());
  }
}

/**
 * Whether segments wait in a data folder because the bucket takes none.
 * @param root the data folder
 */
export async function isLogWaiting(root: string): Promise<boolean> {
  const folder = join(root, SPOOL);
  for (const name of await readdir(folder).catch(() => [])) {
    const facts = await stat(join(folder, name)).catch(() => undefined);
    if (facts && Date.now() - facts.mtimeMs > LATE_MS) return true;
  }
  return false;
}

async function digestOfAll(content: AsyncIterable<Uint8Array>): Promise<string> {
  const digest = new Digest();
  for await (const _ of digest.of(content));
  return digest.end().sha256;
}

/**
 * Fetches the archived log that a restore may need into a folder.
 * @param first the number of the first segment that it may need
 */
export async function fetchLog(archive: Storage, folder: string, first: number): Promise<void> {
  await mkdir(folder, { mode: 0o700 });
  const names = await archive.list('');
  for (const name of names) {
    const segment = segmentIn(name);
    if (SEGMENT.test(segment) && segmentNumber(segment) < first) continue;
    const target = join(folder, segment);
    if (name.endsWith(PACKED))
      await pipeline(archive.read(name), createGunzip(), createWriteStream(target, { mode: 0o600 }));
    else if (name.endsWith(TAIL) && !names.includes(`${segment}${PACKED}`))
      await fetchTail(archive, name, `${target}${TAIL}`);
  }
}

async function fetchTail(archive: Storage, name: string, target: string): Promise<void> {
  const file = await open(target, 'wx', 0o600);
  try {
    await file.truncate(SEGMENT_BYTES);
    for (const position of await archive.list(name)) {
      let at = Number(position);
      for await (const chunk of archive.read(`${name}/${position}`)) {
        await file.write(chunk, 0, chunk.length, at);
        at += chunk.length;
      }
    }
  } finally {
    await file.close();
  }
}
