import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { closeDays } from '../../src/books/close.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { openLedger, sell, spend } from '../support/books.ts';
import { namesOfDiffering } from '../support/differing.ts';
import { ownerOf } from '../support/owner.ts';
import { exportedText } from '../support/reports.ts';

test('a transaction open on a worker delays the close of its day', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  await sell(await ledger.merchant(), 1, 25);
  const [node] = (process.env['SCRIP_TEST_WORKERS'] ?? '').split(' ');
  const address = new URL(node ?? '');
  address.pathname = new URL(ledger.started.url).pathname;
  const worker = await ownerOf(t, address.href);
  const onWorker = (text: string) => worker.query({ text, values: [] });
  await onWorker('begin; select pg_current_xact_id()');
  await ledger.at('2026-03-03T00:30:00Z');
  const { closed, waiting } = await closeDays(ledger.operator);
  assert.deepEqual(closed, []);
  assert.match(waiting?.reason ?? '', /a transaction that may belong to 2026-03-02 has not ended/);
  await onWorker('commit');
  assert.deepEqual(
    (await ledger.close()).closed.map(({ day, failed }) => [day, failed]),
    [['2026-03-02', []]],
  );
});

test('days close with vouchers of all buckets, and a row altered on its shard is found', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const shop = await ledger.merchant();
  const cards = await sell(shop, 8, 25);
  assert.equal(cards.length, 8);
  for (const [index, card] of cards.entries()) await spend(shop, card, 10, `till ${index}`);
  await ledger.at('2026-03-03T00:30:00Z');
  assert.deepEqual(
    (await ledger.close()).closed.map(({ failed }) => failed),
    [[]],
  );
  const { ok, days, breaks } = await verifyBooks(ledger.started.service);
  assert.deepEqual([ok, days, breaks], [true, 1, []]);
  const exported = (format: 'ndjson' | 'camt053' | 'proof') =>
    exportedText(ledger.started.service, { format, from: '2026-03-02', to: '2026-03-03' });
  const journal = await ledger.sql<{ id: string; kind: string }>(
    'select id, kind from scrip.journal order by occurred_at, id',
  );
  const lines = (await exported('ndjson')).trim().split('\n');
  assert.deepEqual(
    lines.map((line) => (JSON.parse(line) as { transactionId: string }).transactionId),
    journal.map(({ id }) => id),
  );
  assert.equal((await exported('proof')).match(/^row /gm)?.length, journal.length);
  const stated = journal.filter(({ kind }) => kind !== 'ACTIVATION');
  assert.equal((await exported('camt053')).split('<Ntry>').length, stated.length + 1);
  const [row] = await ledger.sql<{ id: string }>(
    `select id from scrip.journal where kind = 'REDEMPTION' order by id limit 1`,
  );
  await ledger.sql(`update scrip.journal set amount_minor = amount_minor - 1 where id = '${row?.id}'`);
  const after = await verifyBooks(ledger.started.service);
  assert.ok(
    after.breaks.some(({ transactionId, change }) => transactionId === row?.id && change === 'altered'),
  );
});

test('a row of a shard that is in another slice, or under an id of another hour, is found', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { service } = ledger.started;
  const shop = await ledger.merchant();
  const [card, other] = await sell(shop, 2, 25);
  await spend(shop, card, 10, 'one');
  await spend(shop, other, 10, 'other');
  await ledger.at('2026-03-03T00:30:00Z');
  await ledger.close();
  const red = () => namesOfDiffering(service);
  assert.deepEqual(await red(), []);
  const move = (reference: string, to: string) =>
    ledger.sql(`update scrip.journal set occurred_at = '${to}' where reference = '${reference}'`);
  await move('one', '2026-03-02T09:20:00Z');
  assert.deepEqual(await red(), ['slices']);
  await move('one', '2026-03-02T09:00:00Z');
  assert.deepEqual(await red(), []);
  await assert.rejects(move('other', '2026-03-02T11:00:00Z'), /journal_id_near_time/);
  await ledger.sql('alter table scrip.journal drop constraint journal_id_near_time');
  await move('other', '2026-03-02T11:00:00Z');
  assert.deepEqual(await red(), ['slices']);
});

test('a reconciliation since the last closing reads the rows of all shards since then', async (t) => {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { service } = ledger.started;
  const shop = await ledger.merchant(100_000n);
  const cards = await sell(shop, 8, 25);
  for (const [index, card] of cards.entries()) await spend(shop, card, 10, `till ${index}`);
  await ledger.at('2026-03-03T08:00:00Z');
  await ledger.close();
  for (const [index, card] of cards.slice(4).entries()) await spend(shop, card, 5, `again ${index}`);
  await sell(shop, 2, 30);
  await ledger.at('2026-03-03T09:00:00Z');
  const red = async () => {
    const { since, checks } = await reconcile(service, { sinceClosing: true });
    return { since, red: checks.filter(({ ok }) => !ok).map(({ name }) => name) };
  };
  const since = '2026-03-02';
  assert.deepEqual(await red(), { since, red: [] });
  await ledger.sql('update scrip.floats set balance_minor = balance_minor + 1');
  assert.deepEqual(await red(), { since, red: ['float-balances'] });
  await ledger.sql('update scrip.floats set balance_minor = balance_minor - 1');
  const [row] = await ledger.sql<{ serial: string }>(
    `select serial_number::text as serial from scrip.journal where reference = 'again 0'`,
  );
  await ledger.sql(
    `update scrip.vouchers set balance_minor = balance_minor + 1 where serial_number = ${row?.serial}`,
  );
  assert.deepEqual(await red(), { since, red: ['voucher-balances'] });
});

test('a float does not differ by what a worker has prepared and not committed yet', async (t) => {
  const ledger = await openLedger(t, new Date().toISOString());
  await ledger.merchant(10_000n);
  const [place] = await ledger.sql<{ shard: string; host: string; port: number }>(`
    select shard_name('scrip.journal', s.shard) as shard, n.nodename as host, n.nodeport as port
    from (
      select get_shard_id_for_distribution_column('scrip.journal', j.bucket) as shard
      from scrip.journal j where j.kind = 'TOP_UP'
    ) s
    join pg_dist_placement p on p.shardid = s.shard
    join pg_dist_node n on n.groupid = p.groupid`);
  assert.ok(place);
  const address = new URL(ledger.started.url);
  address.hostname = place.host;
  address.port = String(place.port);
  const worker = await ownerOf(t, address.href);
  const onWorker = (text: string) => worker.query({ text, values: [] });
  const prepare = async (name: string) => {
    await ledger.sql('update scrip.floats set balance_minor = balance_minor + 100');
    await onWorker('begin');
    const added = await onWorker(`
      insert into ${place.shard} select (j).* from (
        select jsonb_populate_record(j, jsonb_build_object('id', overlay(j.id::text placing '${name}' from 33),
          'amount_minor', 100, 'reference', '${name}')) as j
        from ${place.shard} j where j.kind = 'TOP_UP') k
      returning id`);
    assert.equal(added.length, 1);
    await onWorker(`prepare transaction '${name}'`);
  };
  const areBalanced = async () => {
    const { checks } = await reconcile(ledger.started.service);
    return checks.find(({ name }) => name === 'float-balances')?.ok;
  };
  await prepare('aaaa');
  const checked = areBalanced();
  // The float is locked while it is compared again, for two seconds.
  const locked = `select from pg_locks l where l.relation = 'scrip.floats'::regclass and l.mode = 'RowShareLock'`;
  while ((await ledger.sql(locked)).length === 0) await sleep(50);
  await sleep(4_000);
  await onWorker(`commit prepared 'aaaa'`);
  assert.equal(await checked, true);
  await ledger.sql('update scrip.floats set balance_minor = balance_minor + 100');
  assert.equal(await areBalanced(), false);
});
