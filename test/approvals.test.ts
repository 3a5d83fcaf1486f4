import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from '../src/db/sql.ts';
import { setUserRoles } from '../src/people/users.ts';
import { type Browser, enrolled, invited, type Person, signIn } from './browser.ts';
import { asOperator, type ListeningService, testService } from './harness.ts';
import { Operator } from './operator.ts';

type Scene = {
  readonly listening: ListeningService;
  readonly ada: Browser;
  readonly bob: Browser;
  readonly people: readonly [Person, Person];
  readonly merchantId: string;
};

/** Two owners who are signed in, and a merchant. */
async function scene(t: Parameters<typeof testService>[0]): Promise<Scene> {
  const listening = await testService(t);
  const { id } = await listening.createMerchant();
  const ada = await enrolled(listening);
  const bob = await enrolled(listening, { email: 'bob@example.com' });
  return {
    listening,
    ada: ada.browser,
    bob: bob.browser,
    people: [ada.person, bob.person],
    merchantId: String(id),
  };
}

const topUp = (merchantId: string, amount = 20_000) => ({
  merchantId,
  amount,
  reason: 'A transfer came in.',
});

async function floatOf({ service }: ListeningService): Promise<number> {
  const [row] = await service.db.query<{ sum: bigint }>(
    sql`select sum(balance_minor)::bigint as sum from floats`,
  );
  return Number(row?.sum ?? 0);
}

test('what one person proposes is performed when another one approves it', async (t) => {
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

test('an amount up to the limit needs nobody else', async (t) => {
  const { listening, ada, merchantId } = await scene(t);
  const before = await floatOf(listening);
  assert.equal((await ada.post('/floats/top-up', topUp(merchantId, 10_000))).status, 200);
  assert.equal(await floatOf(listening), before + 1_000_000);
});

test('nobody approves what they proposed, by whatever path', async (t) => {
  const { listening, ada, bob, people, merchantId } = await scene(t);
  const before = await floatOf(listening);
  const { approval } = (await ada.post('/floats/top-up', topUp(merchantId))).body;
  const refusedBy = async (browser: Browser, id: string, headers = {}) => {
    const { status, text } = await browser.post(`/approvals/${id}/approve`, {}, headers);
    assert.equal(status, 403, text);
  };
  await refusedBy(ada, approval.id);
  await refusedBy(await signIn(listening, people[0]), approval.id);
  // Her token proposes in her name, and approves nothing.
  const made = await ada.post('/tokens', { roles: ['owner'], stepUp: true });
  assert.equal(made.status, 201, made.text);
  const asToken = { authorization: `Bearer ${made.body.token}`, cookie: undefined };
  const byToken = await ada.post('/floats/top-up', topUp(merchantId), asToken);
  assert.equal(byToken.status, 202, byToken.text);
  for (const { id } of [approval, byToken.body.approval]) {
    await refusedBy(ada, id);
    await refusedBy(ada, id, asToken);
  }
  // Nor does the token of somebody else.
  const bobs = await bob.post('/tokens', { roles: ['owner'], stepUp: true });
  await refusedBy(bob, approval.id, { authorization: `Bearer ${bobs.body.token}`, cookie: undefined });
  // Two processes that both believe in it are stopped by the database.
  const decide = sql`
update approvals set state = 'APPROVED', checker_id = maker_id, checker = 'x', decided_at = now()
  where id = ${approval.id}`;
  await assert.rejects(listening.service.db.query(decide), /approvals_two_people/);
  const nobody = sql`update approvals set state = 'APPROVED', decided_at = now() where id = ${approval.id}`;
  await assert.rejects(listening.service.db.query(nobody), /approvals_two_people/);
  assert.equal(await floatOf(listening), before);
});

test('two people who approve at once perform it once', async (t) => {
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

test('the command line breaks the glass once two people could approve, with a reason, and the audit says so', async (t) => {
  const listening = await testService(t);
  const { id } = await listening.createMerchant();
  const operator = Operator.at(listening, {});
  const run = (...args: string[]) =>
    operator.run('float', 'top-up', '--merchant', String(id), '--amount', '20000', ...args);
  assert.equal((await run()).status, 0);
  const ada = await enrolled(listening);
  assert.equal((await run()).status, 0);
  await enrolled(listening, { email: 'bob@example.com' });
  const refused = await run();
  assert.equal(refused.status, 1);
  assert.match(refused.err, /approved by another person.*--break-glass and --reason/);
  assert.match((await run('--break-glass')).err, /--break-glass needs --reason/);
  assert.equal((await run('--break-glass', '--reason', 'Bob is ill')).status, 0);
  // So do commands that no operation of the API performs yet.
  const refund = ['float', 'refund', '--merchant', String(id), '--amount', '5', '--reference', 'back-1'];
  assert.match((await operator.run(...refund, '--reason', 'as agreed')).err, /--break-glass and --reason/);
  const { approval } = (await ada.browser.post('/floats/top-up', topUp(String(id)))).body;
  assert.match((await operator.run('approval', 'approve', approval.id)).err, /--break-glass and --reason/);
  assert.equal(
    (await operator.run('approval', 'approve', approval.id, '--break-glass', '--reason', 'Bob is ill'))
      .status,
    0,
  );
  assert.equal((await operator.json('approval', 'show', approval.id)).breakGlass, true);
  const kinds = await listening.service.db.query<{ action: string }>(
    sql`
      select action from audit where actor_kind = 'break-glass' and reason = 'Bob is ill' order by sequence`,
  );
  assert.deepEqual(
    kinds.map(({ action }) => action),
    ['float.top-up', 'approval.approve'],
  );
});
