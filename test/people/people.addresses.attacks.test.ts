import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { listAudit } from '../../src/audit/entries.ts';
import { flushRefusals } from '../../src/audit/refusals.ts';
import { sql } from '../../src/db/sql.ts';
import {
  Browser,
  codeOf,
  enrolled,
  invited,
  PASSWORD,
  type Person,
  reset,
  signIn,
} from '../support/browser.ts';
import { type ListeningService, startListening } from '../support/harness.ts';
import { Operator } from '../support/operator.ts';
import { typed } from '../support/scrip.ts';

/** Attacks by a merchant's owner with an address that belongs to somebody else. */

const VICTIM = 'victim@example.com';
const ANOTHER = 'a quite different password';

let listening: ListeningService;
let one: number;
let other: number;
/** The owner of the first merchant's portal. */
let mallory: Browser;
let owner: Person;

before(async () => {
  listening = await startListening();
  one = (await listening.createMerchant({ name: 'One' })).id;
  other = (await listening.createMerchant({ name: 'Other' })).id;
  ({ browser: mallory, person: owner } = await enrolled(listening, {
    email: 'mallory@example.com',
    merchantId: one,
  }));
});

// Each person who enrolls moves the clock, and a second factor counts for five minutes.
beforeEach(async () => {
  listening.clock.advance(30_000);
  await mallory.post('/session/step-up', { totp: owner.code(listening.clock.now()) });
});

after(() => listening?.stop());

/** Accepts an invitation of a portal with a password. */
async function accept(token: string, password: string) {
  const browser = new Browser(listening.baseUrl, 'portal');
  const { secret } = (await browser.post('/enrollment', { token })).body.totp;
  const totp = codeOf(secret, listening.clock.now());
  const done = await browser.post('/enrollment/complete', { token, name: 'V', password, totp });
  assert.equal(done.status, 200, done.text);
  listening.clock.advance(30_000);
  return { browser, secret };
}

const portalOf = () => new Browser(listening.baseUrl, 'portal');
const enter = (browser: Browser, password: string, merchantId?: number) =>
  browser.post('/session', {
    email: VICTIM,
    password,
    ...(merchantId !== undefined && { merchantId: String(merchantId) }),
  });

test('an invitation tells nothing of other users with the address, and blocks none', async () => {
  const { service } = listening;
  await enrolled(listening, { email: 'staff@example.com', roles: ['support'] });
  await enrolled(listening, { email: 'shop@example.com', roles: ['viewer'], merchantId: other });
  const answers = [];
  for (const email of ['staff@example.com', 'shop@example.com', 'nobody@example.com', 'cfo@example.com']) {
    const { status, body } = await mallory.post('/users', { email, roles: ['viewer'] });
    const opened = await portalOf().post('/enrollment', { token: body.link.split('#')[1] });
    answers.push([status, Object.keys(body), opened.status, Object.keys(opened.body)]);
  }
  assert.equal(new Set(answers.map((each) => JSON.stringify(each))).size, 1, JSON.stringify(answers));
  // The operator invites its own CFO, and the address is that account on the command line.
  const cfo = await invited(service, { email: 'cfo@example.com', roles: ['finance'] });
  const operator = Operator.at(listening, {});
  const disabled = await operator.json`user disable CFO@example.com`;
  assert.deepEqual([disabled.id, disabled.merchantId], [String(cfo.userId), null]);
  await invited(service, { email: 'two@example.com', roles: ['viewer'], merchantId: one });
  const only = await operator.json`user disable two@example.com`;
  assert.equal(only.merchantId, String(one));
  await invited(service, { email: 'two@example.com', roles: ['viewer'], merchantId: other });
  await operator.fails(
    /several merchants .* one by its id: \d+ \(merchant/,
    ...typed`user enable two@example.com`,
  );
});

test('accounts with one address are apart: a password opens the account that it belongs to', async () => {
  const { service, clock } = listening;
  const staff = await enrolled(listening, { email: VICTIM, roles: ['support'] });
  const fake = await invited(service, { email: VICTIM, roles: ['viewer'], merchantId: one });
  await accept(fake.token, ANOTHER);
  const real = await invited(service, { email: VICTIM, roles: ['viewer'], merchantId: other });
  const { secret } = await accept(real.token, PASSWORD);
  const browser = portalOf();
  assert.equal((await enter(browser, PASSWORD)).body.next, 'second-factor');
  const session = await browser.post('/session', { totp: codeOf(secret, clock.now()) });
  assert.equal(session.body.user.merchantId, String(other));
  assert.equal((await enter(portalOf(), ANOTHER)).status, 200);
  assert.equal((await enter(portalOf(), ANOTHER, other)).status, 401);
  assert.equal((await enter(new Browser(listening.baseUrl), ANOTHER)).status, 401);
  await signIn(listening, staff.person);
  // Hashes of one address share a salt, so that two accounts take no longer than one.
  const rows = await service.db.query<{ salts: number }>(
    sql`select count(distinct split_part(password_hash, '$', 5))::integer as salts
      from users where email = ${VICTIM} and merchant_id is not null`,
  );
  assert.deepEqual(rows, [{ salts: 1 }]);
});

test('a password of accounts at several merchants asks for the merchant', async () => {
  const third = (await listening.createMerchant({ name: 'Third' })).id;
  const { token } = await invited(listening.service, { email: VICTIM, roles: ['viewer'], merchantId: third });
  const { secret } = await accept(token, PASSWORD);
  const browser = portalOf();
  const asked = await enter(browser, PASSWORD);
  assert.deepEqual(asked.body, {
    next: 'merchant',
    merchants: [
      { id: String(other), name: 'Other' },
      { id: String(third), name: 'Third' },
    ],
  });
  assert.equal((await enter(browser, PASSWORD, third)).body.next, 'second-factor');
  const session = await browser.post('/session', { totp: codeOf(secret, listening.clock.now()) });
  assert.equal(session.body.user.merchantName, 'Third');
});

test('an account with the address of somebody else gains no guesses at that one', async () => {
  const email = 'target@example.com';
  const { service, clock } = listening;
  const { person } = await enrolled(listening, { email, roles: ['viewer'], merchantId: other });
  const { token } = await invited(service, { email, roles: ['viewer'], merchantId: one });
  const { browser: device, secret } = await accept(token, ANOTHER);
  const enterAs = (browser: Browser, password: string) => browser.post('/session', { email, password });
  const signInAgain = async (browser: Browser) => {
    assert.equal((await enterAs(browser, ANOTHER)).status, 200);
    const done = await browser.post('/session', { totp: codeOf(secret, clock.now()) });
    assert.equal(done.status, 200, done.text);
    clock.advance(30_000);
  };
  const devices = [device, portalOf(), portalOf()];
  const statuses: number[] = [];
  // Each new device has a limit of its own, and each sign-in succeeds: neither helps.
  for (const browser of devices) await signInAgain(browser);
  for (const browser of devices) {
    for (let guess = 0; guess < 3; guess++)
      statuses.push((await enterAs(browser, `guess ${guess} of a password`)).status);
  }
  assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429, 429, 429, 429]);
  // The lock of the other account is in the audit, under that account.
  await flushRefusals(service);
  const entries = await listAudit(service.db, null, 100);
  const locks = entries.filter(({ action }) => action === 'account.locked');
  assert.deepEqual([...new Set(locks.map(({ subject }) => subject))], [`user ${person.id}`]);
});

test('an invitation is taken back, but not a user who has enrolled before', async () => {
  const made = await mallory.post('/users', { email: 'wrong@example.com', roles: ['viewer'] });
  const foreign = await invited(listening.service, {
    email: 'foreign@example.com',
    roles: ['viewer'],
    merchantId: other,
  });
  assert.equal((await mallory.post(`/users/${foreign.userId}/remove`)).status, 404);
  const removed = await mallory.post(`/users/${made.body.id}/remove`);
  assert.deepEqual([removed.status, removed.body.email], [200, 'wrong@example.com'], removed.text);
  const opened = await portalOf().post('/enrollment', { token: made.body.link.split('#')[1] });
  assert.equal(opened.status, 401);
  assert.equal((await mallory.post(`/users/${made.body.id}/remove`)).status, 404);
  const { person } = await enrolled(listening, {
    email: 'bob@example.com',
    roles: ['viewer'],
    merchantId: one,
  });
  assert.equal((await mallory.post(`/users/${person.id}/remove`)).status, 409);
  await reset(listening.service, person.id);
  assert.equal((await mallory.post(`/users/${person.id}/remove`)).status, 409);
  const team = (await mallory.get('/users')).body.items as { email: string }[];
  assert.ok(team.some(({ email }) => email === 'bob@example.com'));
  assert.ok(!team.some(({ email }) => email === 'wrong@example.com'));
});

test('the audit does not name a merchant’s user like the operator’s one with the same address', async () => {
  const email = 'chief@example.com';
  await enrolled(listening, { email });
  const { browser } = await enrolled(listening, { email, merchantId: one });
  assert.equal((await browser.post('/api-keys')).status, 201);
  const rows = await listening.service.db.query<{ actor: string }>(
    sql`select actor from audit where action = 'api-key.create' order by sequence desc limit 1`,
  );
  assert.deepEqual(rows, [{ actor: `${email} (merchant ${one})` }]);
});
