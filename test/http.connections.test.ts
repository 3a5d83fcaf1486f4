import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { after, test } from 'node:test';
import { openDatabase } from '../src/db/pool.ts';
import { buildServer } from '../src/http/server.ts';
import { createLogger } from '../src/log.ts';
import { newRingKey, readKeyRing } from '../src/secrets.ts';

/** Nothing here gets as far as a database. */
const db = openDatabase('postgres://nobody@127.0.0.1:1/nothing');
const service = {
  db,
  keys: readKeyRing(newRingKey(), 'the test'),
  log: createLogger('silent'),
  clock: () => new Date(),
};

after(() => db.close());

async function listen() {
  const app = buildServer(service);
  await app.listen({ host: '127.0.0.1', port: 0 });
  return app;
}

test('keeps a connection after a refusal', async () => {
  const request = (path: string, end = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${end}\r\n`;
  const app = await listen();
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(request('/nothing') + request('/api/v2/transactions') + request('/healthz', 'Connection: close\r\n'));
  await once(socket, 'close');
  assert.deepEqual(
    [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status),
    ['404', '401', '200'],
  );
  await app.close();
});

test('finishes what it accepted when it closes, and ends the connection with it', async () => {
  const app = await listen();
  const request = httpRequest({
    host: '127.0.0.1',
    port: (app.server.address() as AddressInfo).port,
    method: 'POST',
    path: '/api/v2/redeem',
    headers: { 'content-type': 'application/json', 'content-length': 2, connection: 'keep-alive' },
  });
  const accepted = once(app.server, 'request');
  request.write('{');
  await accepted;
  const closed = app.close();
  const answered = once(request, 'response');
  request.end('}');
  const [response] = await answered;
  assert.equal(response.statusCode, 401);
  assert.equal(response.headers.connection, 'close');
  response.resume();
  await closed;
});
