import { Readable } from 'node:stream';
import {
  DeleteObjectsCommand,
  GetObjectCommand,
  HeadBucketCommand,
  ListObjectsV2Command,
  S3Client,
  type S3ServiceException,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { contentOf } from './copy.ts';
import { EmbeddedError } from './error.ts';
import { codeOf } from './folder.ts';
import { type Draft, MANIFEST, type Storage } from './storage.ts';

/**
 * S3-compatible storage. The client takes its keys, region and endpoint from the usual places of AWS:
 * the environment (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL_S3 …), the files of ~/.aws, or the
 * role of the machine.
 */

/** What is larger is sent in parts of this size, each with its digest. */
const PART_BYTES = 8 * 1024 ** 2;
/** Many files of a database are small, and each takes a round trip. Memory: two parts for each. */
const PARALLEL = 4;
const ATTEMPTS = 5;
const CONNECT_MS = 5_000;
/** Without an answer for so long, a request is tried again. */
const SILENCE_MS = 60_000;
/** The name of a backup; other folders of a bucket are not ours. */
const BACKUP = /^\d{8}T\d{9}Z$/;

export class S3Storage implements Storage {
  readonly name: string;
  readonly parallel = PARALLEL;
  readonly #bucket: string;
  /** Ends in a slash, or is empty. */
  readonly #prefix: string;
  readonly #client: S3Client;

  constructor(place: string) {
    const [, bucket = '', prefix = ''] = /^s3:\/\/([^/]+)\/?(.*?)\/*$/.exec(place) ?? [];
    if (bucket === '') throw new EmbeddedError(`${place} names no bucket: write s3://bucket/prefix`);
    this.name = `s3://${bucket}${prefix === '' ? '' : `/${prefix}`}`;
    this.#bucket = bucket;
    this.#prefix = prefix === '' ? '' : `${prefix}/`;
    this.#client = new S3Client({
      // Understood by every store; host names with a bucket in them are not.
      forcePathStyle: true,
      maxAttempts: ATTEMPTS,
      // Checksums in trailers are news to many stores. Each part has its digest in its signature.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: CONNECT_MS, requestTimeout: SILENCE_MS },
    });
  }

  async prepare(): Promise<void> {
    await this.#try(() => this.#client.send(new HeadBucketCommand({ Bucket: this.#bucket })));
  }

  async list(folder: string): Promise<string[]> {
    const at = this.#key(folder === '' ? '' : `${folder}/`);
    const names: string[] = [];
    for await (const { Contents = [], CommonPrefixes = [] } of this.#pages(at, '/')) {
      names.push(...Contents.map(({ Key = '' }) => Key.slice(at.length)));
      names.push(...CommonPrefixes.map(({ Prefix = '' }) => Prefix.slice(at.length, -1)));
    }
    return names.filter(Boolean);
  }

  async *read(file: string): AsyncGenerator<Uint8Array> {
    const { Body } = await this.#try(() =>
      this.#client.send(new GetObjectCommand({ Bucket: this.#bucket, Key: this.#key(file) })),
    );
    try {
      yield* Body as Readable;
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async write(file: string, content: AsyncIterable<Uint8Array>): Promise<void> {
    const upload = new Upload({
      client: this.#client,
      params: { Bucket: this.#bucket, Key: this.#key(file), Body: Readable.from(content) },
      partSize: PART_BYTES,
      queueSize: 1,
    });
    await this.#try(() => upload.done());
  }

  async remove(path: string): Promise<void> {
    for await (const { Contents = [] } of this.#pages(this.#key(path))) {
      const own = Contents.filter(
        ({ Key = '' }) => Key === this.#key(path) || Key.startsWith(`${this.#key(path)}/`),
      );
      if (own.length === 0) continue;
      const { Errors = [] } = await this.#try(() =>
        this.#client.send(
          new DeleteObjectsCommand({
            Bucket: this.#bucket,
            Delete: { Objects: own.map(({ Key }) => ({ Key })), Quiet: true },
          }),
        ),
      );
      const [failed] = Errors;
      if (failed) throw this.#explain(Object.assign(new Error(failed.Message), { name: failed.Code }));
    }
  }

  async begin(name: string): Promise<Draft> {
    return {
      // There are no folders: the manifest lists them.
      makeFolder: async () => {},
      write: (file, content) => this.write(`${name}/${file}`, content),
      commit: (_folders, { file, text }) => this.write(`${name}/${file}`, contentOf(text)),
      abandon: () => this.remove(name),
    };
  }

  async removeDrafts(): Promise<void> {
    for (const name of (await this.list('')).filter((each) => BACKUP.test(each)))
      if (!(await this.list(name)).includes(MANIFEST)) await this.remove(name);
  }

  async free(): Promise<undefined> {
    return undefined;
  }

  #key(path: string): string {
    return `${this.#prefix}${path}`;
  }

  async *#pages(prefix: string, delimiter?: string) {
    for (let from: string | undefined; ; ) {
      const page = await this.#try(() =>
        this.#client.send(
          new ListObjectsV2Command({
            Bucket: this.#bucket,
            Prefix: prefix,
            Delimiter: delimiter,
            ContinuationToken: from,
          }),
        ),
      );
      yield page;
      from = page.NextContinuationToken;
      if (from === undefined) return;
    }
  }

  async #try<Result>(run: () => Promise<Result>): Promise<Result> {
    try {
      return await run();
    } catch (error) {
      throw this.#explain(error);
    }
  }

  /** One line that says what to do. What was read from the database, and failed, stays as it is. */
  #explain(error: unknown): unknown {
    if (error instanceof EmbeddedError) return error;
    const { name, message, $metadata } = error as S3ServiceException;
    const status = $metadata?.httpStatusCode;
    if (name === 'NoSuchKey') return Object.assign(new Error(message), { code: 'ENOENT' });
    if (name === 'NoSuchBucket' || name === 'NotFound')
      return new EmbeddedError(`there is no bucket ${this.#bucket}: create it, or check ${this.name}`);
    if (status === 401 || status === 403)
      return new EmbeddedError(
        `${this.name} cannot be used with these keys (${name}): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they permit`,
      );
    if (name === 'CredentialsProviderError')
      return new EmbeddedError(
        `there are no keys for ${this.name}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role`,
      );
    if (status === undefined && /region/i.test(message))
      return new EmbeddedError(
        `AWS_REGION is not set: ${this.name} needs one (us-east-1 where a store has none)`,
      );
    if (status !== undefined)
      return new EmbeddedError(`${this.name} answers ${status} (${name}): ${message}`);
    const code = codeOf(error) ?? name;
    if (/^E[A-Z]+$/.test(code) && !/^E(NOENT|ACCES|PERM|IO|NOSPC)$/.test(code))
      return new EmbeddedError(
        `${this.name} cannot be reached (${code}): check the network, and AWS_ENDPOINT_URL_S3`,
      );
    if (name === 'TimeoutError')
      return new EmbeddedError(`${this.name} does not answer: check the network, and AWS_ENDPOINT_URL_S3`);
    return error;
  }
}
