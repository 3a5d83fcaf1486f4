import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { signWebhook, verifyWebhook } from '../../sdk/src/index.ts';
import { folderOf } from '../support/folder.ts';
import { ENVIRONMENT } from '../support/scrip.ts';
import { standIn } from '../support/stand-in.ts';
import { until } from '../support/until.ts';

/** Webhooks on a developer's machine: `listen` forwards deliveries, and `trigger` signs examples. */

const BIN = fileURLToPath(new URL('../../sdk/bin/scrip-client.mjs', import.meta.url));
const SECRET = `whsec_${btoa('a secret of thirty-two bytes, eh')}`;
const BODY = JSON.stringify({
  type: 'float.low',
  timestamp: '2026-03-01T11:59:59.000Z',
  data: { currency: 'EUR' },
});
const ENV = { ...ENVIRONMENT, SCRIP_WEBHOOK_SECRET: SECRET };

type Received = { readonly body: string; readonly headers: Record<string, string> };

/** A receiver that keeps deliveries, and answers with a status. */
async function receiver(t: TestContext, first = 204) {
  let status = first;
  const received: Received[] = [];
  const { url } = await standIn(t, (request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => {
      body += part.toString();
    });
    request.on('end', () => {
      received.push({ body, headers: request.headers as Record<string, string> });
      response.writeHead(status).end();
    });
  });
  const answer = (next: number) => {
    status = next;
  };
  return { url: `${url}/hook`, received, answer };
}

async function listen(t: TestContext, target: string) {
  const child = spawn(process.execPath, [BIN, 'listen', '--forward-to', target, '--port', '0', '--json'], {
    env: ENV,
  });
  t.after(() => child.kill('SIGKILL'));
  let out = '';
  child.stdout.on('data', (text: Buffer) => {
    out += text.toString();
  });
  const [first] = (await once(child.stderr, 'data')) as [Buffer];
  const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(first.toString())?.[0] ?? assert.fail(first.toString());
  return { url, child, output: () => out };
}

function trigger(...args: string[]): Promise<{ status: number; out: string; err: string }> {
  const { promise, resolve } = Promise.withResolvers<{ status: number; out: string; err: string }>();
  execFile(process.execPath, [BIN, 'trigger', ...args], { env: ENV }, (error, out, err) =>
    resolve({ status: error ? Number(error.code) : 0, out, err }),
  );
  return promise;
}

describe('webhooks on a developer’s machine', () => {
  it('are signed as the service signs them', async () => {
    const headers = await signWebhook(BODY, SECRET);
    assert.deepEqual(new Webhook(SECRET).verify(BODY, headers), JSON.parse(BODY));
    assert.equal((await verifyWebhook(BODY, headers, SECRET)).type, 'float.low');
    await assert.rejects(signWebhook(BODY, 'no secret!'), TypeError);
  });

  it('are verified, forwarded unchanged, and answered with the status of the receiver', async (t) => {
    const { url: target, received } = await receiver(t, 503);
    const { url, child, output } = await listen(t, target);
    const headers = { 'content-type': 'application/json', ...(await signWebhook(BODY, SECRET)) };
    const answer = await fetch(url, { method: 'POST', headers, body: BODY });
    assert.equal(answer.status, 503);
    const [delivery] = received;
    assert.equal(delivery?.body, BODY);
    new Webhook(SECRET).verify(BODY, delivery?.headers ?? {});
    const forged = { ...headers, 'webhook-id': 'msg_other' };
    assert.equal((await fetch(url, { method: 'POST', headers: forged, body: BODY })).status, 400);
    assert.equal(received.length, 1);
    const ended = once(child, 'exit');
    child.kill('SIGINT');
    await ended;
    assert.deepEqual(JSON.parse(output()), { id: headers['webhook-id'], type: 'float.low', status: 503 });
  });

  it('are read from a pull endpoint, signed, and forwarded until the receiver takes them', async (t) => {
    const folder = folderOf(t);
    const cursor = join(folder, 'cursor');
    const event = { id: 'msg_1', ...JSON.parse(BODY) };
    const asked: string[] = [];
    const service = await standIn(t, (request, response) => {
      asked.push(`${request.headers.authorization} ${request.url}`);
      const isNew = !request.url?.includes('after=3-1');
      response.end(JSON.stringify({ items: isNew ? [event] : [], nextCursor: '3-1' }));
    });
    const SCRIP_BASE_URL = `${service.url}/`;
    const env = { ...ENV, SCRIP_BASE_URL, SCRIP_PORTAL_TOKEN: 'scrip_token' };
    const { url, received, answer } = await receiver(t, 503);
    const args = ['listen', '--pull', '--cursor', cursor, '--forward-to', url, '--json'];
    const start = () => {
      const child = spawn(process.execPath, [BIN, ...args], { env, stdio: 'ignore' });
      t.after(() => child.kill('SIGKILL'));
      return child;
    };
    const first = start();
    await until('a refused event', () => received.length > 0);
    await assert.rejects(readFile(cursor, 'utf8'), { code: 'ENOENT' });
    answer(204);
    await until('the cursor', () => readFile(cursor, 'utf8').then(Boolean, () => false));
    assert.equal(await readFile(cursor, 'utf8'), '3-1\n');
    const { body, headers } = received.at(-1) ?? assert.fail();
    assert.deepEqual([body, headers['webhook-id']], [BODY, 'msg_1']);
    new Webhook(SECRET).verify(body, headers);
    const ended = once(first, 'exit');
    first.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
    const count = asked.length;
    start();
    await until('the next start', () => asked.length > count);
    assert.equal(asked[count], 'Bearer scrip_token /portal/v1/events?after=3-1');
  });

  it('are sent as examples of every event', async (t) => {
    const { url, received } = await receiver(t);
    const { err } = await trigger('nonsense', '--forward-to', url);
    const [, list = ''] = /EVENT must be one of ([^(]+) \(/.exec(err) ?? [];
    const types = list.trim().split(', ');
    assert.ok(types.length >= 7);
    for (const type of types) {
      const { status, err: why } = await trigger(type, '--forward-to', url);
      assert.equal(status, 0, why);
      const { body, headers } = received.at(-1) ?? assert.fail('no delivery');
      const event = new Webhook(SECRET).verify(body, headers) as { type: string };
      assert.equal(event.type, type);
    }
    const closed = createServer().listen(0, '127.0.0.1');
    await once(closed, 'listening');
    const { port } = closed.address() as AddressInfo;
    closed.close();
    const gone = await trigger('float.low', '--forward-to', `http://127.0.0.1:${port}/`);
    assert.deepEqual([gone.status, gone.out], [1, '']);
    assert.match(gone.err, /did not answer: ECONNREFUSED/);
  });
});
