import assert from 'node:assert/strict';
import { test } from 'node:test';
import { authenticate } from '../../src/api-keys/authenticate.ts';
import { generate } from '../../src/batches/generate.ts';
import { sql } from '../../src/db/sql.ts';
import { createToken } from '../../src/people/tokens.ts';
import { users } from '../../src/people/users.ts';
import { approved, floatOf, scene, topUp, voucherOf } from '../support/approvals.ts';
import { accept, type Browser, enrolled, invited, signIn } from '../support/browser.ts';
import { asOperator } from '../support/harness.ts';

test('an approval of a changed effect is refused until the approver confirms the new one', async (t) => {
  const { listening, ada, bob } = await scene(t);
  const serialNumber = await voucherOf(listening);
  const adjust = (by: Browser, amount: number) =>
    by.post(`/vouchers/${serialNumber}/adjust`, { amount, reference: `${amount}`, reason: 'as agreed' });
  const balance = async () => (await bob.get(`/vouchers/${serialNumber}`)).body.balance;
  const { approval } = (await adjust(ada, 20_000)).body;
  assert.match(approval.effect[0].before.balance, /^USD /, 'an amount has its currency');
  await adjust(bob, 5);
  const changed = await bob.post(`/approvals/${approval.id}/approve`, {});
  assert.deepEqual([changed.status, changed.body.code], [409, 'effect-changed'], changed.text);
  assert.notDeepEqual(changed.body.effect, approval.effect);
  assert.equal(await balance(), 30);
  const { effect } = changed.body;
  await adjust(bob, 7);
  assert.equal((await bob.post(`/approvals/${approval.id}/approve`, { effect })).status, 409);
  const fresh = (await bob.post(`/approvals/${approval.id}/approve`, { effect })).body.effect;
  const confirmed = await bob.post(`/approvals/${approval.id}/approve`, { effect: fresh });
  assert.equal(confirmed.status, 200, confirmed.text);
  assert.equal(await balance(), 20_037);
});

test('a top-up is approved while the merchant uses its float', async (t) => {
  const { listening, ada, bob, merchantId } = await scene(t);
  const { approval } = (await ada.post('/floats/top-up', topUp(merchantId))).body;
  await bob.post('/floats/top-up', topUp(merchantId, 5));
  const before = await floatOf(listening);
  const approved = await bob.post(`/approvals/${approval.id}/approve`, {});
  assert.equal(approved.status, 200, approved.text);
  assert.equal(await floatOf(listening), before + 2_000_000);
});

test('a proposal is withdrawn by its maker, rejected with a comment, or expires after 72 hours', async (t) => {
  const { listening, ada, bob, people, merchantId } = await scene(t);
  const propose = async () =>
    (await ada.post('/floats/top-up', topUp(merchantId))).body.approval.id as string;
  const [withdrawn, rejected, expired] = [await propose(), await propose(), await propose()];
  assert.equal((await bob.post(`/approvals/${withdrawn}/withdraw`, {})).status, 403);
  assert.equal((await ada.post(`/approvals/${withdrawn}/withdraw`, {})).body.state, 'WITHDRAWN');
  const auditor = await enrolled(listening, { email: 'eve@example.com', roles: ['auditor'] });
  const reading = await auditor.browser.post(`/approvals/${rejected}/reject`, { comment: 'No.' });
  assert.equal(reading.status, 403, reading.text);
  const silent = await bob.post(`/approvals/${rejected}/reject`, {});
  assert.deepEqual([silent.status, silent.body.errors[0].field], [400, 'comment']);
  const turnedDown = await bob.post(`/approvals/${rejected}/reject`, { comment: 'Not on the statement.' });
  assert.deepEqual([turnedDown.body.state, turnedDown.body.checker], ['REJECTED', 'bob@example.com']);
  const [noted] = await listening.service.db.query<{ after: string }>(
    sql`select after from audit where action = 'approval.reject'`,
  );
  assert.deepEqual(JSON.parse(noted?.after ?? ''), {
    ...{ operation: 'float.top-up', maker: 'ada@example.com' },
    ...{ breakGlass: false, comment: 'Not on the statement.' },
  });
  listening.clock.advance(72 * 3_600_000);
  const late = await signIn(listening, people[1]);
  for (const id of [withdrawn, rejected, expired])
    assert.equal((await late.post(`/approvals/${id}/approve`, {})).status, 409);
  assert.equal((await late.get(`/approvals/${expired}`)).body.state, 'EXPIRED');
});

test('a role that can move money is granted by two people', async (t) => {
  const { listening, ada, bob, people, merchantId } = await scene(t);
  assert.equal((await ada.post('/users', { email: 'support@example.com', roles: ['support'] })).status, 201);
  const { userId } = await invited(listening.service, {
    email: 'kiosk@example.com',
    roles: ['viewer'],
    merchantId: Number(merchantId),
  });
  // The owner of a merchant's portal cannot approve here, but takes what belongs to the merchant.
  assert.equal((await ada.post(`/users/${userId}/set-roles`, { roles: ['owner'] })).status, 202);
  const owner = await ada.post('/users', { email: 'owner@example.com', roles: ['owner'] });
  assert.equal(owner.status, 202, owner.text);
  const approved = await bob.post(`/approvals/${owner.body.approval.id}/approve`, {});
  assert.match(approved.body.output.link, /^\/console\/enroll#/);
  assert.equal((await bob.get(`/approvals/${owner.body.approval.id}`)).body.output.link, null);
  const reset = await ada.post(`/users/${people[1].id}/reset-2fa`, {});
  assert.equal(reset.status, 202, reset.text);
  // A proposal lapses when its maker loses the right to make it.
  const pending = await proposeSettings(ada);
  await users.setRoles.run(asOperator(listening.service), { id: String(people[0].id), roles: ['support'] });
  const refused = await bob.post(`/approvals/${pending}/approve`, {});
  assert.deepEqual([refused.status, refused.body.code], [409, 'conflict'], refused.text);
});

test('a proposal of a token lapses when the token is revoked', async (t) => {
  const { ada, bob, merchantId } = await scene(t);
  const made = await approved(bob, await ada.post('/tokens', { roles: ['finance'] }));
  const asToken = { authorization: `Bearer ${made.token}`, cookie: undefined };
  const proposed = await ada.post('/floats/top-up', topUp(merchantId), asToken);
  assert.equal(proposed.status, 202, proposed.text);
  assert.equal((await bob.post(`/tokens/${made.id}/revoke`, {})).status, 200);
  const refused = await bob.post(`/approvals/${proposed.body.approval.id}/approve`, {});
  assert.deepEqual([refused.status, refused.body.code], [409, 'conflict'], refused.text);
});

test('a token of nobody withdraws what it proposed, and nothing that another one did', async (t) => {
  const { listening, ada, merchantId } = await scene(t);
  const newToken = async () => {
    const { token } = await createToken.run(asOperator(listening.service), {
      roles: ['finance'],
      stepUp: true,
    });
    return { authorization: `Bearer ${token}`, cookie: undefined };
  };
  const [own, other] = [await newToken(), await newToken()];
  const { id } = (await ada.post('/floats/top-up', topUp(merchantId), own)).body.approval;
  assert.equal((await ada.post(`/approvals/${id}/withdraw`, {}, other)).status, 403);
  assert.equal((await ada.post(`/approvals/${id}/withdraw`, {}, own)).body.state, 'WITHDRAWN');
});

async function proposeSettings(browser: Browser): Promise<string> {
  const { status, body, text } = await browser.send('PATCH', '/settings', { approvalMode: 'delay' });
  assert.equal(status, 202, text);
  return body.approval.id;
}

test('in approval mode "delay" one person approves a proposal of their own after 15 minutes', async (t) => {
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

test('an account approves nothing, and counts as its inviter, until another person confirms it', async (t) => {
  const { listening, ada, bob } = await scene(t);
  const merchant = await listening.createMerchant();
  const context = (await authenticate(listening.service, merchant.authorization)).context;
  await generate(context, { reference: 'tied', quantity: 3, value: 5 });
  const batch = (await ada.get('/batches')).body.items[0].transactionId;
  const join = async (email: string) => {
    const invited = await ada.post('/users', { email, roles: ['operations'] });
    assert.equal(invited.status, 201, invited.text);
    const [, token = ''] = invited.body.link.split('#');
    return { id: invited.body.id, browser: (await accept(listening, token)).browser };
  };
  const propose = async (browser: Browser) => {
    const proposed = await browser.post('/vouchers/bulk', { action: 'unblock', batch });
    assert.equal(proposed.status, 202, proposed.text);
    return proposed.body.approval.id;
  };
  const approve = async (browser: Browser, id: string) => {
    const { status, body } = await browser.post(`/approvals/${id}/approve`, {});
    return [status, body.code ?? body.state];
  };
  const one = await join('one@example.com');
  const other = await join('other@example.com');
  const refused = [403, 'forbidden'];
  assert.deepEqual(await approve(one.browser, await propose(ada)), refused);
  assert.deepEqual(await approve(ada, await propose(one.browser)), refused);
  assert.deepEqual(await approve(other.browser, await propose(one.browser)), refused);
  assert.deepEqual(await approve(bob, await propose(one.browser)), [200, 'APPROVED']);
  assert.equal((await ada.post(`/users/${one.id}/confirm`)).status, 403);
  assert.equal((await other.browser.post(`/users/${one.id}/confirm`)).status, 403);
  assert.equal((await ada.get(`/users`)).body.items.find(isOf(one.id)).confirmed, false);
  assert.equal((await bob.post(`/users/${one.id}/confirm`)).body.confirmed, true);
  assert.deepEqual(await approve(one.browser, await propose(ada)), [200, 'APPROVED']);
  assert.deepEqual(await approve(other.browser, await propose(one.browser)), refused);
  // The database refuses it as well.
  const id = Number(await propose(ada));
  const byHand = sql`update approvals set state = 'APPROVED', checker_id = ${Number(other.id)},
    decided_at = now() where id = ${id}`;
  await assert.rejects(listening.service.db.query(byHand), { constraint: 'approvals_two_people' });
});

const isOf = (id: string) => (user: { id: string }) => user.id === id;
