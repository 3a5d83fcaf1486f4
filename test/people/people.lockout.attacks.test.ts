import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { SCHEDULE } from '../../src/cli/work.ts';
import { sql } from '../../src/db/sql.ts';
import { buildServer } from '../../src/http/server.ts';
import { accept, Browser, enrolled, PASSWORD, type Person, reset, signIn } from '../support/browser.ts';
import { testService } from '../support/harness.ts';

/** Strangers guess. They lock out each other, but nobody who has signed in before. */

const WRONG = 'wrong horse battery';

/** A service behind a proxy, so that each browser has an address of its own. */
async function scene(t: TestContext) {
  const listening = await testService(t);
  const app = buildServer(listening.service, { trustedProxies: ['127.0.0.1/32'] });
  t.after(() => app.close());
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  const scene = { ...listening, baseUrl };
  const { person, browser } = await enrolled(scene);
  const from = (address: string) => {
    const stranger = new Browser(baseUrl);
    stranger.address = address;
    return stranger;
  };
  const guess = async (address: string, email = person.email) =>
    (await from(address).post('/session', { email, password: WRONG })).status;
  /** Guesses until the account is locked for every device that is not known. */
  const lockAccount = async () => {
    for (let network = 0; network < 5; network++)
      for (let count = 0; count < 5; count++) await guess(`192.0.2.${network}`);
  };
  return { ...scene, person, browser, from, guess, lockAccount };
}

const withPassword = (browser: Browser, { email }: Person) =>
  browser.post('/session', { email, password: PASSWORD });

test('a device that has signed in before signs in while strangers lock the account', async (t) => {
  const { person, browser, clock, from, lockAccount } = await scene(t);
  await lockAccount();
  assert.equal((await withPassword(from('198.51.100.1'), person)).status, 429);
  assert.equal((await browser.send('DELETE', '/session')).status, 204);
  assert.equal((await withPassword(browser, person)).status, 200);
  const done = await browser.post('/session', { totp: person.code(clock.now()) });
  assert.equal(done.status, 200, done.text);
});

test('a person who is signed in steps up while strangers lock account and network', async (t) => {
  const { person, browser, clock, guess, lockAccount } = await scene(t);
  await lockAccount();
  browser.address = '192.0.2.200';
  for (let count = 0; count < 51; count++) await guess('192.0.2.200', `${count}@example.com`);
  assert.equal(await guess('192.0.2.200', 'nobody@example.com'), 429);
  const { status } = await browser.post('/session/step-up', { totp: person.code(clock.now()) });
  assert.equal(status, 200);
});

test('a known device signs in from a network that strangers have locked', async (t) => {
  const { person, browser, guess } = await scene(t);
  for (let count = 0; count < 51; count++) await guess('192.0.2.200', `${count}@example.com`);
  browser.address = '192.0.2.200';
  assert.equal((await withPassword(browser, person)).status, 200);
});

test('an unknown device is locked out for the guesses of its own network only', async (t) => {
  const { person, from, guess } = await scene(t);
  for (let count = 0; count < 5; count++) assert.equal(await guess('192.0.2.1'), 401);
  assert.equal(await guess('192.0.2.1'), 429);
  assert.equal((await withPassword(from('192.0.2.1'), person)).status, 429);
  assert.equal((await withPassword(from('192.0.2.2'), person)).status, 200);
});

test('twenty guesses an hour are checked from all networks together', async (t) => {
  const { clock, guess } = await scene(t);
  const statuses: number[] = [];
  for (let network = 0; network < 25; network++) statuses.push(await guess(`192.0.2.${network}`));
  assert.equal(statuses.filter((status) => status === 401).length, 20);
  clock.advance(61 * 60_000);
  assert.equal(await guess('203.0.113.1'), 401);
});

test('a known device has a limit of its own', async (t) => {
  const { person, browser, from } = await scene(t);
  const attempt = async () =>
    (await browser.post('/session', { email: person.email, password: WRONG })).status;
  const statuses: number[] = [];
  for (let count = 0; count < 7; count++) statuses.push(await attempt());
  assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429, 429]);
  assert.equal((await withPassword(from('198.51.100.1'), person)).status, 200, 'others are not concerned');
});

test('a session that guesses codes is locked, and the other sessions of its user are not', async (t) => {
  const listening = await scene(t);
  const { person, browser, clock } = listening;
  const statuses: number[] = [];
  for (let count = 0; count < 6; count++)
    statuses.push((await browser.post('/session/step-up', { totp: '000000' })).status);
  assert.deepEqual(statuses, [401, 401, 401, 401, 401, 429]);
  const totp = person.code(clock.now());
  assert.equal((await browser.post('/session/step-up', { totp })).status, 429);
  clock.advance(30_000);
  const other = await signIn(listening, person);
  const { status } = await other.post('/session/step-up', { totp: person.code(clock.now()) });
  assert.equal(status, 200);
});

test('only a cookie of this service, of this user, and of this enrollment makes a device known', async (t) => {
  const listening = await scene(t);
  const { person, browser, clock, service, from, lockAccount } = listening;
  const eve = (await enrolled(listening, { email: 'eve@example.com' })).browser;
  const [name = '', value = ''] = [...browser.cookies].find(([each]) => /device/.test(each)) ?? [];
  assert.match(value, /^[A-Za-z0-9_-]{43}$/);
  await lockAccount();
  const attempt = async (cookie: string) => {
    const stranger = from('198.51.100.1');
    stranger.cookies.set(name, cookie);
    return (await withPassword(stranger, person)).status;
  };
  assert.equal(await attempt(value), 200);
  const [[, ofEve = ''] = []] = [...eve.cookies].filter(([each]) => /device/.test(each));
  const bytes = Buffer.from(value, 'base64url');
  for (let at = 0; at < bytes.length; at += 5) {
    const forged = Buffer.from(bytes);
    forged[at] = (forged[at] ?? 0) ^ 1;
    assert.equal(await attempt(forged.toString('base64url')), 429, `byte ${at}`);
  }
  assert.equal(await attempt(ofEve), 429);
  const again = await reset(service, person.id);
  clock.advance(1_000);
  await accept(listening, again.token);
  assert.equal(await attempt(value), 429, 'a device of an earlier enrollment');
});

test('a locked person is told how long to wait', async (t) => {
  const { guess, from, person, clock } = await scene(t);
  for (let count = 0; count < 6; count++) await guess('192.0.2.1');
  clock.advance(5 * 60_000);
  const { headers, body } = await withPassword(from('192.0.2.1'), person);
  assert.match(body.detail, /in 10 minutes/);
  assert.ok(Math.abs(Number(headers.get('retry-after')) - 600) < 30, String(headers.get('retry-after')));
});

test('what strangers have left is deleted in the background, in portions, and never by a sign-in', async (t) => {
  const listening = await scene(t);
  const { person, service, clock } = listening;
  const rows = async () => {
    const [counted] = await service.db.query<{ rows: number }>(sql`
      select (select count(*) from sign_ins)::integer + (select count(*) from sign_in_attempts)::integer
        as rows`);
    return counted?.rows;
  };
  await service.db.query(sql`
    insert into sign_ins (token_hash, stage, expires_at)
    select sha256(n::text::bytea), 'used', ${clock.now()}::timestamptz - interval '1 minute'
    from generate_series(1, 2500) n`);
  await service.db.query(sql`
    insert into sign_in_attempts (subject, failures, since)
    select sha256(n::text::bytea), 1, ${clock.now()}::timestamptz - interval '2 hours'
    from generate_series(1, 2500) n`);
  await signIn(listening, person);
  assert.ok(((await rows()) as number) >= 5_000);
  const deleted: number[] = [];
  const query = service.db.query;
  const db = {
    ...service.db,
    query: async <Row>(statement: Parameters<typeof query>[0]) => {
      const found = await query<Row>(statement);
      deleted.push(found.length);
      return found;
    },
  };
  await SCHEDULE['delete-sign-ins']?.run({ ...service, db }, () => false);
  assert.deepEqual(deleted, [2_000, 2_000, 1_000, 0]);
  assert.ok(((await rows()) as number) < 20);
});

test('a lock outlives the deletion of attempts for a day, so that the next one is longer', async (t) => {
  const { guess, clock, service } = await scene(t);
  for (let count = 0; count < 6; count++) await guess('192.0.2.1');
  clock.advance(16 * 60_000);
  for (let count = 0; count < 6; count++) await guess('192.0.2.1');
  clock.advance(16 * 60_000);
  await SCHEDULE['delete-sign-ins']?.run(service, () => false);
  assert.equal(await guess('192.0.2.1'), 429, 'the second lock lasts half an hour');
});

test('a user has ten sessions: a further one ends the oldest', async (t) => {
  const listening = await scene(t);
  const { person, browser } = listening;
  const others: Browser[] = [];
  for (let count = 0; count < 10; count++) others.push(await signIn(listening, person));
  assert.equal((await browser.get('/session')).status, 401);
  for (const other of others) assert.equal((await other.get('/session')).status, 200);
});
