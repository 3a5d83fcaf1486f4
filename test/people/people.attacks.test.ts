import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import { test } from 'node:test';
import { createService } from '../../src/context.ts';
import { sql } from '../../src/db/sql.ts';
import { buildServer } from '../../src/http/server.ts';
import { createLogger } from '../../src/log.ts';
import { countAttempt, passwordLimits } from '../../src/people/attempts.ts';
import { users } from '../../src/people/users.ts';
import { Problem } from '../../src/problem.ts';
import { Browser, COST_OF_SERVICE, enrolled, invited, PASSWORD, signIn } from '../support/browser.ts';
import { asOperator, testService } from '../support/harness.ts';

const WRONG = 'wrong horse battery';

test('the password hash has the cost that OWASP recommends', () => {
  assert.deepEqual(COST_OF_SERVICE, { N: 2 ** 15, r: 8, p: 3 });
});

test('a code of an authenticator app is accepted once across all processes', async (t) => {
  const one = await testService(t);
  const two = await testService(t, one);
  const { person } = await enrolled(one);
  const browsers = [one, two, one, two].map(({ baseUrl }) => new Browser(baseUrl));
  const { email, password } = person;
  for (const browser of browsers)
    assert.equal((await browser.post('/session', { email, password })).status, 200);
  const totp = person.code(one.clock.now());
  const answers = await Promise.all(browsers.map((browser) => browser.post('/session', { totp })));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 401, 401, 401]);
  const before = person.code(new Date(one.clock.now().getTime() - 30_000));
  const last = new Browser(two.baseUrl);
  await last.post('/session', { email, password });
  assert.equal((await last.post('/session', { totp: before })).status, 401);
});

test('five of a thousand parallel guesses are checked, and the account unlocks by itself', async (t) => {
  const one = await testService(t);
  const two = await testService(t, one);
  const { person } = await enrolled(one);
  const guess = async (index: number) => {
    const browser = new Browser((index % 2 === 0 ? one : two).baseUrl);
    return (await browser.post('/session', { email: person.email, password: `${WRONG} ${index}` })).status;
  };
  const statuses = await Promise.all(Array.from({ length: 1_000 }, (_, index) => guess(index)));
  const checked = statuses.filter((status) => status === 401).length;
  assert.ok(checked <= 5, `${checked} were checked`);
  // The others are refused: the account is locked, or the service is busy.
  assert.ok(
    statuses.every((status) => [401, 429, 503].includes(status)),
    String(new Set(statuses)),
  );
  const right = new Browser(one.baseUrl);
  const attempt = () => right.post('/session', { email: person.email, password: PASSWORD });
  const locked = await attempt();
  assert.deepEqual([locked.status, locked.body.code], [429, 'too-many-requests']);
  one.clock.advance(61 * 60_000);
  assert.equal((await attempt()).status, 200);
});

const TRIAL = {
  userId: undefined,
  by: 'password',
  origin: { address: '192.0.2.1', agent: '', page: '', requestId: '', devices: [] },
};

test('each lock lasts twice as long as the one before, up to a day', async (t) => {
  const { clock, service } = await testService(t);
  const waits: number[] = [];
  const limits = passwordLimits({ door: 'operator', email: 'ada@example.com', address: '192.0.2.1' });
  while (waits.length < 9) {
    try {
      await countAttempt(service, { ...TRIAL, limits: limits.slice(1, 2) });
    } catch (error) {
      assert.ok(error instanceof Problem);
      const minutes = Number(/in (\d+) minutes/.exec(error.message)?.[1]);
      waits.push(minutes);
      clock.advance(minutes * 60_000);
    }
  }
  assert.deepEqual(waits, [15, 30, 60, 120, 240, 480, 960, 1440, 1440]);
});

test('fifty attempts lock a network for an hour, whichever accounts they name', async (t) => {
  const { clock, service } = await testService(t);
  const attempt = (account: number, address: string) => {
    const limits = passwordLimits({ door: 'operator', email: `${account}@example.com`, address });
    return countAttempt(service, { ...TRIAL, limits });
  };
  for (let account = 0; account < 50; account++) await attempt(account, `2001:db8::${account}`);
  await assert.rejects(attempt(50, '2001:db8::ffff'), /too many attempts/);
  await attempt(50, '2001:db8:0:1::1');
  clock.advance(61 * 60_000);
  await attempt(51, '2001:db8::ffff');
});

test('unknown addresses, wrong passwords and disabled users get one answer after the same work', async (t) => {
  const listening = await testService(t);
  const { service, baseUrl } = listening;
  const known = (await enrolled(listening)).person;
  const disabled = (await enrolled(listening, { email: 'off@example.com', roles: ['support'] })).person;
  await users.disable.run(asOperator(service), { id: String(disabled.id) });
  await invited(service, { email: 'not-yet@example.com' });
  // The work is that of the password's hash: one derivation of a key.
  let derived = 0;
  const counting = createHook({ init: (_id, type) => void (type === 'SCRYPTREQUEST' && derived++) }).enable();
  t.after(() => counting.disable());
  const attempt = async (email: string) => {
    const before = derived;
    const { status, body } = await new Browser(baseUrl).post('/session', { email, password: WRONG });
    return { answer: [status, body.code, body.detail], work: derived - before };
  };
  const first = await attempt(known.email);
  assert.equal(first.work, 1);
  for (const email of [disabled.email, 'not-yet@example.com', 'nobody@example.com'])
    assert.deepEqual(await attempt(email), first, email);
  // They also get the same answer after the fifth attempt.
  const locked = async (email: string) => {
    for (let guess = 0; guess < 5; guess++) await attempt(email);
    return (await attempt(email)).answer;
  };
  assert.deepEqual(await locked('somebody@example.com'), await locked(known.email));
});

test('a session, and its second factor, do not outlive a clock that was ahead', async (t) => {
  const listening = await testService(t);
  const { clock } = listening;
  clock.advance(26 * 60 * 60_000);
  const { browser } = await enrolled(listening);
  clock.advance(-60_000);
  assert.equal((await browser.get('/merchants')).status, 200);
  clock.advance(-26 * 60 * 60_000);
  assert.equal((await browser.get('/merchants')).status, 401);
});

test('an ended session is refused by every process at once', async (t) => {
  const one = await testService(t);
  const two = await testService(t, one);
  const { person } = await enrolled(one);
  await enrolled(one, { email: 'second@example.com' });
  const [operator, id] = [asOperator(one.service), String(person.id)];
  const ends: Record<string, () => Promise<unknown>> = {
    'end-sessions': () => users.endSessions.run(operator, { id }),
    'set-roles': () => users.setRoles.run(operator, { id, roles: ['owner', 'finance'] }),
    disable: () => users.disable.run(operator, { id }),
  };
  for (const [name, end] of Object.entries(ends)) {
    const browser = await signIn(one, person);
    const elsewhere = new Browser(two.baseUrl);
    for (const [cookie, value] of browser.cookies) elsewhere.cookies.set(cookie, value);
    assert.equal((await elsewhere.get('/merchants')).status, 200, name);
    await end();
    assert.equal((await elsewhere.get('/merchants')).status, 401, name);
    assert.equal((await browser.get('/session')).status, 401, name);
  }
});

test('the removal of a role takes effect with the next request', async (t) => {
  const listening = await testService(t);
  const { browser, person } = await enrolled(listening);
  await enrolled(listening, { email: 'second@example.com' });
  await listening.service.db.query(sql`update users set roles = '{support}' where id = ${person.id}`);
  const { status, body } = await browser.post('/users', { email: 'eve@example.com', roles: ['owner'] });
  assert.deepEqual([status, body.code], [403, 'forbidden']);
});

test('requests from a page of another site are refused', async (t) => {
  const listening = await testService(t);
  const { baseUrl } = listening;
  const { browser, person } = await enrolled(listening);
  const foreign: Record<string, Record<string, string | undefined>> = {
    'another origin': { origin: 'https://evil.example' },
    'another port': { origin: baseUrl.replace(/\d+$/, '1') },
    'no origin': { origin: undefined },
    'an opaque origin': { origin: 'null' },
    'a sibling domain': { 'sec-fetch-site': 'same-site' },
    'another site': { 'sec-fetch-site': 'cross-site' },
    'a link that was followed': { 'sec-fetch-site': 'none' },
    'no site': { 'sec-fetch-site': undefined },
    'no header of ours': { 'x-scrip-request': undefined },
  };
  const bodies: readonly [string, string, unknown][] = [
    ['POST', '/session', { email: person.email, password: PASSWORD }],
    ['POST', '/session/step-up', { totp: '000000' }],
    ['POST', '/sessions/end-others', {}],
    ['DELETE', '/session', undefined],
    ['POST', '/users', { email: 'eve@example.com', roles: ['owner'] }],
    ['POST', '/enrollment', { token: 'x' }],
  ];
  for (const [name, headers] of Object.entries(foreign)) {
    for (const [method, path, body] of bodies) {
      const answer = await browser.send(method, path, body, headers);
      assert.deepEqual([answer.status, answer.body.code], [403, 'forbidden'], `${name}: ${method} ${path}`);
      assert.deepEqual(answer.headers.getSetCookie(), []);
      assert.equal(answer.headers.get('access-control-allow-origin'), null);
    }
  }
  for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'multipart/form-data; boundary=x']) {
    const answer = await browser.send('POST', '/session', 'email=x', { 'content-type': type });
    assert.equal(answer.status, 415, type);
  }
  const read = await browser.get('/session', { 'sec-fetch-site': 'cross-site' });
  assert.equal(read.status, 403);
  assert.equal((await browser.get('/session')).status, 200);
});

test('behind a proxy that changes Host, the origin is compared with the public address', async (t) => {
  const { service } = await testService(t);
  const app = buildServer(service, { publicUrl: 'https://vouchers.example.com' });
  t.after(() => app.close());
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  const browser = new Browser(baseUrl);
  const attempt = (origin: string) =>
    browser.post('/session', { email: 'x@example.com', password: WRONG }, { origin });
  assert.equal((await attempt('https://vouchers.example.com')).status, 401);
  assert.equal((await attempt(baseUrl)).status, 403);
  assert.equal((await attempt('http://vouchers.example.com')).status, 403);
});

test('no password, code, link or session token appears in the log or in the database', async (t) => {
  const listening = await testService(t);
  const lines: string[] = [];
  const log = createLogger('trace', { write: (line) => void lines.push(line) });
  const app = buildServer(createService({ ...listening.service, log }));
  t.after(() => app.close());
  const baseUrl = await app.listen({ host: '127.0.0.1', port: 0 });
  const { person, browser } = await enrolled({ ...listening, baseUrl });
  const again = await signIn({ ...listening, baseUrl }, person);
  const { token } = await invited(listening.service, { email: 'bob@example.com' });
  await again.post('/session', { email: person.email, password: `${person.password}!` });
  await again.post('/session', { recoveryCode: person.recoveryCodes[0] });
  await again.post(`/enrollment?token=${token}`, { token, password: person.password });
  const secrets = [person.password, person.totpSecret, token, ...person.recoveryCodes];
  for (const { cookies } of [browser, again]) secrets.push(...cookies.values());
  const tables = ['users', 'recovery_codes', 'sign_ins', 'sessions', 'sign_in_attempts', 'audit'];
  const rows: string[] = [];
  for (const table of tables) {
    const text = `select ${table}::text as row from ${table}`;
    for (const { row } of await listening.service.db.query<{ row: string }>({ text, values: [] }))
      rows.push(row);
  }
  assert.ok(lines.length > 0 && rows.length > 8);
  for (const [where, text] of [
    ['the log', lines.join('\n')],
    ['the database', rows.join('\n')],
  ] as const) {
    for (const secret of secrets) assert.ok(!text.includes(secret), `a secret in ${where}`);
    // Bytes are shown as hexadecimal digits.
    for (const secret of secrets)
      assert.ok(!text.includes(Buffer.from(secret).toString('hex')), `a secret as bytes in ${where}`);
  }
});
