import { mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import {
  type ArchivedFile,
  nameOf,
  pieceName,
  pieceOf,
  readName,
  readPieceName,
  SEGMENT,
  SEGMENT_BYTES,
  TAIL,
  textToSign,
} from './archive.ts';
import { authenticate, type Writer } from './authenticator.ts';
import { digestOf } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { codeOf } from './folder.ts';
import type { Storage } from './storage.ts';

/** Reads the archived log for a restore, and accepts only what this installation wrote. */
export class LogReader {
  readonly place: string;
  readonly #archive: Storage;
  readonly #writer: Writer;
  readonly #identifier: string;
  readonly #names: readonly string[];
  readonly #files: readonly ArchivedFile[];

  private constructor(archive: Storage, writer: Writer, identifier: string, names: readonly string[]) {
    this.place = archive.name;
    this.#archive = archive;
    this.#writer = writer;
    this.#identifier = identifier;
    this.#names = names;
    this.#files = names.map(readName).filter((each) => each !== undefined);
  }

  static async open(archive: Storage, writer: Writer, systemIdentifier: string): Promise<LogReader> {
    return new LogReader(archive, writer, systemIdentifier, await archive.list(''));
  }

  /** The names in the archive. */
  get names(): readonly string[] {
    return this.#names;
  }

  /** Reads a history, or a segment, whole. @returns undefined if the archive has none of this name */
  async find(file: string): Promise<Buffer | undefined> {
    const candidates = this.#files.filter((each) => each.file === file);
    let failure: unknown;
    // After a rotation there may be one under each key, and the older key may have been dropped.
    for (const candidate of candidates) {
      try {
        return await this.#read(candidate);
      } catch (error) {
        failure = error;
      }
    }
    if (failure !== undefined) throw failure;
    return undefined;
  }

  /**
   * Fetches the log that a restore may need into a new folder, which PostgreSQL reads.
   * @param isNeeded whether it may need a segment
   */
  async fetch(folder: string, isNeeded: (segment: string) => boolean): Promise<void> {
    await mkdir(folder, { mode: 0o700 });
    for (const file of new Set(this.#files.map((each) => each.file)))
      if (!SEGMENT.test(file) || isNeeded(file))
        await writeFile(join(folder, file), (await this.find(file)) as Buffer, { mode: 0o600, flag: 'wx' });
    for (const name of this.#names.filter((each) => each.endsWith(TAIL))) {
      const segment = name.slice(0, -TAIL.length);
      const isWhole = this.#files.some((each) => each.file === segment);
      if (SEGMENT.test(segment) && !isWhole && isNeeded(segment)) await this.#fetchTail(segment, folder);
    }
  }

  /** What is known of a segment that was being filled; the rest of it reads as zeros, where the log ends. */
  async #fetchTail(segment: string, folder: string): Promise<void> {
    const target = await open(join(folder, `${segment}${TAIL}`), 'wx', 0o600);
    try {
      await target.truncate(SEGMENT_BYTES);
      for (const name of (await this.#archive.list(`${segment}${TAIL}`)).sort()) {
        const piece = readPieceName(name);
        if (!piece) continue;
        const { position, tag } = piece;
        const path = `${segment}${TAIL}/${pieceName(piece)}`;
        const content = await this.#contentOf(path, this.#archive.read(path), SEGMENT_BYTES - position);
        this.#authenticate(path, pieceOf(segment, position), content, tag);
        await target.write(content, 0, content.length, position);
      }
    } finally {
      await target.close();
    }
  }

  async #read(archived: ArchivedFile): Promise<Buffer> {
    const name = nameOf(archived);
    const stored = this.#archive.read(name);
    const content = archived.isPacked ? unpacked(stored) : stored;
    const read = await this.#contentOf(name, content, SEGMENT_BYTES);
    this.#authenticate(name, archived.file, read, archived.tag);
    return read;
  }

  async #contentOf(name: string, content: AsyncIterable<Uint8Array>, bytesMax: number): Promise<Buffer> {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    try {
      for await (const chunk of content) {
        bytes += chunk.length;
        if (bytes > bytesMax) throw new RangeError('too large');
        chunks.push(chunk);
      }
    } catch (error) {
      if (error instanceof EmbeddedError || codeOf(error)?.startsWith('E')) throw error;
      throw new EmbeddedError(`the file ${name} in ${this.place} is damaged: restore a copy of it`);
    }
    return Buffer.concat(chunks);
  }

  #authenticate(name: string, file: string, content: Buffer, tag: string): void {
    authenticate(
      this.#writer,
      { what: `the file ${name} in ${this.place}`, instead: 'the backup alone (--no-archive)' },
      textToSign(this.#identifier, file, digestOf(content).sha256),
      tag,
    );
  }
}

const unpacked = (stored: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> =>
  Readable.from(stored).compose(createGunzip()) as AsyncIterable<Uint8Array>;
