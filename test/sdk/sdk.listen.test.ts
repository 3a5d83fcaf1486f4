import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { signWebhook, verifyWebhook } from '../../sdk/src/index.ts';
import { ENVIRONMENT } from '../support/scrip.ts';

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
async function receiver(t: TestContext, status = 204) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => {
      body += part.toString();
    });
    request.on('end', () => {
      received.push({ body, headers: request.headers as Record<string, string> });
      response.writeHead(status).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received };
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
