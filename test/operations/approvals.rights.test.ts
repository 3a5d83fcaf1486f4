import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { OPERATIONS } from '../../src/operations/table.ts';
import { approved } from '../support/approvals.ts';
import { type Browser, enrolled, invited } from '../support/browser.ts';
import { basic, type ListeningService, startListening } from '../support/harness.ts';

/** An operation that gives a right, or lets codes out, needs two people as much as money does. */

let listening: ListeningService;
let ada: Browser;
let bob: Browser;
let dev: Browser;
let ops: Browser;
let kiosk: Awaited<ReturnType<ListeningService['createMerchant']>>;
let merchantId: string;

before(async () => {
  listening = await startListening();
  const join = async (email: string, role: string) =>
    (await enrolled(listening, { email, roles: [role] })).browser;
  ada = await join('ada@example.com', 'owner');
  bob = await join('bob@example.com', 'owner');
  dev = await join('dev@example.com', 'developer');
  ops = await join('ops@example.com', 'operations');
  kiosk = await listening.createMerchant();
  merchantId = String(kiosk.id);
});

after(() => listening?.stop());

type Key = { readonly keyId: string; readonly secret: string };

/** The status codes of an order and of a download with a key. */
async function codesOf({ keyId, secret }: Key): Promise<string[]> {
  const merchant = { ...kiosk, authorization: basic(keyId, secret) };
  const body = { reference: `of ${keyId}`, quantity: 1, value: 1 };
  const order = await listening.request(merchant, { method: 'POST', path: '/api/v2/vouchers', body });
  const path = '/api/v2/vouchers/none';
  const download = await listening.request(merchant, { method: 'GET', path });
  return [order.statusCode, download.statusCode];
}

test('a key that one person of the operator makes alone shows no codes', async () => {
  const alone = await dev.post('/api-keys', { merchantId });
  assert.equal(alone.status, 201, alone.text);
  assert.deepEqual(await codesOf(alone.body), ['03', '03']);
  const created = await ops.post('/merchants', { name: 'Corner shop' });
  assert.equal(created.status, 201, created.text);
  assert.deepEqual(await codesOf(created.body), ['03', '03']);
  for (const scope of ['generate', 'download'])
    assert.equal((await dev.post('/api-keys', { merchantId, scopes: ['redeem', scope] })).status, 202);
});

test('two people make a key that shows codes, and one of them may export codes', async () => {
  const propose = () => dev.post('/api-keys', { merchantId, scopes: ['generate', 'download'] });
  const other = await enrolled(listening, { email: 'dora@example.com', roles: ['developer'] });
  const proposed = await propose();
  const byDeveloper = await other.browser.post(`/approvals/${proposed.body.approval.id}/approve`);
  assert.equal(byDeveloper.status, 403, byDeveloper.text);
  assert.deepEqual(await codesOf(await approved(ops, proposed)), ['00', '60']);
});

test('a key is replaced by one person only if it shows no codes', async () => {
  const till = (await dev.post('/api-keys', { merchantId })).body;
  const replaced = await dev.post(`/api-keys/${till.keyId}/rotate`);
  assert.equal(replaced.status, 200, replaced.text);
  assert.deepEqual(await codesOf(replaced.body), ['03', '03']);
  assert.equal((await dev.post(`/api-keys/${kiosk.keyId}/rotate`)).status, 202);
});

test('an endpoint that gets codes is added by two people', async () => {
  const add = (full: boolean) => dev.post('/webhooks', { merchantId, url: 'https://example.com/hook', full });
  assert.equal((await add(true)).status, 202);
  assert.notEqual((await add(false)).status, 202);
});

test('a user of a merchant is invited, and gets roles, by two people of the operator', async () => {
  const invite = { email: 'shop@example.com', roles: ['viewer'], merchantId };
  assert.equal((await ada.post('/users', invite)).status, 202);
  const roles = ['viewer'];
  const { userId } = await invited(listening.service, {
    email: 'x@example.com',
    roles,
    merchantId: kiosk.id,
  });
  assert.equal((await ada.post(`/users/${userId}/set-roles`, { roles: ['owner'] })).status, 202);
  assert.equal((await ada.post('/users', { email: 'sue@example.com', roles: ['support'] })).status, 201);
});

test('a token with a second factor, a strong role or a merchant is made by two people', async () => {
  const make = async (token: object) => (await ada.post('/tokens', token)).status;
  for (const role of ['owner', 'finance', 'operations']) assert.equal(await make({ roles: [role] }), 202);
  for (const role of ['support', 'developer', 'auditor']) {
    assert.equal(await make({ roles: [role] }), 201);
    assert.equal(await make({ roles: [role], stepUp: true }), 202);
  }
  assert.equal(await make({ roles: ['viewer'], merchantId }), 202);
});

test('a merchant makes its own keys alone, and sees which ones it did not make', async () => {
  const { browser } = await enrolled(listening, { email: 'o@example.com', merchantId: kiosk.id });
  const made = await browser.post('/api-keys', {});
  assert.equal(made.status, 201, made.text);
  assert.deepEqual(await codesOf(made.body), ['00', '60']);
  const { items } = (await browser.get('/api-keys')).body;
  const own = items.filter(({ madeBy }: { madeBy: string }) => madeBy === 'merchant');
  assert.deepEqual(
    own.map(({ keyId }: Key) => keyId),
    [made.body.keyId],
  );
  assert.ok(items.length > 1);
});

test('some rights are given alone, but with a second factor', async () => {
  listening.clock.advance(5 * 60_000 + 1);
  for (const [path, body] of [
    [`/merchants/${merchantId}/permit`, { permission: 'update-redemption' }],
    [`/merchants/${merchantId}/resume`, {}],
    [`/api-keys/${kiosk.keyId}/pardon`, {}],
  ] as const) {
    const { status, body: answer } = await ada.post(path, body);
    assert.deepEqual([status, answer.code], [403, 'step-up-required'], path);
  }
  const warn = await bob.post('/floats/warn', { merchantId, below: 5 });
  assert.deepEqual([warn.status, warn.body.code], [403, 'step-up-required']);
});

test('an approval is read by its maker, by who could perform, propose or approve it, and by auditors', async () => {
  const proposed = await ada.post('/floats/refund', {
    ...{ merchantId, amount: 5, reference: 'back', reason: 'Paid back.' },
  });
  const id = String(proposed.body.approval.id);
  const own = await dev.post('/api-keys', { merchantId, scopes: ['generate'] });
  const auditor = await enrolled(listening, { email: 'aud@example.com', roles: ['auditor'] });
  const finance = await enrolled(listening, { email: 'fin@example.com', roles: ['finance'] });
  const seenBy = async (browser: Browser) => {
    const { items } = (await browser.get('/approvals')).body;
    const isListed = items.some((each: { id: string }) => each.id === id);
    assert.equal((await browser.get(`/approvals/${id}`)).status, isListed ? 200 : 404);
    return isListed;
  };
  const seen = [];
  for (const browser of [ada, bob, finance.browser, auditor.browser, ops, dev])
    seen.push(await seenBy(browser));
  assert.deepEqual(seen, [true, true, true, true, false, false]);
  assert.equal((await dev.get(`/approvals/${own.body.approval.id}`)).status, 200);
});

/** Operations of one person that show a secret or make a file of a change, each with its reason. */
const REVIEWED = ['approval.approve', 'settlement.file', 'sheets.download', 'webhook.rotate'];

test('every operation that shows a secret or makes a file of a change needs two people, or was reviewed', () => {
  const showing = OPERATIONS.filter(({ effect, output, files }) => {
    const { properties = {} } = output as { properties?: Record<string, { secret?: boolean }> };
    return effect !== 'read' && (files || Object.values(properties).some(({ secret }) => secret));
  });
  const alone = showing.filter(({ approval }) => approval?.people === 1);
  assert.deepEqual(alone.map(({ name }) => name).sort(), REVIEWED);
  // Without a second factor, nothing of that happens.
  for (const { name, risk } of showing) assert.notEqual(risk, 'plain', name);
});
