import assert from 'node:assert/strict';
import { before, beforeEach, test } from 'node:test';
import { openOwner } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { buildServer } from '../../src/http/server.ts';
import { perform } from '../../src/operations/perform.ts';
import { createToken } from '../../src/people/tokens.ts';
import { approved, floatOf, scene, voucherOf } from '../support/approvals.ts';
import { accept, Browser, enrolled } from '../support/browser.ts';
import type { ListeningService } from '../support/harness.ts';
import { COMMAND_LINE } from '../support/harness.ts';
import { ofFile } from '../support/scope.ts';
import { until } from '../support/until.ts';

/** Attacks by one person with a second identity: an account or a token that belongs to the same person. */

type Scene = Awaited<ReturnType<typeof scene>>;
let ada: Browser;
let bob: Browser;
let listening: ListeningService;
let merchantId: string;
let people: Scene['people'];
const t = ofFile();
let count = 0;

before(async () => {
  ({ ada, bob, listening, merchantId, people } = await scene(t));
});

// Each person who joins moves the clock, and a second factor counts for five minutes.
beforeEach(async () => {
  listening.clock.advance(30_000);
  for (const [at, browser] of [ada, bob].entries())
    await browser.post('/session/step-up', { totp: people[at]?.code(listening.clock.now()) });
});

/** Another person of the operator, whose account is confirmed. */
const join = (...roles: string[]) => enrolled(listening, { email: `person-${++count}@example.com`, roles });

type Made = { readonly id: string; readonly token: string };

/** A token that the command line creates without a second person. */
async function machineToken(input: object): Promise<Made> {
  const principal = { ...COMMAND_LINE, kind: 'break-glass' } as const;
  const request = { service: listening.service, principal, input, reason: 'Nobody is there.' };
  return (await perform(createToken as never, request)).output as Made;
}

/** A browser that sends a token instead of a session. */
function withToken({ token }: Made, door: 'operator' | 'portal' = 'operator'): Browser {
  const browser = new Browser(listening.baseUrl, door);
  const { send } = browser;
  browser.send = (method, path, body, headers = {}) =>
    send.call(browser, method, path, body, { ...headers, authorization: `Bearer ${token}` });
  return browser;
}

async function refund(by: Browser, amount = 5): Promise<string> {
  const body = { merchantId, amount, reference: `refund ${++count}`, reason: 'Paid back.' };
  const proposed = await by.post('/floats/refund', body);
  assert.equal(proposed.status, 202, proposed.text);
  return proposed.body.approval.id;
}

async function approve(by: Browser, id: string, body = {}): Promise<unknown[]> {
  const answer = await by.post(`/approvals/${id}/approve`, body);
  return [answer.status, answer.body.code ?? answer.body.state];
}

const FORBIDDEN = [403, 'forbidden'];
const APPROVED = [200, 'APPROVED'];
const WAITS = [200, 'PENDING'];

test('what a token of nobody proposes is performed when two different people have approved it', async () => {
  const holder = await join('finance');
  const token = withToken(await machineToken({ roles: ['finance'], stepUp: true }));
  const float = await floatOf(listening);
  const id = await refund(token, 1_000);
  assert.deepEqual(await approve(holder.browser, id), WAITS);
  const { body } = await ada.get(`/approvals/${id}`);
  assert.deepEqual(
    [body.approvers, body.firstChecker, body.checker, body.output],
    [2, holder.person.email, null, null],
  );
  assert.deepEqual(await approve(holder.browser, id), [409, 'conflict']);
  assert.equal(await floatOf(listening), float);
  assert.deepEqual(await approve(ada, id), APPROVED);
  assert.equal(await floatOf(listening), float - 100_000);
});

test('the database refuses one approver of what is nobody’s, a lie about the first, and a person’s own', async () => {
  const { db } = listening.service;
  const [one, other] = people;
  const id = Number(await refund(withToken(await machineToken({ roles: ['finance'] }))));
  const own = Number(await refund(ada));
  const refused = async (approval: number, also: string) => {
    const text = `update approvals set state = 'APPROVED', checker_id = $1, decided_at = now(), ${also} where id = $2`;
    const constraint = 'approvals_two_people';
    await assert.rejects(db.query({ text, values: [one.id, approval] }), { constraint }, also);
  };
  await refused(id, 'is_independent = true');
  await refused(id, "first_checker_id = $1, first_checker = 'x', first_checked_at = now()");
  await refused(own, 'is_independent = true');
  await refused(own, 'is_alone = true');
  await assert.rejects(
    db.query(sql`update users set confirmed_at = now(), confirmed_by = ${one.id} where id = ${one.id}`),
    { constraint: 'users_confirmed_by_another' },
  );
  await db.query(sql`update users set was_approver = false where id = ${other.id}`);
  const kept = await db.query(sql`select from users where id = ${other.id} and was_approver`);
  assert.equal(kept.length, 1);
});

test('no token confirms or makes users, gives roles, makes tokens, or approves', async () => {
  const own = await approved(bob, await ada.post('/tokens', { roles: ['owner'], stepUp: true }));
  const tokens = [
    await machineToken({ roles: ['owner'], stepUp: true }),
    await machineToken({ roles: ['owner'], stepUp: true, for: people[1].email }),
    own as Made,
  ];
  const id = await refund(ada);
  const user = people[1].id;
  for (const made of tokens) {
    const token = withToken(made);
    assert.equal((await token.get('/merchants')).status, 200);
    for (const [path, body] of [
      ['/tokens', { roles: ['support'] }],
      ['/users', { email: 'straw@example.com', roles: ['support'] }],
      [`/users/${user}/confirm`, {}],
      [`/users/${user}/reset-2fa`, {}],
      [`/users/${user}/set-roles`, { roles: ['owner', 'auditor'] }],
      [`/users/${user}/enable`, {}],
      [`/approvals/${id}/approve`, {}],
    ] as const) {
      const { status, body: answer } = await token.post(path, body);
      assert.deepEqual([status, answer.code], FORBIDDEN, path);
    }
  }
  const merchants = await machineToken({ roles: ['owner'], stepUp: true, merchantId });
  const portal = withToken(merchants, 'portal');
  assert.equal((await portal.get('/merchant')).status, 200);
  const invited = await portal.post('/users', { email: 'straw@example.com', roles: ['viewer'] });
  assert.deepEqual([invited.status, invited.body.code], FORBIDDEN);
});

test('an invited account approves nothing, and its proposals may be those of its inviter and approver', async () => {
  const proposed = await ada.post('/users', { email: 'straw@example.com', roles: ['finance'] });
  const invited = await bob.post(`/approvals/${proposed.body.approval.id}/approve`, {});
  const [, link = ''] = invited.body.output.link.split('#');
  const straw = (await accept(listening, link)).browser;
  assert.deepEqual(await approve(straw, await refund(ada)), FORBIDDEN);
  assert.deepEqual(await approve(straw, await refund(bob)), FORBIDDEN);
  const third = await join('finance');
  assert.deepEqual(await approve(straw, await refund(third.browser)), FORBIDDEN);
  const own = await refund(straw);
  for (const each of [ada, bob]) {
    assert.deepEqual(await approve(each, own), FORBIDDEN);
    assert.equal((await each.post(`/users/${invited.body.output.id}/confirm`)).status, 403);
  }
  assert.deepEqual(await approve(third.browser, own), APPROVED);
  assert.equal((await third.browser.post(`/users/${invited.body.output.id}/confirm`)).status, 200);
  assert.deepEqual(await approve(straw, await refund(ada)), APPROVED);
});

test('an account whose link the command line printed is confirmed by two people', async () => {
  const { service } = listening;
  const { invite } = await import('../../src/people/invite.ts');
  const input = { email: `printed-${++count}@example.com`, roles: ['operations'] };
  const { output } = await perform(invite as never, { service, principal: COMMAND_LINE, input });
  const { id, link } = output as { id: string; link: string };
  const { browser } = await accept(listening, link.split('#')[1] ?? '');
  assert.equal((await browser.get('/users')).status, 403);
  const confirmed = await ada.post(`/users/${id}/confirm`);
  assert.equal(confirmed.status, 202, confirmed.text);
  assert.deepEqual(await approve(ada, confirmed.body.approval.id), FORBIDDEN);
  assert.deepEqual(await approve(bob, confirmed.body.approval.id), APPROVED);
  const { items } = (await ada.get('/users')).body;
  assert.equal(items.find((each: { id: string }) => each.id === id).confirmed, true);
});

test('a token is suspended with its person at once, on every process, and has no role that the person lost', async (t) => {
  const other = buildServer(listening.service);
  t.after(() => other.close());
  const elsewhere = await other.listen({ host: '127.0.0.1', port: 0 });
  const eve = await join('owner');
  const proposed = await eve.browser.post('/tokens', { roles: ['finance', 'auditor'], stepUp: true });
  const made: Made = await approved(ada, proposed);
  const named = await machineToken({ roles: ['owner'], stepUp: true, for: eve.person.email });
  const status = async ({ token }: Made, path: string) => {
    const headers = { authorization: `Bearer ${token}` };
    const answers = await Promise.all(
      [listening.baseUrl, elsewhere].map((base) => fetch(`${base}/operator/v1${path}`, { headers })),
    );
    assert.equal(answers[0]?.status, answers[1]?.status);
    return answers[0]?.status;
  };
  const change = async (verb: string, body = {}) => {
    const { text, ...answer } = await ada.post(`/users/${eve.person.id}/${verb}`, body);
    assert.equal(answer.status, 200, text);
  };
  const seen = async () => [await status(made, '/audit'), await status(named, '/users')];
  assert.deepEqual(await seen(), [200, 200]);
  await change('disable');
  assert.deepEqual(await seen(), [401, 401]);
  const [listed] = (await ada.get('/tokens?limit=1')).body.items;
  assert.deepEqual([listed.for, listed.suspended], [eve.person.email, true]);
  await change('enable');
  assert.deepEqual(await seen(), [200, 200]);
  // An auditor has one of the roles of the first token, and none of the second.
  await change('set-roles', { roles: ['auditor', 'support'] });
  assert.deepEqual(await seen(), [200, 401]);
  assert.equal(
    (await withToken(made).post('/floats/top-up', { merchantId, amount: 5, reason: 'x' })).status,
    403,
  );
});

test('a token that names a person proposes for that person, who does not approve it', async () => {
  const fiona = await join('finance');
  const token = withToken(await machineToken({ roles: ['finance'], for: fiona.person.email.toUpperCase() }));
  const id = await refund(token);
  assert.deepEqual(await approve(fiona.browser, id), FORBIDDEN);
  assert.deepEqual(await approve(ada, id), APPROVED);
  await assert.rejects(machineToken({ roles: ['owner'], for: fiona.person.email }), { code: 'invalid' });
  await assert.rejects(machineToken({ roles: ['finance'], for: 'nobody@example.com' }), { code: 'invalid' });
});

test('whoever made or was shown a token does not approve what it proposes', async () => {
  const [one, other] = [await join('owner'), await join('owner')];
  const proposed = await one.browser.post('/tokens', { roles: ['finance'] });
  // The second person that approves a token sees it.
  const made: Made = await approved(other.browser, proposed);
  const id = await refund(withToken(made));
  assert.deepEqual(await approve(one.browser, id), FORBIDDEN);
  assert.deepEqual(await approve(other.browser, id), FORBIDDEN);
  assert.deepEqual(await approve(ada, id), APPROVED);
});

test('the first of two approvals is void when its person loses the role, or when the effect has changed', async () => {
  const token = withToken(await machineToken({ roles: ['finance'], stepUp: true }));
  const serial = await voucherOf(listening);
  const adjust = (by: Browser, amount: number) =>
    by.post(`/vouchers/${serial}/adjust`, { amount, reference: `adjust ${++count}`, reason: 'as agreed' });
  const { id } = (await adjust(token, 20_000)).body.approval;
  const first = async () => (await ada.get(`/approvals/${id}`)).body.firstChecker;
  const fiona = await join('finance');
  assert.deepEqual(await approve(fiona.browser, id), WAITS);
  assert.equal((await ada.post(`/users/${fiona.person.id}/disable`)).status, 200);
  assert.deepEqual(await approve(ada, id), WAITS);
  assert.equal(await first(), people[0].email);
  await adjust(ada, 5);
  const changed = await bob.post(`/approvals/${id}/approve`, {});
  assert.deepEqual([changed.status, changed.body.code], [409, 'effect-changed'], changed.text);
  assert.deepEqual(await approve(bob, id, { effect: changed.body.effect }), WAITS);
  assert.equal(await first(), people[1].email);
  assert.deepEqual(await approve(ada, id), APPROVED);
  assert.equal((await ada.get(`/vouchers/${serial}`)).body.balance, 20_030);
});

test('the first of two approvals is void once its account was reset, until the account is confirmed', async () => {
  const id = await refund(withToken(await machineToken({ roles: ['finance'] })), 11);
  const fiona = await join('finance');
  assert.deepEqual(await approve(fiona.browser, id), WAITS);
  // The reset changes who has the account: these two know its link.
  const reset = await approved(bob, await ada.post(`/users/${fiona.person.id}/reset-2fa`));
  await accept(listening, reset.link.split('#')[1]);
  assert.deepEqual(await approve(ada, id), WAITS);
  assert.equal((await ada.get(`/approvals/${id}`)).body.firstChecker, people[0].email);
  assert.deepEqual(await approve(bob, id), APPROVED);
});

test('of several people who approve what is nobody’s at once, two count, and it is performed once', async () => {
  const token = withToken(await machineToken({ roles: ['finance'] }));
  const third = (await join('finance')).browser;
  const float = await floatOf(listening);
  const id = await refund(token, 7);
  const answers = await Promise.all(
    [ada, bob, third, ada, bob].map((each) => each.post(`/approvals/${id}/approve`, {})),
  );
  // Only the second approver gets the answer of the operation.
  const statuses = answers.map(({ status, body }) => `${status} ${body.output ? 'performed' : ''}`);
  assert.deepEqual(statuses.sort(), ['200 ', '200 performed', '409 ', '409 ', '409 ']);
  assert.equal(await floatOf(listening), float - 700);
});

test('an approval that dies in the middle has moved nothing, and can be given again, once', async (t) => {
  const float = await floatOf(listening);
  const id = await refund(ada, 9);
  const [owner, killer] = await Promise.all([openOwner(listening.url), openOwner(listening.url)]);
  t.after(() => Promise.all([owner.close(), killer.close()]));
  await owner.query({ text: 'begin', values: [] });
  await owner.query(sql`select from scrip.floats for update`);
  const answer = approve(bob, id);
  // As that of a process that is killed, the connection ends while it waits for the float.
  await until('the approval waits', async () => {
    const killed = await killer.query(sql`
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and wait_event_type = 'Lock'`);
    return killed.length > 0;
  });
  await owner.query({ text: 'commit', values: [] });
  const isDone = (await answer)[0] === 200;
  assert.equal(await floatOf(listening), isDone ? float - 900 : float);
  assert.equal((await ada.get(`/approvals/${id}`)).body.state, isDone ? 'APPROVED' : 'PENDING');
  assert.deepEqual(await approve(bob, id), isDone ? [409, 'conflict'] : APPROVED);
  assert.equal(await floatOf(listening), float - 900);
});

test('a person who is disabled while approving either came first, or approves nothing', async () => {
  const { db } = listening.service;
  for (let round = 0; round < 3; round++) {
    const fiona = await join('finance');
    const id = await refund(ada);
    await Promise.all([
      approve(fiona.browser, id),
      ada.post(`/users/${fiona.person.id}/disable`),
      approve(fiona.browser, id),
    ]);
    const entries = await db.query<{ action: string }>(sql`
select action from audit where subject in (${`approval ${id}`}, ${`user ${fiona.person.id}`}) order by sequence`);
    const order = entries.map(({ action }) => action);
    const approvedAt = order.indexOf('approval.approve');
    assert.ok(approvedAt < order.indexOf('user.disable'), String(order));
  }
});
