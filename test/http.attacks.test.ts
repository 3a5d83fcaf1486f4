import assert from 'node:assert/strict';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
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
