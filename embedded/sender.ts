import { createReadStream } from 'node:fs';
import { readdir, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { constants, createGzip } from 'node:zlib';
import type pg from 'pg';
import {
  HISTORY,
  nameOf,
  pieceName,
  pieceOf,
  readName,
  SEGMENT,
  SEGMENT_BYTES,
  SPOOL,
  segmentsUpTo,
  TAIL,
  textToSign,
} from './archive.ts';
import type { Authenticator } from './authenticator.ts';
import { systemIdentifier } from './connect.ts';
import { contentOf, digestOf, digestOfAll, readChunks, readRange } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { exists, type Folder } from './folder.ts';
import type { Log } from './server.ts';
import type { Storage } from './storage.ts';

/**
 * Sends the log to the archive. PostgreSQL archives complete segments into the spool, from which one process
 * sends them. Of the segment that is being filled it sends the bytes that came since the last time. Each file
 * and each piece has a tag in its name, which proves to a restore that this installation wrote it.
 */

const TURN_MS = 1_000;
/** A segment is sent within a second. One that has waited for so long shows that none can be sent. */
const LATE_MS = 60_000;
/** A file that PostgreSQL has not finished. */
const UNFINISHED = '.new';
/** The process that sends holds this advisory lock of the server; when it ends, another one takes over. */
export const SENDER_LOCK = 7_236_921;

export class Sender {
  readonly #folder: Folder;
  readonly #archive: Storage;
  readonly #writer: Authenticator;
  readonly #log: Log;
  readonly #timer: NodeJS.Timeout;
  #client: pg.Client;
  /** The connection that holds the lock. */
  #holder: pg.Client | undefined;
  #identifier = '';
  #segment = '';
  #sent = 0;
  #keyId = '';
  #running: Promise<void> | undefined;
  #isFailing = false;

  constructor(folder: Folder, archive: Storage, writer: Authenticator, client: pg.Client, log: Log) {
    this.#folder = folder;
    this.#archive = archive;
    this.#writer = writer;
    this.#client = client;
    this.#log = log;
    this.#timer = setInterval(() => void this.#turn(), TURN_MS).unref();
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
    this.#running = this.#send()
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

  async #send(): Promise<void> {
    if (!(await this.#isOurs())) return;
    const { rows } = await this.#client.query<{ name: string; end: number }>(
      `
        select file_name as name, file_offset as "end"
        from pg_walfile_name_offset(pg_current_wal_flush_lsn())`,
    );
    const { name, end } = rows[0] as { name: string; end: number };
    // A restore reads on in a segment only from the end of the one before.
    for (const each of segmentsUpTo(this.#segment, name)) await this.#append(each, SEGMENT_BYTES);
    await this.#sendSpool();
    await this.#sendHistories();
    await this.#append(name, end);
  }

  /** Several processes may use the folder; one of them sends. */
  async #isOurs(): Promise<boolean> {
    const client = this.#client;
    if (this.#holder === client) return true;
    const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
      SENDER_LOCK,
    ]);
    if (!rows[0]?.taken) return false;
    this.#identifier = await systemIdentifier(client);
    // What waited while nobody sent is not late yet.
    if (!this.#holder) await touch(join(this.#folder.root, SPOOL));
    this.#holder = client;
    return true;
  }

  /** Sends what a segment has gained up to a position. */
  async #append(segment: string, end: number): Promise<void> {
    if (segment !== this.#segment) this.#sent = 0;
    this.#segment = segment;
    const start = this.#sent;
    if (end <= start) return;
    const source = join(this.#folder.cluster, 'pg_wal', segment);
    // If it is not there any more, PostgreSQL has archived it.
    if (!(await exists(source))) return;
    const content = Buffer.concat(await Array.fromAsync(readRange(source, start, end)));
    const { sha256 } = digestOf(content);
    const tag = this.#writer.sign(textToSign(this.#identifier, pieceOf(segment, start), sha256));
    await this.#archive.write(`${segment}${TAIL}/${pieceName({ position: start, tag })}`, contentOf(content));
    this.#sent = end;
  }

  /** Sends complete segments, and removes the pieces that they replace. */
  async #sendSpool(): Promise<void> {
    const spool = join(this.#folder.root, SPOOL);
    for (const file of (await readdir(spool)).sort()) {
      if (file.endsWith(UNFINISHED)) continue;
      // PostgreSQL also archives a note on each backup, which a restore does not need.
      if (SEGMENT.test(file) || HISTORY.test(file)) await this.#sendFile(file, join(spool, file));
      await this.#archive.remove(`${file}${TAIL}`);
      await rm(join(spool, file), { force: true });
    }
  }

  /**
   * Sends the histories of the timelines under the newest key, since each restore needs the newest one, and
   * the key under which it was sent first may have been dropped.
   */
  async #sendHistories(): Promise<void> {
    const [keyId = ''] = this.#writer.sign('').split('.');
    if (keyId === this.#keyId) return;
    const log = join(this.#folder.cluster, 'pg_wal');
    for (const file of await readdir(log))
      if (HISTORY.test(file)) await this.#sendFile(file, join(log, file));
    this.#keyId = keyId;
  }

  /** Sends a file, but never over another one of the same name. */
  async #sendFile(file: string, source: string): Promise<void> {
    const { sha256 } = await digestOfAll(readChunks(source));
    const text = textToSign(this.#identifier, file, sha256);
    const name = nameOf({ file, tag: this.#writer.sign(text), isPacked: true });
    const others = (await this.#archive.list('')).filter((each) => readName(each)?.file === file);
    if (others.includes(name)) return;
    for (const other of others) {
      const verdict = this.#writer.verify(text, readName(other)?.tag ?? '');
      if (verdict === 'changed')
        throw new EmbeddedError(
          `${this.#archive.name} contains another segment ${file}: archive to an empty place, and make a backup`,
        );
    }
    // One that was ended early, as each stop does, is zeros for the most part.
    const packed = createReadStream(source).compose(createGzip({ level: constants.Z_BEST_SPEED }));
    await this.#archive.write(name, packed as AsyncIterable<Uint8Array>);
  }
}

async function touch(folder: string): Promise<void> {
  const now = new Date();
  for (const name of await readdir(folder)) await utimes(join(folder, name), now, now).catch(() => {});
}

/**
 * Whether segments have waited for a minute in a data folder. While a process sends, the archive takes none.
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
