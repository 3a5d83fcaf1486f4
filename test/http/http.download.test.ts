import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { findBatch } from '../../src/batches/export.ts';
import { fillBatch } from '../../src/batches/fill.ts';
import type { Service } from '../../src/context.ts';
import type { Sql } from '../../src/db/sql.ts';
import { buildServer } from '../../src/http/server.ts';
import { basic, startTestService, type TestService } from '../support/harness.ts';

const QUANTITY = 2_500;
/** The number of full pages of the batch. */
const FULL_PAGES = 9;
const PATHS = ['/merchant-client/v2/vouchers/large', '/api/v2/vouchers/large'];

let testService: TestService;
let authorization: string;
let pages = 0;
/** Changes each page of vouchers after it is read. */
let onPage: (rows: unknown[], page: number) => unknown[] = (rows) => rows;
let app: FastifyInstance;
let port: number;

before(async () => {
  testService = await startTestService();
  const { keyId, secret } = await testService.createMerchant({ float: 10_000_000n });
  authorization = basic(keyId, secret);
  const { service } = testService;
  app = buildServer(watchPages(service));
  await app.listen({ host: '127.0.0.1', port: 0 });
  port = (app.server.address() as AddressInfo).port;
  await app.inject({
    method: 'POST',
    url: '/api/v2/vouchers',
    headers: { authorization },
    payload: { reference: 'large', quantity: QUANTITY, value: 1 },
  });
  const { context } = await authenticate(service, authorization);
  // A turn of the production ends after a second, which may be too short for all vouchers.
  for (;;) {
    const { id, status } = await findBatch(context, 'large');
    if (status === 'COMPLETED') break;
    await fillBatch(service, id, () => false);
  }
});

after(async () => {
  await app?.close();
  await testService?.stop();
});

/** The same service, with each page of vouchers counted and passed through `onPage`. */
function watchPages(service: Service): Service {
  return {
    ...service,
    db: {
      ...service.db,
      async query<Row>(statement: Sql): Promise<Row[]> {
        const rows = await service.db.query<Row>(statement);
        if (!/\bsealed\b[\s\S]*\bvouchers\b/.test(statement.text)) return rows;
        return onPage(rows, ++pages) as Row[];
      },
    },
  };
}

const download = (path: string, encoding = 'identity') =>
  fetch(`http://127.0.0.1:${port}${path}`, { headers: { authorization, 'accept-encoding': encoding } });

type Received = { status: number | undefined; encoding: string | undefined; body: Buffer; complete: boolean };

/** The bytes of a download that arrive, and whether the answer was complete. */
function receive(path: string, accepted: string): Promise<Received> {
  const headers = { authorization, 'accept-encoding': accepted };
  return new Promise((resolve, reject) => {
    const request = get({ host: '127.0.0.1', port, path, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', () => {});
      response.on('close', () =>
        resolve({
          status: response.statusCode,
          encoding: response.headers['content-encoding'],
          body: Buffer.concat(chunks),
          complete: response.complete,
        }),
      );
    });
    request.on('error', reject);
  });
}

/** The values of Accept-Encoding that request gzip, and those that do not. */
const GZIP = [
  'gzip',
  'GZIP',
  'x-gzip',
  'gzip, deflate, br',
  'br;q=1, gzip;q=0.5',
  '*',
  '*;q=0.1',
  'gzip;q=0.001',
  'identity;q=0.5, gzip;q=0.5',
  'identity;q=0, *',
];
const PLAIN = [
  '',
  'identity',
  'br',
  'gzip;q=0',
  'gzip;q=0.000, *',
  '*;q=0',
  'identity, gzip;q=0.9',
  'gzip;q=x',
  'gzip;q=1.5',
  'gzipped',
];

/** Waits until no more pages are read. */
async function standstill(): Promise<number> {
  for (let still = 0, last = pages; still < 5; still = pages === last ? still + 1 : 0) {
    last = pages;
    assert.ok(pages < 10_000, 'a hundred megabytes are read for a client that does not read');
    await sleep(100);
  }
  return pages;
}

for (const path of PATHS) {
  describe(`GET ${path}`, () => {
    test('streams each voucher once, ordered by serial number, in one JSON document', async () => {
      onPage = (rows) => rows;
      const response = await download(path);
      assert.equal(response.status, 200);
      assert.equal(response.headers.get('transfer-encoding'), 'chunked');
      assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8');
      const { statusCode, message, data } = (await response.json()) as {
        statusCode: string;
        message: string;
        data: { status: string; vouchers: { serialNumber: number; code: string; pin: string }[] };
      };
      assert.deepEqual([statusCode, message, data.status], ['00', 'Success', 'COMPLETED']);
      assert.equal(data.vouchers.length, QUANTITY);
      assert.equal(new Set(data.vouchers.map(({ code }) => code)).size, QUANTITY);
      const serials = data.vouchers.map(({ serialNumber }) => serialNumber);
      assert.deepEqual(
        serials,
        serials.toSorted((a, b) => a - b),
      );
    });

    test('returns the same document compressed when the client accepts gzip', async () => {
      onPage = (rows) => rows;
      const plain = await receive(path, 'identity');
      for (const encoding of GZIP) {
        const { headers, rawPayload } = await app.inject({
          url: path,
          headers: { authorization, 'accept-encoding': encoding },
        });
        assert.deepEqual(
          [headers['content-encoding'], headers['vary']],
          ['gzip', 'accept-encoding'],
          encoding,
        );
        assert.equal(headers['content-type'], 'application/json; charset=utf-8');
        assert.ok(rawPayload.length < plain.body.length / 2);
        assert.deepEqual(gunzipSync(rawPayload), plain.body);
      }
      for (const encoding of PLAIN) {
        const { headers, rawPayload } = await app.inject({
          url: path,
          headers: { authorization, 'accept-encoding': encoding },
        });
        assert.deepEqual(
          [headers['content-encoding'], headers['vary']],
          [undefined, 'accept-encoding'],
          encoding,
        );
        assert.deepEqual(rawPayload, plain.body);
      }
    });

    test('answers HEAD with the headers of GET, and reads only the first page', async () => {
      onPage = (rows) => rows;
      for (const encoding of ['identity', 'gzip']) {
        const init = { headers: { authorization, 'accept-encoding': encoding } };
        const got = await fetch(`http://127.0.0.1:${port}${path}`, init);
        await got.arrayBuffer();
        pages = 0;
        const head = await fetch(`http://127.0.0.1:${port}${path}`, { ...init, method: 'HEAD' });
        assert.equal(head.status, 200);
        for (const name of ['content-type', 'content-length', 'content-encoding', 'vary', 'cache-control'])
          assert.equal(head.headers.get(name), got.headers.get(name), name);
        assert.equal(await head.text(), '');
        assert.equal(pages, 1);
      }
    });

    // Compressed pages take long to fill the buffers between server and client: one variant is enough.
    for (const encoding of path === PATHS[0] ? ['identity', 'gzip'] : ['identity']) {
      test(`reads as fast as the client does, and stops when it disconnects (${encoding})`, async () => {
        // The first pages repeat: a batch without end, and too varied to compress well.
        const kept: unknown[][] = [];
        onPage = (rows, page) => {
          if (kept.length < FULL_PAGES) kept.push(rows);
          // Larger pages for gzip, so that fewer of them fill the buffers between server and client.
          return encoding === 'gzip' ? kept.flat() : (kept[page % kept.length] ?? rows);
        };
        pages = 0;
        const socket = connect(port, '127.0.0.1');
        socket.write(
          `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nAccept-Encoding: ${encoding}\r\n\r\n`,
        );
        await once(socket, 'readable');
        const stalled = await standstill();
        assert.ok(stalled > 0);
        socket.destroy();
        const afterwards = await standstill();
        assert.ok(
          afterwards - stalled <= 2,
          `${afterwards - stalled} pages were read after the client disconnected`,
        );
        // It holds nothing: the next download works.
        onPage = (rows) => rows;
        assert.equal(
          (await download(path).then((response) => response.json() as Promise<{ statusCode: string }>))
            .statusCode,
          '00',
        );
      });

      test(`breaks the connection at a voucher that cannot be decrypted (${encoding})`, async () => {
        pages = 0;
        onPage = (rows, page) => {
          if (page < FULL_PAGES) return rows;
          return rows.map((row) => ({ ...(row as object), sealed: Buffer.from('02', 'hex') }));
        };
        const { body, complete } = await receive(path, encoding);
        assert.equal(complete, false);
        if (encoding === 'gzip') assert.throws(() => gunzipSync(body), /unexpected end/);
        else assert.throws(() => JSON.parse(body.toString()));
      });
    }

    test('answers 96 if a page fails before a compressed byte is sent', async () => {
      pages = 0;
      onPage = (rows, page) => {
        if (page === 2) throw new Error('a page that cannot be read');
        return rows;
      };
      const { status, encoding, body, complete } = await receive(path, 'gzip');
      if (status === 200) assert.deepEqual([encoding, complete], ['gzip', false]);
      else {
        assert.deepEqual([status, encoding, complete], [500, undefined, true]);
        assert.equal((JSON.parse(body.toString()) as { statusCode: string }).statusCode, '96');
      }
    });

    test('breaks the connection when a page cannot be read', async () => {
      pages = 0;
      onPage = (rows, page) => {
        if (page === 2) throw new Error('a page that cannot be read');
        return rows;
      };
      const response = await download(path);
      assert.equal(response.status, 200);
      await assert.rejects(response.text());
    });

    test('answers 503 when the first page cannot be read', async () => {
      onPage = () => {
        throw Object.assign(new Error('no database'), { code: 'ECONNREFUSED' });
      };
      const response = await download(path);
      assert.equal(response.status, 503);
      assert.equal(((await response.json()) as { statusCode: string }).statusCode, '91');
    });
  });
}
