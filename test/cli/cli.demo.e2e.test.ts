import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { demoLinks, prepareDemo } from '../../src/cli/demo.ts';
import { invitations } from '../../src/people/invite.ts';
import { Browser } from '../support/browser.ts';
import { folderOf } from '../support/folder.ts';
import { asOperator, testService } from '../support/harness.ts';
import { Installation } from '../support/installation.ts';
import { startScrip } from '../support/scrip.ts';

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
  const folder = folderOf(t);
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

test('the demo ends with links that sign in an owner, finance, support and the owner of a portal', async (t) => {
  const { service, baseUrl, createMerchant } = await testService(t);
  // A database without the demo's history gets no second person.
  assert.equal((await demoLinks(service, baseUrl)).filter((line) => line.includes('#')).length, 1);
  const kiosk = await createMerchant({ name: 'Corner Kiosk' });
  const signInAll = async () => {
    const links = (await demoLinks(service, baseUrl)).filter((line) => line.includes('#'));
    return Promise.all(links.map((line) => follow(baseUrl, line)));
  };
  const [owner, finance, support, merchant] = await signInAll();
  const told = await Promise.all(
    [owner, finance, support, merchant].map(async (each) => (await each?.get('/session'))?.body),
  );
  assert.deepEqual(
    told.map(({ user, alone }) => [user.roles, user.merchantId, alone]),
    [
      [['owner'], null, false],
      [['finance'], null, false],
      [['support'], null, false],
      [['owner'], String(kiosk.id), false],
    ],
  );
  const body = { merchantId: String(kiosk.id), amount: 5, reference: 'back', reason: 'Paid back.' };
  const proposed = await finance?.post('/floats/refund', body);
  assert.equal(proposed?.status, 202, proposed?.text);
  const approved = await owner?.post(`/approvals/${proposed?.body.approval.id}/approve`);
  assert.deepEqual([approved?.status, approved?.body.state], [200, 'APPROVED'], approved?.text);
  // Another start works after somebody has reset or disabled a person, who stays disabled.
  assert.equal((await owner?.post(`/users/${told[2].user.id}/disable`))?.status, 200);
  const reset = await finance?.post(`/users/${told[1].user.id}/reset-2fa`);
  assert.equal(reset?.status, 403);
  await invitations.reset.run(asOperator(service), { id: told[1].user.id });
  const again = await signInAll();
  assert.deepEqual(
    await Promise.all(again.map(async (each) => (await each.get('/session')).status)),
    [200, 200, 401, 200],
  );
});

/** Opens a printed link. */
async function follow(baseUrl: string, line: string) {
  const [, app, link] = /\/(console|portal)\/sign-in#(\S+)$/.exec(line) ?? assert.fail(line);
  const browser = new Browser(baseUrl, app === 'console' ? 'operator' : 'portal');
  await browser.post('/session', { link });
  return browser;
}

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
