import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { closeDays, keepBooks } from '../../src/books/close.ts';
import { listDays, setBooks } from '../../src/books/days.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { HOUR_MS, isoDay } from '../../src/time.ts';
import { openLedger, sell, spend } from '../support/books.ts';
import { ownerOf } from '../support/owner.ts';
import { until } from '../support/until.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));

test('a process whose clock is an hour ahead or behind cannot book', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { clock } = ledger.started;
  const shop = await ledger.merchant();
  const [card] = await sell(shop, 1, 25);
  assert.ok(card);
  for (const offsetMs of [HOUR_MS, -HOUR_MS]) {
    clock.set(new Date(Date.parse('2026-03-02T09:00:00Z') + offsetMs));
    await assert.rejects(spend(shop, card, 10), { code: 'SC001' });
  }
  clock.set(new Date('2026-03-02T09:00:30Z'));
  await spend(shop, card, 10);
});

test('a process whose clock is an hour ahead neither closes days nor sweeps vouchers early', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { clock } = ledger.started;
  const shop = await ledger.merchant();
  await sell(shop, 1, 25, { expiryDate: new Date('2026-03-04T00:00:00Z') });
  await ledger.at('2026-03-03T23:30:00Z');
  assert.equal((await ledger.close()).closed.length, 1);
  clock.advance(HOUR_MS);
  await assert.rejects(ledger.close(), { code: 'SC001' });
  const left = () => ledger.sql("select 1 from scrip.journal where kind = 'EXPIRY'");
  assert.equal((await left()).length, 0);
  assert.equal((await ledger.sql('select 1 from scrip.book_closings')).length, 1);
  await ledger.at('2026-03-04T00:20:00Z');
  assert.equal((await ledger.close()).closed.length, 1);
  assert.equal((await left()).length, 1);
});

test('a worker killed in the middle of a close leaves nothing half done', async (t) => {
  const now = Date.now();
  const ledger = await openLedger(t, new Date(now - 48 * HOUR_MS).toISOString());
  const { service, url, keys } = ledger.started;
  const shop = await ledger.merchant();
  const [card] = await sell(shop, 2, 25);
  assert.ok(card);
  await spend(shop, card, 10);
  await ledger.at(new Date(now));
  const holding = await ownerOf(t, url);
  const ask = <Row>(text: string) => holding.query<Row>({ text, values: [] });
  const env = { PATH: process.env['PATH'], SCRIP_DATABASE_URL: url, SCRIP_KEYS: keys };
  // In the middle of sealing, of storing the balances of the day, and right before the end.
  for (const table of ['book_seals', 'book_aging', 'audit']) {
    await ask(`begin; lock table scrip.${table} in exclusive mode`);
    let worker: ChildProcess | undefined;
    const waiting = `select pid from pg_locks where not granted and relation = 'scrip.${table}'::regclass`;
    const pid = await until(`the close comes to ${table}`, async () => {
      // A close has nothing to do while an older transaction is open: of another test on the same server.
      assert.ok(!worker?.exitCode, 'the close failed');
      if (worker === undefined || worker.exitCode !== null)
        worker = spawn(process.execPath, [MAIN, 'books', 'close'], { env, stdio: 'ignore' });
      return (await ask<{ pid: number }>(waiting))[0]?.pid;
    });
    assert.ok(worker);
    const ended = once(worker, 'exit');
    worker.kill('SIGKILL');
    await ended;
    await ask('commit');
    // Until the server notices, the next close finds a transaction that has not ended.
    const running = `select from pg_stat_activity where pid = ${pid}`;
    await until('the server ends the transaction', async () => (await ask(running)).length === 0);
  }
  const { closed } = await ledger.close();
  // One in the first minutes of a day, in which the day before is not closed yet; else two.
  assert.ok(closed.length > 0);
  for (const { failed } of closed) assert.deepEqual(failed, []);
  const [noted] = await ledger.sql<{ count: bigint }>(
    "select count(*) as count from scrip.audit where action = 'books.close'",
  );
  assert.equal(Number(noted?.count), closed.length);
  assert.deepEqual((await verifyBooks(service)).breaks, []);
});

test('two processes that close at the same time close each day once', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  await sell(shop, 1, 25);
  await ledger.at('2026-03-05T09:00:00Z');
  const done = await Promise.all([closeDays(ledger.operator), closeDays(ledger.operator)]);
  const both = [...done, await ledger.close()].flatMap(({ closed }) => closed.map(({ day }) => day));
  assert.deepEqual(both.sort(), ['2026-03-02', '2026-03-03', '2026-03-04']);
  assert.deepEqual((await verifyBooks(ledger.started.service)).breaks, []);
});

test('a transaction open across the cut-off delays the close, which reports it', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T23:59:00Z');
  const { service, url } = ledger.started;
  const shop = await ledger.merchant();
  const [card] = await sell(shop, 1, 25);
  assert.ok(card);
  const hanging = await ownerOf(t, url);
  const ask = (text: string) => hanging.query({ text, values: [] });
  await ask('set search_path = scrip');
  await ask('begin');
  await ask("select check_stamp('2026-03-02T23:59:00Z')");
  await ledger.at('2026-03-03T09:00:00Z');
  const { closed, waiting } = await closeDays(ledger.operator);
  assert.deepEqual(closed, []);
  assert.match(waiting?.reason ?? '', /^a transaction that may belong to 2026-03-02 has not ended/);
  await ask('commit');
  assert.equal((await ledger.close()).closed.length, 1);
  assert.deepEqual((await verifyBooks(service)).breaks, []);
});

test('days have 23 and 25 hours when the clocks of their time zone change', async (t) => {
  for (const [zone, start, lengths] of [
    ['Europe/Rome', '2026-03-28T12:00:00Z', [24, 23, 24]],
    ['Europe/Rome', '2026-10-24T12:00:00Z', [24, 25, 24]],
    ['Asia/Kathmandu', '2026-03-28T12:00:00Z', [24, 24, 24]],
  ] as const) {
    const ledger = await openLedger(t, start);
    const { service } = ledger.started;
    await ledger.sql(`update scrip.books set zone = '${zone}'`);
    const shop = await ledger.merchant();
    await sell(shop, 1, 25);
    await ledger.at(new Date(Date.parse(start) + 72 * HOUR_MS));
    await ledger.close();
    const days = (await listDays(service)).filter(({ state }) => state === 'closed');
    const hours = days.map(({ startsAt, endsAt }) => (endsAt.getTime() - startsAt.getTime()) / HOUR_MS);
    assert.deepEqual(hours, lengths, zone);
    assert.deepEqual((await verifyBooks(service)).breaks, []);
  }
});

test('a change of time zone takes effect on a later day, without a gap', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { service } = ledger.started;
  await ledger.merchant();
  await setBooks(ledger.operator, { zone: 'America/New_York' });
  await assert.rejects(setBooks(ledger.operator, { zone: 'Nowhere/Land' }), { code: '30' });
  await ledger.at('2026-03-04T12:00:00Z');
  await ledger.close();
  const days = await listDays(service);
  assert.deepEqual(
    days.map(({ day, endsAt }) => [day, endsAt.toISOString()]),
    [
      ['2026-03-02', '2026-03-03T00:00:00.000Z'],
      ['2026-03-03', '2026-03-04T05:00:00.000Z'],
      ['2026-03-04', '2026-03-05T05:00:00.000Z'],
    ],
  );
});

test('the job of the books closes thirty missed days in order', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { service } = ledger.started;
  const shop = await ledger.merchant();
  await sell(shop, 2, 25);
  await ledger.at('2026-04-01T09:00:00Z');
  await keepBooks(service, [], () => false);
  await ledger.close();
  const closed = (await listDays(service)).filter(({ state }) => state === 'closed');
  assert.equal(closed.length, 30);
  assert.deepEqual((await verifyBooks(service)).breaks, []);
});

test('an amount returned to an expired voucher is swept again', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const expiryDate = new Date('2026-03-04T00:00:00Z');
  const [card] = await sell(shop, 1, 25, { expiryDate });
  assert.ok(card);
  await spend(shop, card, 10, 'till');
  await ledger.at('2026-03-05T09:00:00Z');
  await ledger.close();
  const { updateRedemption } = await import('../../src/redemptions/update.ts');
  await updateRedemption({ ...shop, now: ledger.started.clock.now() }, { reference: 'till', amountUsed: 4 });
  await ledger.at('2026-03-06T09:00:00Z');
  await ledger.close();
  const expiries = await ledger.sql<{ amount_minor: bigint; at: Date }>(
    "select amount_minor, occurred_at as at from scrip.journal where kind = 'EXPIRY' order by occurred_at",
  );
  assert.deepEqual(
    expiries.map(({ amount_minor, at }) => [amount_minor, isoDay(at.getTime())]),
    [
      [1500n, '2026-03-04'],
      [600n, '2026-03-06'],
    ],
  );
});
