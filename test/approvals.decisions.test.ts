import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setUserRoles } from '../src/people/users.ts';
import { floatOf, scene, topUp } from './approvals.ts';
import { type Browser, invited, signIn } from './browser.ts';
import { asOperator } from './harness.ts';

test('an effect that has changed is shown, and has to be confirmed', async (t) => {
  const { listening, ada, bob, merchantId } = await scene(t);
  const { approval } = (await ada.post('/floats/top-up', topUp(merchantId))).body;
  await bob.post('/floats/top-up', topUp(merchantId, 5));
  const before = await floatOf(listening);
  const changed = await bob.post(`/approvals/${approval.id}/approve`, {});
  assert.deepEqual([changed.status, changed.body.code], [409, 'effect-changed'], changed.text);
  assert.notDeepEqual(changed.body.effect, approval.effect);
  assert.equal(await floatOf(listening), before);
  const { effect } = changed.body;
  await bob.post('/floats/top-up', topUp(merchantId, 7));
  assert.equal((await bob.post(`/approvals/${approval.id}/approve`, { effect })).status, 409);
  const fresh = (await bob.post(`/approvals/${approval.id}/approve`, { effect })).body.effect;
  const confirmed = await bob.post(`/approvals/${approval.id}/approve`, { effect: fresh });
  assert.equal(confirmed.status, 200, confirmed.text);
  assert.equal(await floatOf(listening), before + 700 + 2_000_000);
});

test('a proposal expires after 72 hours, is withdrawn by its maker, or rejected with a comment', async (t) => {
  const { listening, ada, bob, people, merchantId } = await scene(t);
  const propose = async () =>
    (await ada.post('/floats/top-up', topUp(merchantId))).body.approval.id as string;
  const [withdrawn, rejected, expired] = [await propose(), await propose(), await propose()];
  assert.equal((await bob.post(`/approvals/${withdrawn}/withdraw`, {})).status, 403);
  assert.equal((await ada.post(`/approvals/${withdrawn}/withdraw`, {})).body.state, 'WITHDRAWN');
  const silent = await bob.post(`/approvals/${rejected}/reject`, {});
  assert.deepEqual([silent.status, silent.body.errors[0].field], [400, 'comment']);
  const turnedDown = await bob.post(`/approvals/${rejected}/reject`, { comment: 'Not on the statement.' });
  assert.deepEqual([turnedDown.body.state, turnedDown.body.checker], ['REJECTED', 'bob@example.com']);
  listening.clock.advance(72 * 3_600_000);
  const late = await signIn(listening, people[1]);
  for (const id of [withdrawn, rejected, expired])
    assert.equal((await late.post(`/approvals/${id}/approve`, {})).status, 409);
  assert.equal((await late.get(`/approvals/${expired}`)).body.state, 'EXPIRED');
});

test('a role that is worth as much as money is granted by two people', async (t) => {
  const { listening, ada, bob, people, merchantId } = await scene(t);
  assert.equal((await ada.post('/users', { email: 'support@example.com', roles: ['support'] })).status, 201);
  const { userId } = await invited(listening.service, {
    email: 'kiosk@example.com',
    roles: ['viewer'],
    merchantId: Number(merchantId),
  });
  // The owner of a merchant's portal approves nothing here.
  assert.equal((await ada.post(`/users/${userId}/set-roles`, { roles: ['owner'] })).status, 200);
  const owner = await ada.post('/users', { email: 'owner@example.com', roles: ['owner'] });
  assert.equal(owner.status, 202, owner.text);
  const approved = await bob.post(`/approvals/${owner.body.approval.id}/approve`, {});
  assert.match(approved.body.output.link, /^\/console\/enroll#/);
  assert.equal((await bob.get(`/approvals/${owner.body.approval.id}`)).body.output.link, null);
  const reset = await ada.post(`/users/${people[1].id}/reset-2fa`, {});
  assert.equal(reset.status, 202, reset.text);
  // Who may not propose it any more has proposed nothing.
  const pending = await proposeSettings(ada);
  await setUserRoles(asOperator(listening.service), people[0].id, ['support']);
  const refused = await bob.post(`/approvals/${pending}/approve`, {});
  assert.deepEqual([refused.status, refused.body.code], [409, 'conflict'], refused.text);
});

async function proposeSettings(browser: Browser): Promise<string> {
  const { status, body, text } = await browser.send('PATCH', '/settings', { approvalMode: 'delay' });
  assert.equal(status, 202, text);
  return body.approval.id;
}

test('an operator of one person approves after a quarter of an hour, or withdraws', async (t) => {
  const { listening, ada, bob, people, merchantId } = await scene(t);
  const id = await proposeSettings(ada);
  assert.equal((await bob.post(`/approvals/${id}/approve`, {})).status, 200);
  const { approval } = (await ada.post('/floats/top-up', topUp(merchantId))).body;
  const early = await ada.post(`/approvals/${approval.id}/approve`, {});
  assert.deepEqual([early.status, early.body.code], [409, 'conflict'], early.text);
  listening.clock.advance(15 * 60_000);
  const stale = await ada.post(`/approvals/${approval.id}/approve`, {});
  assert.deepEqual([stale.status, stale.body.code], [403, 'step-up-required']);
  await ada.post('/session/step-up', { totp: people[0].code(listening.clock.now()) });
  assert.equal((await ada.post(`/approvals/${approval.id}/approve`, {})).status, 200);
});
