import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listAudit } from '../../src/audit/entries.ts';
import { flushRefusals } from '../../src/audit/refusals.ts';
import { verifyAudit } from '../../src/audit/verify.ts';
import type { Service } from '../../src/context.ts';
import { Tally } from '../../src/tally.ts';
import { Browser, enrolled, PASSWORD } from '../support/browser.ts';
import { testService } from '../support/harness.ts';

/** Who was refused: in the audit, with a bounded number of entries whatever strangers do. */

const WRONG = 'wrong horse battery';

/** The entries of refusals, oldest first. */
async function refusalsOf(service: Service) {
  const entries = await listAudit(service.db, null, 100);
  return entries
    .filter(({ action }) => /refused|locked/.test(action))
    .reverse()
    .map(({ action, subject, actor, after }) => ({ action, subject, actor, after }));
}

test('refused sign-ins and locks are in the audit, with the address and how often', async (t) => {
  const { service, baseUrl, clock, ...listening } = await testService(t);
  // However long the guesses take, they are written when this test says so.
  t.mock.method(service.refusals, 'schedule', () => {});
  const { person } = await enrolled({ service, baseUrl, clock, ...listening });
  // A lock lasts for as long as this test says.
  clock.set(clock.now());
  const stranger = new Browser(baseUrl);
  const guess = (email: string) => stranger.post('/session', { email, password: WRONG });
  for (let count = 0; count < 7; count++) await guess(person.email);
  await guess('nobody@example.com');
  await guess('no-one@example.com');
  await stranger.post('/enrollment', { token: 'a link of nobody' });
  await flushRefusals(service);
  await guess('nobody@example.com');
  await flushRefusals(service);
  clock.advance(3_600_000);
  await flushRefusals(service);
  const subject = `user ${person.id}`;
  const addresses = ['127.0.0.1'];
  const stranger_ = { actor: 'stranger' };
  assert.deepEqual(await refusalsOf(service), [
    { action: 'session.refused', subject, ...stranger_, after: { by: 'password', count: 5, addresses } },
    { action: 'account.locked', subject, ...stranger_, after: { by: 'password', count: 2, addresses } },
    {
      action: 'session.refused',
      subject: 'unknown account',
      ...stranger_,
      after: { by: 'password', count: 2, addresses },
    },
    {
      action: 'session.refused',
      subject: 'unknown account',
      ...stranger_,
      after: { by: 'invitation', count: 1, addresses },
    },
    {
      action: 'session.refused',
      subject: 'unknown account',
      ...stranger_,
      after: { by: 'password', count: 3, addresses },
    },
  ]);
  const entries = await listAudit(service.db, null, 100);
  const text = entries.map(({ after, subject, actor }) => JSON.stringify([after, subject, actor])).join();
  assert.ok(!text.includes(WRONG) && !text.includes('nobody@example.com'));
  assert.equal((await verifyAudit(service, null)).ok, true);
});

test('refused codes, step-ups, roles and tokens name their principal', async (t) => {
  const listening = await testService(t);
  const { service, baseUrl, clock } = listening;
  t.mock.method(service.refusals, 'schedule', () => {});
  const { person, browser } = await enrolled(listening, { roles: ['support'] });
  await browser.post('/session/step-up', { totp: '000000' });
  assert.equal((await browser.post('/merchants', { name: 'Kiosk', reason: 'x' })).status, 403);
  const half = new Browser(baseUrl);
  await half.post('/session', { email: person.email, password: PASSWORD });
  await half.post('/session', { totp: '000000' });
  const owner = (await enrolled(listening, { email: 'bob@example.com' })).browser;
  const { body } = await owner.post('/tokens', { roles: ['support'], reason: 'x' });
  const asMachine = () =>
    fetch(`${baseUrl}/operator/v1/merchants`, { headers: { authorization: `Bearer ${body.token}` } });
  assert.equal((await asMachine()).status, 200);
  assert.equal((await owner.post(`/tokens/${body.id}/revoke`, { reason: 'x' })).status, 200);
  assert.equal((await asMachine()).status, 401);
  clock.advance(1_000);
  await flushRefusals(service);
  const subject = `user ${person.id}`;
  const after = (by: string | null) => ({ by, count: 1, addresses: ['127.0.0.1'] });
  assert.deepEqual(await refusalsOf(service), [
    { action: 'session.step-up-refused', subject, actor: person.email, after: after('totp') },
    {
      action: 'operation.refused',
      subject: 'operation merchant.create',
      actor: person.email,
      after: after(null),
    },
    { action: 'session.refused', subject, actor: 'stranger', after: after('totp') },
    { action: 'token.refused', subject: `token ${body.id}`, actor: 'stranger', after: after(null) },
  ]);
});

test('a flush waits for the refusals that another one is writing', async (t) => {
  const { service, baseUrl } = await testService(t);
  t.mock.method(service.refusals, 'schedule', () => {});
  await new Browser(baseUrl).post('/session', { email: 'nobody@example.com', password: WRONG });
  let isWritten = false;
  // As the timer of the service does it.
  void flushRefusals(service).then(() => {
    isWritten = true;
  });
  await flushRefusals(service);
  assert.ok(isWritten);
  assert.equal((await refusalsOf(service)).length, 1);
});

const now = new Date('2026-03-01T12:00:00Z');
const later = (minutes: number) => new Date(now.getTime() + minutes * 60_000);

test('the first event of a key is written at once, and the number of all at the end of the period', () => {
  const tally = new Tally<string>({ periodMs: 3_600_000, keysMax: 3, sourcesMax: 2 });
  const count = (key: string, at: Date, source = 'a') => tally.count(key, key, source, 'others', at);
  count('x', now);
  assert.deepEqual(tally.take(now), [{ event: 'x', count: 1, sources: ['a'] }]);
  for (const source of ['b', 'c', 'd']) count('x', later(1), source);
  count('y', later(2));
  assert.deepEqual(tally.take(later(2)), [{ event: 'y', count: 1, sources: ['a'] }]);
  assert.deepEqual(tally.take(later(59)), []);
  assert.deepEqual(tally.take(later(60)), [{ event: 'x', count: 4, sources: ['a', 'b'] }]);
  assert.deepEqual(tally.take(later(200)), []);
  count('x', later(201));
  count('x', later(202));
  assert.deepEqual(tally.take(later(203), true), [{ event: 'x', count: 2, sources: ['a'] }]);
});

test('a thousand keys of strangers are written as a few, and the rest together', () => {
  const tally = new Tally<string>({ keysMax: 50 });
  for (let key = 0; key < 1_000; key++) tally.count(`${key}`, `${key}`, `${key}`, 'others', now);
  const first = tally.take(now);
  assert.equal(first.length, 51);
  assert.deepEqual([first.at(-1)?.event, first.at(-1)?.count], ['others', 950]);
  for (let key = 0; key < 1_000; key++) tally.count(`${key}`, `${key}`, `${key}`, 'others', later(1));
  assert.equal(tally.take(later(1)).length, 0);
  assert.equal(tally.take(later(61)).length, 51);
});
