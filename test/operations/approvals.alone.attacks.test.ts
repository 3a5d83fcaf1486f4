import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { isGlassClosed } from '../../src/people/persons.ts';
import { topUp } from '../support/approvals.ts';
import { accept, type Browser, enrolled, type Person } from '../support/browser.ts';
import { type ListeningService, testService } from '../support/harness.ts';

/**
 * The only person of an operator performs alone what two people otherwise have to agree on, until a second
 * person could approve. The attacks try to stay alone, to be alone again, or to count as two.
 */

let listening: ListeningService;
let merchantId: string;
let ada: { person: Person; browser: Browser };

beforeEach(async (t) => {
  listening = await testService(t as Parameters<typeof testService>[0]);
  merchantId = String((await listening.createMerchant()).id);
  ada = await enrolled(listening);
});

const refund = (by: Browser, reference = 'back', headers = {}) =>
  by.post('/floats/refund', { merchantId, amount: 5, reference, reason: 'Paid back.' }, headers);

async function stepUp({ person, browser }: typeof ada) {
  listening.clock.advance(30_000);
  const { status } = await browser.post('/session/step-up', { totp: person.code(listening.clock.now()) });
  assert.equal(status, 200);
}

/** The kinds of the actors of the audit's entries with an action, oldest first. */
async function kindsOf(action: string) {
  const rows = await listening.service.db.query<{ actor_kind: string }>(
    sql`select actor_kind from audit where action = ${action} order by sequence`,
  );
  return rows.map(({ actor_kind }) => actor_kind);
}

test('the only person refunds a float alone, with a fresh second factor, and the answer and the audit say so', async () => {
  const { browser } = ada;
  listening.clock.advance(5 * 60_000);
  const stale = await refund(browser);
  assert.deepEqual([stale.status, stale.body.code], [403, 'step-up-required']);
  await stepUp(ada);
  const session = await browser.get('/session');
  assert.equal(session.body.alone, true);
  const key = { 'idempotency-key': 'once' };
  const [done, again] = [await refund(browser, 'back', key), await refund(browser, 'back', key)];
  assert.deepEqual([done.status, done.body.approval], [200, { alone: true }], done.text);
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [200, 'true']);
  assert.deepEqual(await kindsOf('float.refund'), ['alone']);
  // What never needs two people is not marked.
  const small = await browser.post('/floats/top-up', topUp(merchantId, 5));
  assert.deepEqual([small.status, small.body.approval], [200, undefined]);
  assert.equal((await kindsOf('float.top-up')).at(-1), 'user');
});

test('a token of the only person proposes, and the person approves that alone', async () => {
  const made = await ada.browser.post('/tokens', { roles: ['finance'], stepUp: true });
  const asToken = { authorization: `Bearer ${made.body.token}`, cookie: undefined };
  const proposed = await refund(ada.browser, 'by token', asToken);
  assert.equal(proposed.status, 202, proposed.text);
  const { id } = proposed.body.approval;
  const { status } = await ada.browser.post(`/approvals/${id}/approve`, {}, asToken);
  assert.equal(status, 403);
  const approved = await ada.browser.post(`/approvals/${id}/approve`);
  assert.deepEqual([approved.status, approved.body.state, approved.body.alone], [200, 'APPROVED', true]);
  assert.deepEqual(await kindsOf('approval.approve'), ['alone']);
});

test('a straw man whom the only person invites is no second person, and no further only person', async () => {
  const invited = await ada.browser.post('/users', { email: 'straw@example.com', roles: ['owner'] });
  assert.deepEqual([invited.status, invited.body.approval], [201, { alone: true }]);
  const { id, link } = invited.body;
  const straw = (await accept(listening, link.split('#')[1])).browser;
  assert.equal((await straw.get('/session')).body.alone, false);
  const proposed = await refund(straw);
  assert.equal(proposed.status, 202, proposed.text);
  assert.equal((await straw.post(`/approvals/${proposed.body.approval.id}/approve`)).status, 403);
  for (const each of [ada.browser, straw])
    assert.equal((await each.post(`/users/${id}/confirm`)).status, 403);
  assert.equal((await straw.post('/users', { email: 'more@example.com', roles: ['finance'] })).status, 202);
  // The person is still alone, and remains so.
  assert.equal((await refund(ada.browser)).body.approval.alone, true);
  assert.equal(await isGlassClosed(listening.service), false);
});

test('two people are needed from the second person on, even if that person is disabled or demoted', async () => {
  const { browser } = ada;
  assert.equal((await refund(browser, 'alone')).status, 200);
  const bob = await enrolled(listening, { email: 'bob@example.com', roles: ['finance'] });
  await stepUp(ada);
  assert.equal((await browser.get('/session')).body.alone, false);
  const proposed = await refund(browser, 'two');
  assert.equal(proposed.status, 202);
  assert.equal((await bob.browser.post(`/approvals/${proposed.body.approval.id}/approve`)).status, 200);
  const pending = (await refund(browser, 'three')).body.approval.id;
  assert.equal((await browser.post(`/users/${bob.person.id}/set-roles`, { roles: ['support'] })).status, 200);
  assert.equal((await refund(browser, 'four')).status, 202);
  assert.equal((await browser.post(`/users/${bob.person.id}/disable`)).status, 200);
  assert.equal((await refund(browser, 'five')).status, 202);
  assert.equal((await browser.post(`/approvals/${pending}/approve`)).status, 403);
  assert.equal(await isGlassClosed(listening.service), true);
});

test('people who cannot approve movements of money do not end the time of the only person', async () => {
  const sam = await enrolled(listening, { email: 'sam@example.com', roles: ['support'] });
  await enrolled(listening, { email: 'eve@example.com', roles: ['operations', 'auditor'] });
  assert.equal((await sam.browser.get('/session')).body.alone, false);
  await stepUp(ada);
  assert.equal((await refund(ada.browser)).body.approval.alone, true);
  // A second owner is made by the only person; then they are two.
  const made = await ada.browser.post(`/users/${sam.person.id}/set-roles`, { roles: ['owner'] });
  assert.deepEqual([made.status, made.body.approval], [200, { alone: true }]);
  assert.equal((await refund(ada.browser, 'two')).status, 202);
});

test('the only person who chooses the delay waits', async () => {
  const chosen = await ada.browser.send('PATCH', '/settings', { approvalMode: 'delay' });
  assert.deepEqual([chosen.status, chosen.body.approval], [200, { alone: true }], chosen.text);
  const proposed = await refund(ada.browser);
  assert.equal(proposed.status, 202);
  const { id } = proposed.body.approval;
  assert.equal((await ada.browser.post(`/approvals/${id}/approve`)).status, 409);
  listening.clock.advance(15 * 60_000);
  await stepUp(ada);
  const approved = await ada.browser.post(`/approvals/${id}/approve`);
  assert.deepEqual([approved.status, approved.body.alone], [200, false]);
});

test('a person whose own account was reset over the API approves nothing until the machine confirms it', async () => {
  const reset = await ada.browser.post(`/users/${ada.person.id}/reset-2fa`);
  assert.deepEqual([reset.status, reset.body.approval], [200, { alone: true }], reset.text);
  const again = await accept(listening, reset.body.link.split('#')[1]);
  assert.equal((await refund(again.browser)).status, 202);
  assert.equal((await again.browser.post(`/users/${ada.person.id}/confirm`)).status, 403);
});
