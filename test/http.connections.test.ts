import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { after, test } from 'node:test';
import { buildServer } from '../src/http/server.ts';
import { serviceWithoutDatabase } from './harness.ts';

/** No request of this file reaches the database. */
const service = serviceWithoutDatabase();

after(() => service.db.close());

async function serve() {
  const app = buildServer(service);
  await app.listen({ host: '127.0.0.1', port: 0 });
  return { app, port: (app.server.address() as AddressInfo).port };
}

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);

test('the server keeps a connection open after it has declined a request', async () => {
  const request = (path: string, end = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${end}\r\n`;
  const { app, port } = await serve();
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(
    request('/nothing') + request('/api/v2/transactions') + request('/healthz', 'Connection: close\r\n'),
  );
  await once(socket, 'close');
  assert.deepEqual(statuses(text), ['404', '401', '200']);
  await app.close();
});

test('a request whose head or body is not complete in time is answered with 408', async () => {
  const { app, port } = await serve();
  // Node swaps these timeouts if the one of the head is greater.
  assert.deepEqual([app.server.headersTimeout, app.server.requestTimeout], [30_000, 30_000]);
  app.server.headersTimeout = app.server.requestTimeout = 100;
  const head = 'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
  const ends = [
    '',
    'Content-Length: 20\r\n\r\n{"vouch',
    'Transfer-Encoding: chunked\r\n\r\nfffff\r\n{"vouch',
  ];
  const answers = ends.map(async (end) => {
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
    });
    socket.write(head + end);
    await once(socket, 'close');
    return text;
  });
  for (const answer of await Promise.all(answers)) {
    assert.match(answer, /^HTTP\/1\.1 408 /);
    assert.match(answer, /"statusCode":"98"/);
  }
  await app.close();
});

test('a server that closes answers an accepted request, then ends its connection', async () => {
  const { app, port } = await serve();
  const request = httpRequest({
    host: '127.0.0.1',
    port,
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

test('a server that closes ends an unused connection without waiting for its timeout', async (t) => {
  const { app, port } = await serve();
  const byForce = t.mock.method(app.server, 'closeAllConnections');
  const accepted = once(app.server, 'connection');
  const socket = connect(port, '127.0.0.1').resume();
  // A connection that is closed while it holds unread data is reset.
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await accepted;
  await app.close();
  await closed;
  assert.equal(byForce.mock.callCount(), 0);
});

test('a server that closes answers one request behind that in progress on a connection', async () => {
  const app = buildServer(service);
  const opened = Promise.withResolvers<void>();
  const worked: string[] = [];
  app.get('/wait/:name', async (request) => {
    worked.push((request.params as { name: string }).name);
    await opened.promise;
    return {};
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect((app.server.address() as AddressInfo).port, '127.0.0.1');
  const request = (name: string) => `GET /wait/${name} HTTP/1.1\r\nHost: x\r\n\r\n`;
  const accepted = once(app.server, 'request');
  socket.write(request('before'));
  await accepted;
  const closed = app.close();
  const behind = once(app.server, 'request');
  socket.write(request('last') + request('behind') + request('further'));
  await behind;
  opened.resolve();
  // The server no longer listens: a client that connects again is refused, not reset.
  socket.once('data', () => assert.equal(app.server.listening, false));
  const text = (await socket.setEncoding('utf8').toArray()).join('');
  await closed;
  assert.deepEqual(statuses(text), ['200', '200']);
  assert.deepEqual(worked, ['before', 'last']);
  assert.match(text.slice(text.lastIndexOf('HTTP/1.1')), /\r\nconnection: close\r\n/i);
});
