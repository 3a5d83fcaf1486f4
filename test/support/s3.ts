import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { freePort } from '../../soak/process.ts';
import { temporaryFolder } from './leave-nothing.ts';
import { findInstalled, standIn, startServer } from './stand-in.ts';

/** S3-compatible storage for tests: a real server if it is installed, and a stand-in. */

export const BUCKET = 'vault';
const KEYS = {
  AWS_ACCESS_KEY_ID: 'operator',
  AWS_SECRET_ACCESS_KEY: 'of-the-vault',
  AWS_REGION: 'us-east-1',
};

export type S3 = {
  /** The environment variables that a program needs to reach it. */
  readonly env: Readonly<Record<string, string>>;
};

/** A server with an empty bucket. @returns undefined if none is installed, which the test then prints */
export async function startRealS3(t: TestContext): Promise<S3 | undefined> {
  const program = findInstalled(t, 'versitygw', 'versitygw');
  if (program === undefined) return undefined;
  const folder = await temporaryFolder('scrip-s3-');
  t.after(() => rm(folder, { recursive: true, force: true }));
  await mkdir(join(folder, BUCKET));
  const address = `127.0.0.1:${await freePort()}`;
  const endpoint = `http://${address}`;
  await startServer(t, endpoint, program, ['--port', address, '--quiet', 'posix', folder], {
    ROOT_ACCESS_KEY: KEYS.AWS_ACCESS_KEY_ID,
    ROOT_SECRET_KEY: KEYS.AWS_SECRET_ACCESS_KEY,
  });
  return { env: { ...KEYS, AWS_ENDPOINT_URL_S3: endpoint } };
}

export type StandIn = S3 & {
  readonly objects: Map<string, Buffer>;
  /** Makes every request fail with a code, or with `undefined` succeed again. */
  fail(code: string | undefined, status?: number): void;
};

/** A stand-in that follows the S3 API as far as backups need it. It compares the digest of each body. */
export async function startStandInS3(t: TestContext): Promise<StandIn> {
  const objects = new Map<string, Buffer>();
  let failure: { code: string; status: number } | undefined;
  const uploads: Uploads = { started: 0, parts: new Map() };
  const { url: endpoint } = await standIn(t, async (request, response) => {
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>));
    if (failure) return refuse(response, failure.status, failure.code);
    const url = new URL(request.url ?? '', 'http://s3');
    const [, bucket = '', ...path] = url.pathname.split('/').map(decodeURIComponent);
    if (bucket !== BUCKET) return refuse(response, 404, 'NoSuchBucket');
    const digest = request.headers['x-amz-content-sha256'];
    if (/^[0-9a-f]{64}$/.test(String(digest)) && createHash('sha256').update(body).digest('hex') !== digest)
      return refuse(response, 400, 'XAmzContentSHA256Mismatch');
    answer({ request, response, url, key: path.join('/'), body, objects, uploads });
  });
  return {
    env: { ...KEYS, AWS_ENDPOINT_URL_S3: endpoint },
    objects,
    fail(code, status = 503) {
      failure = code === undefined ? undefined : { code, status };
    },
  };
}

type Call = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
  readonly key: string;
  readonly body: Buffer;
  readonly objects: Map<string, Buffer>;
  readonly uploads: Uploads;
};

type Uploads = { started: number; readonly parts: Map<string, Buffer> };

function answer(call: Call): void {
  const { request, response, url, key, body, objects, uploads } = call;
  const { parts } = uploads;
  const { searchParams: query } = url;
  const xml = (text: string) => response.setHeader('content-type', 'application/xml').end(text);
  const upload = query.get('uploadId');
  switch (request.method) {
    case 'HEAD':
      return void response.end();
    case 'GET':
      if (key === '') return void xml(listing(objects, query));
      if (!objects.has(key)) refuse(response, 404, 'NoSuchKey');
      else response.end(objects.get(key));
      return;
    case 'PUT':
      if (upload === null) objects.set(key, body);
      else parts.set(`${upload}/${query.get('partNumber')?.padStart(5, '0')}`, body);
      return void response.setHeader('etag', '"e"').end();
    case 'POST':
      if (query.has('uploads'))
        return void xml(
          `<R><Bucket>${BUCKET}</Bucket><Key>${key}</Key><UploadId>${++uploads.started}</UploadId></R>`,
        );
      if (query.has('delete')) {
        for (const [, name = ''] of body.toString().matchAll(/<Key>(.*?)<\/Key>/g)) objects.delete(name);
        return void xml('<DeleteResult/>');
      }
      objects.set(
        key,
        Buffer.concat(
          [...parts]
            .filter(([at]) => at.startsWith(`${upload}/`))
            .sort()
            .map(([, part]) => part),
        ),
      );
      for (const at of parts.keys()) if (at.startsWith(`${upload}/`)) parts.delete(at);
      return void xml('<CompleteMultipartUploadResult><ETag>"e"</ETag></CompleteMultipartUploadResult>');
    default:
      refuse(response, 405, 'MethodNotAllowed');
  }
}

function listing(objects: Map<string, Buffer>, query: URLSearchParams): string {
  const prefix = query.get('prefix') ?? '';
  const found = [...objects.keys()].filter((key) => key.startsWith(prefix)).sort();
  const folders = new Set<string>();
  const keys = found.filter((key) => {
    const end = query.has('delimiter') ? key.indexOf('/', prefix.length) : -1;
    if (end !== -1) folders.add(key.slice(0, end + 1));
    return end === -1;
  });
  return `<ListBucketResult>${keys.map((key) => `<Contents><Key>${key}</Key></Contents>`).join('')}${[
    ...folders,
  ]
    .map((each) => `<CommonPrefixes><Prefix>${each}</Prefix></CommonPrefixes>`)
    .join('')}<IsTruncated>false</IsTruncated></ListBucketResult>`;
}

function refuse(response: ServerResponse, status: number, code: string): void {
  response.writeHead(status, { 'content-type': 'application/xml' });
  response.end(`<Error><Code>${code}</Code><Message>${code}</Message></Error>`);
}
