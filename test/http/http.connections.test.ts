import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { after, type TestContext, test } from 'node:test';
import { limitConnections } from '../../src/http/connections.ts';
import { buildServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/log.ts';
import { serviceWithoutDatabase } from '../support/harness.ts';
import { exchange } from '../support/http.bare.ts';
import { until } from '../support/until.ts';

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
  const requests = [request('/nothing'), request('/api/v2/transactions')];
  const text = await exchange(port, requests.join('') + request('/healthz', 'Connection: close\r\n'));
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
  for (const answer of await Promise.all(ends.map((end) => exchange(port, head + end)))) {
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

test('a server that closes accepts connections for the whole time that a load balancer may need', async () => {
  const app = buildServer(service, { drain: () => ({ leastMs: 1_000, mostMs: 1_000 }) });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const closed = app.close();
  for (let times = 0; times < 2; times++) {
    const response = await fetch(`http://127.0.0.1:${port}/readyz`);
    assert.equal(response.status, 503);
    assert.equal(response.headers.get('connection'), 'close');
    await response.text();
  }
  await closed;
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

test('a connection is closed after the answer to what is not HTTP, also if its client keeps its side open', async () => {
  const { app, port } = await serve();
  app.server.headersTimeout = app.server.requestTimeout = 100;
  const sockets = ['', 'nonsense\r\n\r\n', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'].map((bytes) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {}).write(bytes);
    return socket.resume();
  });
  const connections = () =>
    new Promise<number>((resolve) => app.server.getConnections((_error, count) => resolve(count)));
  await Promise.all(sockets.map((socket) => once(socket, 'end')));
  await until('what is expected', async () => (await connections()) === 0);
  for (const socket of sockets) socket.destroy();
  await app.close();
});

/** A server with few connections for an address, whose requests wait until the test lets them go. */
async function limited(t: TestContext, limits: { all: number; ofAddress: number }, proxies: string[] = []) {
  const opened = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    request.resume();
    const wait = request.url === '/wait' ? opened.promise : Promise.resolve();
    void wait.then(() => response.end('done'));
  });
  const lines: string[] = [];
  const log = createLogger('warn', { write: (line) => void lines.push(line) });
  limitConnections(server, log, proxies, limits);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  /** Connects, sends something, and collects what is answered. */
  const open = async (bytes: string, localAddress = '127.0.0.1') => {
    const accepted = once(server, 'connection');
    const socket = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {});
    sockets.push(socket);
    const held = { socket, text: '', isClosed: false };
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      held.text += chunk;
    });
    socket.once('close', () => {
      held.isClosed = true;
    });
    await accepted;
    const received = bytes.includes('\r\n\r\n') ? once(server, 'request') : undefined;
    socket.write(bytes);
    // A connection that was refused sends no request.
    await Promise.race([received, once(socket, 'close')]);
    return held;
  };
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  return { open, lines, release: opened.resolve };
}

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const WAIT = 'GET /wait HTTP/1.1\r\nHost: x\r\n\r\n';
const BODY = 'POST /wait HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1';

test('silent connections of an address make room for its next one, the oldest first', async (t) => {
  const { open, lines } = await limited(t, { all: 50, ofAddress: 5 });
  const silent: { isClosed: boolean }[] = [];
  for (let count = 0; count < 5; count++) silent.push(await open(count % 2 === 0 ? '' : 'GET / HTTP'));
  const till = await open(GET);
  await until('what is expected', () => till.text.includes('done') && silent[0]?.isClosed === true);
  assert.deepEqual(
    silent.map(({ isClosed }) => isClosed),
    [true, false, false, false, false],
  );
  assert.match(lines.join(''), /connections that send nothing were closed/);
});

test('a request in progress keeps its connection; slow bodies and then idle connections are closed', async (t) => {
  const { open, release } = await limited(t, { all: 50, ofAddress: 4 });
  const waiting = await open(WAIT);
  const idle = await open(GET);
  await until('what is expected', () => idle.text.includes('done'));
  const slow = await open(BODY);
  const other = await open(WAIT);
  const next = await open(GET);
  await until('what is expected', () => slow.isClosed && next.text.includes('done'));
  assert.equal(idle.isClosed, false);
  await open(WAIT);
  await until('what is expected', () => idle.isClosed);
  await open(WAIT);
  await until('what is expected', () => next.isClosed);
  const refused = await open(GET);
  await until('what is expected', () => refused.isClosed);
  release();
  await until('what is expected', () => [waiting, other].every(({ text }) => text.includes('done')));
});

test('another address, and a trusted proxy, have room while one address has used up its share', async (t) => {
  const { open } = await limited(t, { all: 50, ofAddress: 2 }, ['127.0.0.3/32']);
  const all = [];
  for (let count = 0; count < 2; count++) all.push(await open(WAIT));
  const refused = await open(GET);
  await until('what is expected', () => refused.isClosed);
  const other = await open(GET, '127.0.0.2');
  await until('what is expected', () => other.text.includes('done'));
  for (let count = 0; count < 5; count++) {
    const proxied = await open(WAIT, '127.0.0.3');
    assert.equal(proxied.isClosed, false);
  }
  assert.ok(all.every(({ isClosed }) => !isClosed));
});

test('silent connections of many addresses make room together', async (t) => {
  const { open } = await limited(t, { all: 6, ofAddress: 4 });
  const silent: { isClosed: boolean }[] = [];
  for (let host = 1; host <= 6; host++) silent.push(await open('', `127.0.0.${host}`));
  const till = await open(GET, '127.0.0.7');
  await until('what is expected', () => till.text.includes('done') && silent[0]?.isClosed === true);
});
