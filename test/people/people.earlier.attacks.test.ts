import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { before, beforeEach, test } from 'node:test';
import { sql } from '../../src/db/sql.ts';
import { perform } from '../../src/operations/perform.ts';
import { DEMO_OWNER, inviteDemoPerson } from '../../src/people/demo.ts';
import { createToken } from '../../src/people/tokens.ts';
import { users as operations } from '../../src/people/users.ts';
import { scene, voucherOf } from '../support/approvals.ts';
import { accept, Browser, codeOf, enrolled, PASSWORD, type Person, reset } from '../support/browser.ts';
import { asOperator, COMMAND_LINE, type ListeningService } from '../support/harness.ts';
import { ofFile } from '../support/scope.ts';
import { until } from '../support/until.ts';

/**
 * Attacks by somebody who has had the account of another person: what was made in its name meanwhile does not
 * become that person's when the account does.
 */

let ada: Browser;
let bob: Browser;
let eve: Browser;
let listening: ListeningService;
let merchantId: string;
let owners: readonly (readonly [Browser, Person])[];
const t = ofFile();
let count = 0;

before(async () => {
  const made = await scene(t);
  ({ ada, bob, listening, merchantId } = made);
  const third = await enrolled(listening, { email: 'eve@example.com' });
  eve = third.browser;
  owners = [
    [ada, made.people[0]],
    [bob, made.people[1]],
    [eve, third.person],
  ];
});

// Each person who enrolls moves the clock, and a second factor counts for five minutes.
async function stepUp() {
  listening.clock.advance(30_000);
  for (const [browser, person] of owners)
    await browser.post('/session/step-up', { totp: person.code(listening.clock.now()) });
}
beforeEach(stepUp);

/** One owner proposes; another one approves, receives the link, and accepts it. */
async function take(path: string, body: object, [maker, checker]: readonly [Browser, Browser]) {
  const proposed = await maker.post(path, body);
  assert.equal(proposed.status, 202, proposed.text);
  const approved = await checker.post(`/approvals/${proposed.body.approval.id}/approve`, {});
  assert.equal(approved.status, 200, approved.text);
  const { id, link } = approved.body.output;
  return { id: id as string, ...(await accept(listening, link.split('#')[1])) };
}

/** Ada has the account of a new owner for a while, and then the owner has it, whom Bob confirms. */
async function impostor(meanwhile: (as: Browser) => Promise<void>) {
  const email = `xena-${++count}@example.com`;
  const { id, browser } = await take('/users', { email, roles: ['owner'] }, [bob, ada]);
  await meanwhile(browser);
  const real = await take(`/users/${id}/reset-2fa`, {}, [bob, eve]);
  const confirmed = await ada.post(`/users/${id}/confirm`);
  assert.equal(confirmed.status, 200, confirmed.text);
  return real.browser;
}

test('what somebody proposed under another account is not approved by the same person later', async () => {
  let id = '';
  await impostor(async (fake) => {
    const body = { merchantId, amount: 5, reference: `refund ${count}`, reason: 'Paid back.' };
    const proposed = await fake.post('/floats/refund', body);
    id = proposed.body.approval.id;
  });
  const [own, other] = [
    await ada.post(`/approvals/${id}/approve`, {}),
    await eve.post(`/approvals/${id}/approve`, {}),
  ];
  assert.deepEqual([own.status, own.body.code, other.status], [403, 'forbidden', 200], own.text);
});

test('an account that somebody invited under another account is not confirmed by the same person later', async () => {
  let straw = '';
  await impostor(async (fake) => {
    const invited = await fake.post('/users', { email: `straw-${count}@example.com`, roles: ['support'] });
    assert.equal(invited.status, 201, invited.text);
    straw = invited.body.id;
    await accept(listening, invited.body.link.split('#')[1]);
    await stepUp();
  });
  const [own, other] = [await ada.post(`/users/${straw}/confirm`), await eve.post(`/users/${straw}/confirm`)];
  assert.deepEqual([own.status, own.body.code, other.status], [403, 'forbidden', 200], own.text);
});

test('a token that was made before its person enrolled anew does not come back', async () => {
  let token = '';
  const status = async () => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${listening.baseUrl}/operator/v1/audit`, { headers })).status;
  };
  const real = await impostor(async (fake) => {
    const made = await fake.post('/tokens', { roles: ['auditor'] });
    assert.equal(made.status, 201, made.text);
    ({ token } = made.body);
    assert.equal(await status(), 200);
  });
  assert.equal(await status(), 401);
  ({ token } = (await real.post('/tokens', { roles: ['auditor'] })).body);
  assert.equal(await status(), 200);
});

test('a request that somebody has half sent does nothing once its person is disabled', async () => {
  const email = `half-${++count}@example.com`;
  const { person } = await enrolled(listening, { email });
  const input = { roles: ['finance'], stepUp: true, for: email };
  const principal = { ...COMMAND_LINE, kind: 'break-glass' } as const;
  const created = { service: listening.service, principal, input, reason: 'Nobody is there.' };
  const { id, token } = (await perform(createToken as never, created)).output as {
    id: string;
    token: string;
  };
  const text = JSON.stringify({ merchantId, amount: 5, reason: 'x' });
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'content-length': text.length,
  };
  const sent = request(`${listening.baseUrl}/operator/v1/floats/top-up`, { method: 'POST', headers });
  const answered = once(sent, 'response');
  sent.write(text.slice(0, 9));
  await until('the token is read', async () => {
    const used = sql`select from operator_tokens where id = ${Number(id)} and last_used_at is not null`;
    return (await listening.service.db.query(used)).length > 0;
  });
  await stepUp();
  assert.equal((await ada.post(`/users/${person.id}/disable`)).status, 200);
  sent.end(text.slice(9));
  const [{ statusCode }] = await answered;
  assert.equal(statusCode, 401);
});

test('the progress of a job that somebody follows ends once the person is disabled', async () => {
  const { person, browser } = await enrolled(listening, { email: `follows-${++count}@example.com` });
  await stepUp();
  const change = { action: 'block', serialNumbers: [await voucherOf(listening)] };
  const job = await ada.post('/vouchers/bulk', change);
  assert.equal(job.body.state, 'WAITING', job.text);
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const path = `/operator/v1/jobs/${job.body.id}/events`;
  const { body } = await fetch(listening.baseUrl + path, { headers: { cookie } });
  const events = body?.getReader();
  assert.match(new TextDecoder().decode((await events?.read())?.value), /^event: progress/);
  assert.equal((await ada.post(`/users/${person.id}/disable`)).status, 200);
  // The service ends the answer in the middle.
  await assert.rejects(async () => events?.read());
});

test('an invitation that is taken back while it is accepted either was accepted, or made no user', async () => {
  for (let round = 0; round < 4; round++) {
    const email = `race-${++count}@example.com`;
    const { body } = await ada.post('/users', { email, roles: ['support'] });
    const token = body.link.split('#')[1];
    const browser = new Browser(listening.baseUrl);
    const { secret } = (await browser.post('/enrollment', { token })).body.totp;
    const totp = codeOf(secret, listening.clock.now());
    const [enrolling, removing] = await Promise.all([
      browser.post('/enrollment/complete', { token, name: 'Race', password: PASSWORD, totp }),
      ada.post(`/users/${body.id}/remove`),
    ]);
    assert.deepEqual(
      [enrolling.status, removing.status],
      enrolling.status === 200 ? [200, 409] : [401, 200],
      enrolling.text + removing.text,
    );
    assert.equal((await browser.get('/session')).status, enrolling.status);
  }
});

test('somebody who could approve once, or has a token, is not removed like an invitation', async () => {
  const { service } = listening;
  await inviteDemoPerson(asOperator(service), { ...DEMO_OWNER, roles: ['finance'] });
  await inviteDemoPerson(asOperator(service), {
    ...DEMO_OWNER,
    email: 'support@demo.invalid',
    roles: ['support'],
  });
  const users = (await ada.get('/users?limit=200')).body.items as { id: string; email: string }[];
  for (const email of ['owner@demo.invalid', 'support@demo.invalid']) {
    const id = users.find((user) => user.email === email)?.id ?? '';
    const made = await ada.post('/tokens', { roles: ['support'], for: 'support@demo.invalid' });
    assert.equal(made.status, 201, made.text);
    await reset(service, id);
    const request = { service, principal: COMMAND_LINE, input: { id } };
    await assert.rejects(perform(operations.remove as never, request), { code: 'conflict' }, email);
  }
});
