import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { approved, floatOf, scene, topUp, voucherOf } from '../support/approvals.ts';
import { type Browser, enrolled, signIn } from '../support/browser.ts';
import { ownerOf } from '../support/owner.ts';
import { until } from '../support/until.ts';

test('a proposal is executed when another person approves it', async (t) => {
  const { listening, ada, bob, merchantId } = await scene(t);
  const before = await floatOf(listening);
  const proposed = await ada.post('/floats/top-up', topUp(merchantId));
  assert.equal(proposed.status, 202, proposed.text);
  const { id, effect } = proposed.body.approval;
  assert.equal(effect[0].action, 'float.top-up');
  assert.equal(await floatOf(listening), before);
  const waiting = await bob.get('/approvals?waiting=true');
  assert.deepEqual(
    waiting.body.items.map((each: { id: string; operation: string }) => [each.id, each.operation]),
    [[id, 'float.top-up']],
  );
  const approved = await bob.post(`/approvals/${id}/approve`, { comment: 'Seen on the statement.' });
  assert.deepEqual([approved.status, approved.body.state], [200, 'APPROVED'], approved.text);
  assert.equal(await floatOf(listening), before + 2_000_000);
  const again = await bob.post(`/approvals/${id}/approve`, {});
  assert.deepEqual([again.status, again.body.code], [409, 'conflict']);
  assert.equal(await floatOf(listening), before + 2_000_000);
  const entries = await listening.service.db.query<{ actor: string; action: string }>(
    sql`select actor, action from audit
      where actor <> 'tester' and (action like 'approval.%' or action = 'float.top-up') order by sequence`,
  );
  assert.deepEqual(
    entries.map(({ actor, action }) => `${actor} ${action}`),
    ['ada@example.com approval.propose', 'ada@example.com float.top-up', 'bob@example.com approval.approve'],
  );
});

test('a list of approvals holds those for the caller, those of the caller, or all', async (t) => {
  const { ada, bob, merchantId } = await scene(t);
  const { approval } = (await ada.post('/floats/top-up', topUp(merchantId))).body;
  const listed = async (browser: Browser, query: string) =>
    (await browser.get(`/approvals?${query}`)).body.items.map(({ id }: { id: string }) => id);
  const ofEach = () =>
    Promise.all(['forMe=true', 'mine=true', ''].flatMap((query) => [listed(ada, query), listed(bob, query)]));
  const { id } = approval;
  assert.deepEqual(await ofEach(), [[], [id], [id], [], [id], [id]]);
  assert.equal((await bob.post(`/approvals/${id}/reject`, { comment: 'Not on the statement.' })).status, 200);
  assert.deepEqual(await ofEach(), [[], [], [id], [], [id], [id]]);
});

test('a repetition under a used reference returns the first result, and proposes nothing', async (t) => {
  const { listening, ada, bob, merchantId } = await scene(t);
  const refund = { merchantId, amount: 5, reference: 'refund 1', reason: 'Paid back.' };
  const { approval } = (await ada.post('/floats/refund', refund)).body;
  const approved = await bob.post(`/approvals/${approval.id}/approve`, {});
  assert.equal(approved.status, 200, approved.text);
  const after = await floatOf(listening);
  for (const headers of [{}, { 'idempotency-key': 'one' }, { 'idempotency-key': 'one' }]) {
    const { status, body } = await ada.post('/floats/refund', refund, headers);
    assert.deepEqual([status, body], [200, { ...approved.body.output, replayed: true }]);
  }
  const other = await ada.post('/floats/refund', { ...refund, amount: 6 });
  assert.deepEqual([other.status, other.body.code], [409, '94'], other.text);
  assert.deepEqual((await bob.get('/approvals?waiting=true')).body.items, []);
  assert.equal(await floatOf(listening), after);
});

test('of several proposals under one reference one is approved, and nothing is left of the others', async (t) => {
  const { listening, ada, bob, merchantId } = await scene(t);
  const refund = { merchantId, amount: 5, reference: 'refund 1', reason: 'Paid back.' };
  const transfer = {
    account: 'goodwill',
    amount: 5,
    currency: 'USD',
    reference: 'gift 1',
    reason: 'A gift.',
  };
  for (const [path, body] of Object.entries({ '/floats/refund': refund, '/books/transfer': transfer })) {
    const [first, second] = [await ada.post(path, body), await ada.post(path, body)];
    await approved(bob, first);
    const booked = await floatOf(listening);
    const { id } = second.body.approval;
    const late = await bob.post(`/approvals/${id}/approve`, {});
    assert.deepEqual([late.status, late.body.code], [409, 'conflict'], late.text);
    assert.equal((await bob.get(`/approvals/${id}`)).body.state, 'PENDING');
    assert.equal((await bob.post(`/approvals/${id}/reject`, { comment: 'Booked already.' })).status, 200);
    assert.equal(await floatOf(listening), booked);
  }
});

test('a request that was answered by a proposal is answered by it again, whatever has happened since', async (t) => {
  const { ada, bob, merchantId } = await scene(t);
  const send = () => ada.post('/floats/top-up', topUp(merchantId), { 'idempotency-key': 'one' });
  const first = await send();
  const again = await send();
  assert.equal((await bob.post(`/approvals/${first.body.approval.id}/approve`, {})).status, 200);
  await approved(bob, await ada.post('/settings/limits/USD', { amount: 1_000_000 }));
  for (const { status, body, headers } of [again, await send()])
    assert.deepEqual([status, body, headers.get('idempotent-replayed')], [202, first.body, 'true']);
});

test('a proposal that is cut off leaves nothing behind, and copies at once make one', async (t) => {
  const { listening, ada, bob, merchantId } = await scene(t);
  const send = () => ada.post('/floats/top-up', topUp(merchantId), { 'idempotency-key': 'one' });
  const claims = () => listening.service.db.query(sql`select from operator_requests where output is null`);
  const owner = await ownerOf(t, listening.url);
  await owner.query(sql`begin`);
  await owner.query(sql`lock table scrip.approvals in share mode`);
  const asked = [send(), send(), send()];
  await until('a proposal waits', async () => {
    const waiting = sql`
select from pg_locks where not granted and relation = 'scrip.approvals'::regclass`;
    return (await listening.service.db.query(waiting)).length > 0;
  });
  // Whoever loses the process now may send the request again under its key.
  assert.deepEqual(await claims(), []);
  await owner.query(sql`commit`);
  const [first, ...others] = await Promise.all(asked);
  for (const { status, body } of others) assert.deepEqual([status, body], [202, first?.body]);
  assert.equal((await bob.get('/approvals?waiting=true')).body.items.length, 1);
});

test('an amount up to the limit needs no approval', async (t) => {
  const { listening, ada, merchantId } = await scene(t);
  const before = await floatOf(listening);
  assert.equal((await ada.post('/floats/top-up', topUp(merchantId, 10_000))).status, 200);
  assert.equal(await floatOf(listening), before + 1_000_000);
});

test('canceling a voucher above the limit needs approval, alone and in a bulk change', async (t) => {
  const { listening, ada, bob } = await scene(t);
  const [small, large] = [await voucherOf(listening, 10_000), await voucherOf(listening, 10_001)];
  const reason = 'stolen';
  const inBulk = (...serialNumbers: string[]) => ada.post('/vouchers/bulk/cancel', { serialNumbers, reason });
  const proposed = await ada.post(`/vouchers/${large}/cancel`, { reason });
  const answer = await inBulk(small, large);
  assert.ok(answer.body.approval, answer.text);
  assert.ok(!(await inBulk(small)).body.approval);
  await approved(bob, proposed);
  const [{ actor, approvedBy }] = (await ada.get(`/vouchers/${large}`)).body.timeline;
  assert.deepEqual([actor, approvedBy], ['ada@example.com', 'bob@example.com']);
});

test('a maker cannot approve their own proposal, in another session or with a token', async (t) => {
  const { listening, ada, bob, people, merchantId } = await scene(t);
  const before = await floatOf(listening);
  const { approval } = (await ada.post('/floats/top-up', topUp(merchantId))).body;
  const refusedBy = async (browser: Browser, id: string, headers = {}) => {
    const { status, text } = await browser.post(`/approvals/${id}/approve`, {}, headers);
    assert.equal(status, 403, text);
  };
  await refusedBy(ada, approval.id);
  await refusedBy(await signIn(listening, people[0]), approval.id);
  // A token proposes in the name of its owner, and cannot approve.
  const made = await approved(bob, await ada.post('/tokens', { roles: ['owner'], stepUp: true }));
  const asToken = { authorization: `Bearer ${made.token}`, cookie: undefined };
  const byToken = await ada.post('/floats/top-up', topUp(merchantId), asToken);
  assert.equal(byToken.status, 202, byToken.text);
  for (const { id } of [approval, byToken.body.approval]) {
    await refusedBy(ada, id);
    await refusedBy(ada, id, asToken);
  }
  // Nor can the token of another person.
  const bobs = await approved(ada, await bob.post('/tokens', { roles: ['owner'], stepUp: true }));
  await refusedBy(bob, approval.id, { authorization: `Bearer ${bobs.token}`, cookie: undefined });
  // The database refuses it as well.
  const decide = sql`
update approvals set state = 'APPROVED', checker_id = maker_id, checker = 'x', decided_at = now()
  where id = ${approval.id}`;
  await assert.rejects(listening.service.db.query(decide), /approvals_two_people/);
  const withoutChecker = sql`update approvals set state = 'APPROVED', decided_at = now() where id = ${approval.id}`;
  await assert.rejects(listening.service.db.query(withoutChecker), /approvals_two_people/);
  assert.equal(await floatOf(listening), before);
});

test('concurrent approvals execute a proposal once', async (t) => {
  const { listening, ada, bob, merchantId } = await scene(t);
  const carol = (await enrolled(listening, { email: 'carol@example.com', roles: ['finance'] })).browser;
  const before = await floatOf(listening);
  const { approval } = (await ada.post('/floats/top-up', topUp(merchantId))).body;
  const answers = await Promise.all(
    [bob, carol, bob, carol].map((browser) => browser.post(`/approvals/${approval.id}/approve`, {})),
  );
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 409, 409, 409]);
  assert.equal(await floatOf(listening), before + 2_000_000);
});

test('only the page of a proposal shows an account number whole, and nothing else keeps it', async (t) => {
  const { listening, ada, bob, merchantId } = await scene(t);
  const iban = 'DE89 3704 0044 0532 0130 00';
  const terms = { merchantId, from: '2099-01-01', commission: 1, iban };
  const { approval } = (await ada.post('/settlement-terms', terms)).body;
  const [listed] = (await bob.get('/approvals?waiting=true')).body.items;
  assert.equal(listed.input.iban, 'DE…3000');
  assert.equal((await bob.get(`/approvals/${approval.id}`)).body.input.iban, iban);
  const done = await bob.post(`/approvals/${approval.id}/approve`, {});
  assert.equal(done.body.output.last4, '3000', done.text);
  const kept = await listening.service.db.query(
    sql`select from audit where concat(before, after) like '%0532%0130%'`,
  );
  assert.equal(kept.length, 0);
});
