import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { createService, type Service } from '../../src/context.ts';
import { hashOfBearer, newBearer } from '../../src/credentials.ts';
import { sql } from '../../src/db/sql.ts';
import { admitTo, openDesk } from '../../src/http/operator/desk.ts';
import { hashPassword, isPassword, PASSWORD_COST } from '../../src/people/password.ts';
import { isToken, newToken } from '../../src/people/tokens.ts';
import { Browser, enrolled, PASSWORD, signIn } from '../support/browser.ts';
import { serviceWithoutDatabase, testService } from '../support/harness.ts';

/** What strangers can use up: queries, connections, places and the hashes of passwords. */

test('a token that this service has not made is recognized without a query', async (t) => {
  const service = serviceWithoutDatabase();
  t.after(() => service.db.close());
  const { keys } = service;
  const { token } = newBearer(keys, 'session');
  assert.ok(hashOfBearer(keys, 'session', token));
  assert.equal(hashOfBearer(keys, 'invitation', token), undefined, 'of another purpose');
  const bytes = Buffer.from(token, 'base64url');
  for (let at = 0; at < bytes.length; at++) {
    const forged = Buffer.from(bytes);
    forged[at] = (forged[at] ?? 0) ^ 1;
    assert.equal(hashOfBearer(keys, 'session', forged.toString('base64url')), undefined, `byte ${at}`);
  }
  for (const odd of ['', 'x', randomBytes(32).toString('base64url'), `${token}A`, token.slice(0, -1)])
    assert.equal(hashOfBearer(keys, 'session', odd), undefined, odd);
  const machine = newToken(service);
  assert.match(machine, /^scrop_[0-9A-Za-z]{49}$/);
  assert.ok(isToken(service, machine));
  const stranger = serviceWithoutDatabase();
  t.after(() => stranger.db.close());
  assert.ok(!isToken(service, newToken(stranger)), 'of another key ring, with a right checksum');
});

test('forged credentials open no connection to the database', async (t) => {
  const { baseUrl, service } = await testService(t);
  const { service: other } = await testService(t);
  const isolated = createService({ ...service, keys: other.keys });
  const forgedCookie = `__Host-scrip_console=${newBearer(other.keys, 'session').token}`;
  // The audit of what was refused opens one, a second later.
  t.mock.method(service.refusals, 'schedule', () => {});
  const before = await connections(service);
  for (let count = 0; count < 20; count++) {
    const page = { 'sec-fetch-site': 'same-origin' };
    const cookie = await fetch(`${baseUrl}/operator/v1/session`, {
      headers: { ...page, cookie: forgedCookie },
    });
    const bearer = await fetch(`${baseUrl}/operator/v1/merchants`, {
      headers: { authorization: `Bearer ${newToken(isolated)}` },
    });
    const link = await new Browser(baseUrl).post('/enrollment', {
      token: newBearer(other.keys, 'invitation').token,
    });
    assert.deepEqual([cookie.status, bearer.status, link.status], [401, 401, 401]);
  }
  assert.equal(await connections(service), before);
});

/** The connections of the console and of strangers that have been opened. */
async function connections({ db }: Service): Promise<number | undefined> {
  const [counted] = await db.query<{ sessions: number }>(sql`
    select count(*)::integer as sessions from pg_stat_activity
    where datname = current_database() and application_name in ('scrip-operator', 'scrip-strangers')`);
  return counted?.sessions;
}

const REQUEST = { ip: '192.0.2.1' } as Parameters<typeof admitTo>[1];
const replyTo = () => {
  const ends: (() => void)[] = [];
  const reply = { raw: { once: (_event: string, end: () => void) => ends.push(end) } };
  return {
    reply: reply as unknown as Parameters<typeof admitTo>[2],
    end: () => {
      for (const each of ends) each();
    },
  };
};

test('strangers have places and connections of their own, with a share for each network', async (t) => {
  const service = serviceWithoutDatabase();
  const desk = openDesk(service);
  t.after(() => Promise.all([desk.close(), service.db.close()]));
  const enter = (ip: string, credential?: string) => {
    const { reply, end } = replyTo();
    const admitted = admitTo(desk, { ...REQUEST, ip } as typeof REQUEST, reply, credential);
    return { admitted, end };
  };
  const inside = Array.from({ length: 32 }, () => enter('192.0.2.1'));
  assert.ok(inside.every(({ admitted }) => admitted === desk.strangers));
  assert.throws(() => enter('192.0.2.1'), { code: '91' });
  assert.equal(enter('192.0.2.2').admitted, desk.strangers, 'another network');
  assert.equal(enter('192.0.2.1', 'a session').admitted, desk.service, 'a session in the same network');
  for (const { end } of inside) end();
  assert.equal(enter('192.0.2.1').admitted, desk.strangers);
  assert.notEqual(desk.strangers.db, desk.service.db);
});

test('strangers who fill the queue of passwords do not keep a known device waiting', async () => {
  const stored = await hashPassword(PASSWORD);
  const done: string[] = [];
  const check = (by: Parameters<typeof isPassword>[2], name: string) =>
    isPassword(PASSWORD, stored, by).then(() => done.push(name));
  const strangers: Promise<unknown>[] = [];
  const refused: unknown[] = [];
  for (let count = 0; count < 60; count++) {
    const network = `192.0.2.${count % 10}`;
    strangers.push(check({ network }, 'stranger').catch((error) => refused.push(error)));
  }
  const owner = check('known', 'owner');
  await owner;
  assert.ok(done.length <= 2, `${done.length} were hashed before`);
  await Promise.all(strangers);
  assert.ok(refused.length >= 39, `${refused.length} were refused`);
});

test('one network has five passwords in the queue, and leaves places for others', async () => {
  const stored = await hashPassword(PASSWORD);
  const check = (network: string) => isPassword(PASSWORD, stored, { network });
  const flood = Array.from({ length: 20 }, () => check('192.0.2.1').catch(() => 'refused'));
  const other = check('192.0.2.2');
  const answers = await Promise.all(flood);
  assert.ok(answers.filter((answer) => answer === 'refused').length >= 14);
  assert.equal(await other, true);
});

test('a password is checked at the cost of its hash, and hashed again at the present cost', async (t) => {
  const listening = await testService(t);
  const { person } = await enrolled(listening);
  const hashOf = async () => {
    const [user] = await listening.service.db.query<{ hash: string }>(
      sql`select password_hash as hash from users where id = ${person.id}`,
    );
    return user?.hash ?? '';
  };
  const before = PASSWORD_COST.N;
  t.after(() => {
    PASSWORD_COST.N = before;
  });
  assert.match(await hashOf(), new RegExp(`^scrypt\\$${before}\\$`));
  PASSWORD_COST.N = before * 2;
  await signIn(listening, person);
  assert.match(await hashOf(), new RegExp(`^scrypt\\$${before * 2}\\$`));
  const wrong = await new Browser(listening.baseUrl).post('/session', {
    email: person.email,
    password: 'wrong horse battery',
  });
  assert.equal(wrong.status, 401);
  await signIn(listening, person);
});

test('an address with characters that the database cannot hold is refused before it is asked', async (t) => {
  const { baseUrl } = await testService(t);
  for (const door of ['operator', 'portal'] as const)
    for (const email of ['ada\u0000@example.com', '\u0000', 'ada\ud800@example.com']) {
      const { status, body, text } = await new Browser(baseUrl, door).post('/session', {
        email,
        password: 'x',
      });
      assert.deepEqual([status, body.code], [400, 'invalid'], text);
    }
});
