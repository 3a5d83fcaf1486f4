import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { prepareDemo } from '../src/cli/demo.ts';
import { testService } from './harness.ts';
import { Installation } from './installation.ts';
import { startScrip } from './scrip.ts';

/** Sends the request of a printed curl line. */
async function paste(line: string) {
  const [, user = '', url = ''] = /^curl -u (\S+) -w '\\n' (\S+)/.exec(line) ?? assert.fail(line);
  const [, body] = / -d '([^']+)'$/.exec(line) ?? [];
  const headers = { authorization: `Basic ${btoa(user)}`, 'content-type': 'application/json' };
  const response = await fetch(url, { method: body ? 'POST' : 'GET', headers, ...(body && { body }) });
  return { url, body, ...((await response.json()) as { statusCode: string; data: Record<string, unknown> }) };
}

test('the curl lines of the demo work in order, on the vouchers that they generate', async (t) => {
  const { service, baseUrl } = await testService(t);
  const folder = await mkdtemp(join(tmpdir(), 'scrip-demo-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const lines = (await prepareDemo(service, baseUrl, folder)).filter((line) => line.startsWith('curl '));
  assert.equal(lines.length, 16);
  const ordered = new Set<unknown>();
  const activated: unknown[] = [];
  for (const line of lines) {
    const { url, body, statusCode, data } = await paste(line);
    assert.equal(statusCode, '00', line);
    const sent = JSON.parse(body ?? '{}');
    if (url.endsWith('/vouchers')) {
      for (const { code, serialNumber } of data['vouchers'] as Record<string, unknown>[])
        ordered.add(code).add(serialNumber);
    }
    const used = sent.serialNumber ?? (sent.code ?? sent.voucherCode)?.slice(0, 12);
    if (used !== undefined) assert.ok(ordered.has(used), line);
    if (url.endsWith('/activate')) activated.push(data['amount']);
  }
  assert.deepEqual(activated, [50, 25]);

  // A second start shows the same merchant, with orders of its own.
  const again = await prepareDemo(service, baseUrl, folder);
  const userOf = (line = '') => /-u (\S+)/.exec(line)?.[1];
  assert.equal(userOf(again.find((line) => line.startsWith('curl '))), userOf(lines[0]));
});

test('the first start of the demo says what it does, line by line, before it is ready', async (t) => {
  const { folder } = await Installation.make(t);
  const settings = { SCRIP_DATA_DIR: join(folder, 'data'), SCRIP_PORT: '0' };
  const { child, ended } = startScrip(settings, ['serve', '--demo']);
  t.after(() => child.kill('SIGKILL'));
  let text = '';
  child.stderr?.on('data', (piece) => {
    text += piece;
    if (text.includes('filling')) child.kill('SIGTERM');
  });
  const { out, err } = await ended;
  const [first, second] = err.split('\n');
  assert.equal(out, '');
  assert.match(first ?? '', /^scrip: first start: making a database in /);
  assert.match(second ?? '', /^scrip: filling the empty database with 90 days of history/);
});
