import assert from 'node:assert/strict';
import { request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { test } from 'node:test';
import { buildServer } from '../src/http/server.ts';
import { serviceWithoutDatabase } from './harness.ts';
import { startBare } from './http.bare.ts';

/** Attacks on the server itself, without credentials. */

/** Names of files that only look like those of the folders that are served. */
const ODD_NAMES = [
  '',
  'none.js',
  '..',
  '../x',
  '..%2f..%2fpackage.json',
  '%2e%2e/%2e%2e/package.json',
  '%2e%2e%2f%2e%2e%2fpackage.json',
  '..%5c..%5cpackage.json',
  '..\\..\\package.json',
  '%252e%252e%252fpackage.json',
  '/etc/passwd',
  '%2fetc%2fpasswd',
  'file:///etc/passwd',
  '%00',
  'index.html%00.js',
  '.git/config',
  '.vite/manifest.json',
  '%',
  '%ff',
  '%c0%ae%c0%ae/',
  'a'.repeat(300),
  'a'.repeat(14_000),
  'a/'.repeat(5_000),
];

/** Requests a path as it is written, which no browser and no URL would. */
function statusOf(port: number, path: string): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const sent = request({ host: '127.0.0.1', port, path, agent: false }, (response) => {
    response.resume().on('end', () => resolve(response.statusCode));
  });
  sent.on('error', reject).end();
  return promise;
}

test('no odd path of a static file is answered with a file or a 500', async (t) => {
  const server = await startBare();
  t.after(server.stop);
  const { port } = server.app.server.address() as AddressInfo;
  for (const prefix of ['/console/assets/', '/docs/guides/', '/docs/'])
    for (const name of ODD_NAMES) {
      const isIndex = name === '' && prefix !== '/console/assets/';
      const status = await statusOf(port, prefix + name);
      assert.equal(status, isIndex ? 200 : 404, `${prefix}${name.slice(0, 60)}`);
    }
});

/** Paths of every kind of answer: pages, files, APIs, redirects, refusals, and what is not HTTP. */
const ANSWERED = [
  ...['/', '/healthz', '/readyz', '/nothing', '/%', '/docs/', '/docs', '/docs/guides/', '/docs/none'],
  ...['/docs/operator/openapi.json', '/favicon.ico', '/console', '/console/', '/console/x', '/portal/'],
  ...['/console/assets/none.js', '/api/v2/transactions', '/merchant-client/v2/transactions', '/api/v2/none'],
  ...['/operator/v1/merchants', '/operator/v1/session', '/operator/v1/session/methods', '/operator/v1/none'],
  ...['/portal/v1/merchant', '/portal/v1/session', '/operator/v1/jobs/1/events'],
];

test('every answer tells browsers to guess no type, to load nothing foreign, and to use https', async (t) => {
  const service = serviceWithoutDatabase();
  const app = buildServer(service, { publicUrl: 'https://vouchers.example.com' });
  t.after(() => Promise.all([app.close(), service.db.close()]));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const headsOf = async (target: string, method = 'GET') => {
    const { promise, resolve } = Promise.withResolvers<string>();
    const socket = connect(port, '127.0.0.1');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
    });
    socket.once('close', () => resolve(text)).on('error', () => {});
    socket.write(`${method} ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    return (await promise).split('\r\n\r\n')[0] ?? '';
  };
  const heads = [
    ...ANSWERED.map((path) => headsOf(path)),
    ...['POST', 'OPTIONS', 'CONNECT', 'PROPFIND', 'NONSENSE'].map((method) => headsOf('/console/', method)),
    headsOf('no path'),
  ];
  for (const head of await Promise.all(heads)) {
    assert.match(head, /^HTTP\/1\.1 \d\d\d /);
    assert.match(head, /\r\nx-content-type-options: nosniff/i, head);
    assert.match(head, /\r\ncontent-security-policy: [^\r]*frame-ancestors '(none|self)'/i, head);
    assert.match(head, /\r\nstrict-transport-security: max-age=31536000; includeSubDomains/i, head);
  }
});

test('a service without https asks for no https', async () => {
  const server = await startBare();
  const { port } = server.app.server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/console/`);
  await server.stop();
  assert.equal(response.headers.get('strict-transport-security'), null);
});
