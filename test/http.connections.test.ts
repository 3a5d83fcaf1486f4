import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { after, test } from 'node:test';
import { listen } from '../src/http/listen.ts';
import { buildServer } from '../src/http/server.ts';
import { serviceWithoutDatabase } from './harness.ts';

/** Nothing here gets as far as a database. */
const service = serviceWithoutDatabase();

after(() => service.db.close());

async function serve() {
  const app = buildServer(service);
  return { app, port: await listen(app, { host: '127.0.0.1', port: 0 }) };
}

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);

test('keeps a connection after a refusal', async () => {
  const request = (path: string, end = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${end}\r\n`;
  const { app, port } = await serve();
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(request('/nothing') + request('/api/v2/transactions') + request('/healthz', 'Connection: close\r\n'));
  await once(socket, 'close');
  assert.deepEqual(statuses(text), ['404', '401', '200']);
  await app.close();
});

test('tells who does not send the rest of a head or of a body that the time for it is over', async () => {
  const { app, port } = await serve();
  // Node exchanges them where that of the head is the greater one.
  assert.deepEqual([app.server.headersTimeout, app.server.requestTimeout], [30_000, 30_000]);
  app.server.headersTimeout = app.server.requestTimeout = 100;
  const head = 'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';
  const ends = ['', 'Content-Length: 20\r\n\r\n{"vouch', 'Transfer-Encoding: chunked\r\n\r\nfffff\r\n{"vouch'];
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

test('finishes what it accepted when it closes, and ends the connection with it', async () => {
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

test('answers a client that has closed its side of the connection, and ends the connection with it', async () => {
  const { app, port } = await serve();
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.end('GET /api/v2/transactions HTTP/1.1\r\n\r\nPOST /api/v2/redeem HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}');
  const told = (await socket.setEncoding('utf8').toArray()).join('');
  assert.deepEqual(statuses(told), ['401', '415']);
  await app.close();
});

/** Fifty connections like these kept every other client, and the database, waiting for seconds. */
test('a connection with too many unanswered requests is refused once, and closed behind the answers of the others', async () => {
  const { app, port } = await serve();
  const socket = connect(port, '127.0.0.1');
  socket.write('GET /healthz HTTP/1.1\r\n\r\n'.repeat(2_000));
  const told = (await socket.setEncoding('utf8').toArray()).join('');
  const expected = [...Array(32).fill('200'), '503'];
  assert.deepEqual(statuses(told), expected);
  assert.match(
    told.slice(told.lastIndexOf('HTTP/1.1 503')),
    /retry-after: 1\r\n[\s\S]*connection: close\r\n[\s\S]*"91"/i,
  );
  // What is answered in between makes room for more.
  const patient = connect(port, '127.0.0.1').setEncoding('utf8');
  for (let turn = 0; turn < 3; turn++) {
    patient.write('GET /healthz HTTP/1.1\r\n\r\n'.repeat(32));
    let text = '';
    while (statuses(text).length < 32) text += String((await once(patient, 'data'))[0]);
    assert.deepEqual(statuses(text), Array(32).fill('200'));
  }
  patient.destroy();
  await app.close();
});

/** Each turn of the event loop accepts one connection of each socket that listens, and under load a turn takes milliseconds. */
test('clients who connect at one moment do not wait for a turn each', async () => {
  const { app, port } = await serve();
  let accepted = 0;
  app.server.on('connection', () => accepted++);
  const clients = Array.from({ length: 256 }, () => connect(port, '127.0.0.1'));
  let turns = 0;
  for (; accepted < clients.length; turns++) await new Promise((resolve) => setImmediate(resolve));
  // Other systems than Linux do not share a port between sockets.
  if (process.platform === 'linux') assert.ok(turns < clients.length / 2, `${turns} turns`);
  for (const client of clients) client.destroy();
  await app.close();
});
