import assert from 'node:assert/strict';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import type { Sandbox } from '../../src/http/sandbox.ts';
import { buildServer } from '../../src/http/server.ts';
import { serviceWithoutDatabase } from '../support/harness.ts';
import { exchange, startBare } from '../support/http.bare.ts';

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

/** Paths that no route has, and what is not HTTP. */
const ODD_TARGETS = ['/nothing', '/%', '/docs/none', '/api/v2/none', '/operator/v1/none', 'no path'];
const ODD_METHODS = ['OPTIONS', 'CONNECT', 'PROPFIND', 'TRACE', 'NONSENSE'];

const OF_TILLS = /^\/(merchant-client|api)\/v2\//;

/** What may be kept in a cache: files that everybody may read. */
const PUBLIC = /^\/(docs|console\/assets|favicon\.ico)/;

const SANDBOX: Sandbox = {
  set: () => ({ keyId: '', secret: '', updatedReference: '', vouchers: [] }),
  renew: async () => {},
  now: () => new Date(),
  advance: async () => {},
};

/** Every route of a server, as a request of each of its methods. */
function requestsOf(app: FastifyInstance): (readonly [method: string, path: string])[] {
  const parts: string[] = [];
  return app
    .printRoutes({ commonPrefix: false })
    .split('\n')
    .flatMap((line) => {
      const [, indent = '', part = '', methods = ''] = /^(.*─ )?(.*) \((.*)\)$/.exec(line) ?? [];
      parts.splice(indent.length / 4 - 1, parts.length, part);
      const path = parts.join('').replace(/:\w+|\*/g, '1');
      return methods ? methods.split(', ').map((method) => [method, path] as const) : [];
    });
}

test('every route tells browsers to load nothing foreign, to tell nobody, to use https, and to keep no data', async (t) => {
  const service = serviceWithoutDatabase();
  const app = buildServer(service, { publicUrl: 'https://vouchers.example.com', sandbox: SANDBOX });
  t.after(() => Promise.all([app.close(), service.db.close()]));
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const headOf = async (method: string, target: string) => {
    const head = `${method} ${target} HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nConnection: close\r\n\r\n`;
    return (await exchange(port, head)).split('\r\n\r\n')[0] ?? '';
  };
  const requests = requestsOf(app);
  assert.ok(requests.length > 250 && requests.some(([, path]) => path === '/portal/v1/users/1/end-sessions'));
  const odd = [
    ...ODD_TARGETS.map((path) => ['GET', path] as const),
    ...ODD_METHODS.map((method) => [method, '/console/'] as const),
  ];
  for (const [method, path] of [...requests, ...odd]) {
    const head = await headOf(method, path);
    const found = `${method} ${path}\n${head}`;
    assert.match(head, /^HTTP\/1\.1 \d\d\d /, found);
    assert.match(head, /\r\nx-content-type-options: nosniff/i, found);
    assert.match(head, /\r\nstrict-transport-security: max-age=31536000; includeSubDomains/i, found);
    if (!PUBLIC.test(path)) assert.match(head, /\r\ncache-control: no-store/i, found);
    // The programs of tills show nothing.
    if (OF_TILLS.test(path)) continue;
    assert.match(
      head,
      /\r\ncontent-security-policy: default-src 'none';[^\r]*object-src 'none'; base-uri 'none'/i,
      found,
    );
    assert.match(head, /\r\ncontent-security-policy: [^\r]*frame-ancestors 'none'/i, found);
    assert.match(head, /\r\nreferrer-policy: no-referrer/i, found);
    // Only the pages of the portal have a till, which scans cards.
    const camera = /^\/portal\/1?$/.test(path) ? /camera=\(self\), geo/ : /camera=\(\), geo/;
    assert.match(/\r\npermissions-policy: ([^\r]*)/i.exec(head)?.[1] ?? '', camera, found);
    assert.match(head, /\r\ncross-origin-opener-policy: same-origin/i, found);
    assert.match(head, /\r\ncross-origin-resource-policy: same-origin/i, found);
  }
});

test('a service without https asks for no https', async () => {
  const server = await startBare();
  const { port } = server.app.server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/console/`);
  await server.stop();
  assert.equal(response.headers.get('strict-transport-security'), null);
});
