import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { distribute } from '../../src/db/distribute.ts';
import { StartError } from '../../src/db/errors.ts';
import { migrate } from '../../src/db/migrate.ts';
import { openDatabase, openOwner } from '../../src/db/pool.ts';
import { splitStatements } from '../../src/db/sql.ts';
import { A, update } from '../support/dialects.ts';
import { testDatabase } from '../support/harness.ts';
import { ownerOf } from '../support/owner.ts';
import { runScrip } from '../support/scrip.ts';
import { Till } from '../support/till.ts';
import { emptyCluster, executeOn, startOn } from './databases.ts';

/** Expects an error of one line, which says what to do. */
function refuses(run: Promise<unknown>, why: RegExp): Promise<void> {
  return assert.rejects(run, (error) => {
    assert.ok(error instanceof StartError, String(error));
    assert.match(error.message, why);
    assert.ok(!error.message.includes('\n'));
    return true;
  });
}

test('a cluster that is not ready is refused in one line, and nothing is changed', async (t) => {
  const { url, workers } = await emptyCluster(t);
  await migrate(url);
  await executeOn(url, 'drop extension citus');
  await refuses(distribute(url), /does not have Citus: `create extension citus`/);
  await executeOn(url, 'create extension citus');
  await refuses(distribute(url), /has no workers: `select citus_add_node/);
  await refuses(distribute(workers[0] as string), /no Citus|has no workers|is a worker/);
});

test('absent nodes, a bucket count out of bounds and a running service are refused in one line', async (t) => {
  const { url, addWorkers } = await emptyCluster(t);
  await migrate(url);
  await addWorkers();
  for (const buckets of [0, 1, 1.5, 65, Number.NaN])
    await refuses(distribute(url, buckets), /--buckets must be/);
  const db = openDatabase(url, 'scrip-serve');
  await db.query({ text: 'select 1', values: [] });
  await refuses(distribute(url), /Scrip works on this database \(1 connections\): stop/);
  await db.close();
  await executeOn(url, `update pg_dist_node set nodeport = 1 where groupid = 2`);
  await refuses(distribute(url), /the node 127\.0\.0\.1:1 does not answer/);
  await executeOn(url, 'delete from pg_dist_node where groupid = 0');
  await refuses(
    distribute(url),
    /know the coordinator: `select citus_set_coordinator_host\('HOST', PORT\)` at/,
  );
});

test('a standby of the coordinator is refused in one line', async (t) => {
  const { url } = await testDatabase(t);
  const { status, err } = await runScrip(
    { SCRIP_DATABASE_URL: url, SCRIP_READ_DATABASE_URL: url },
    ...['merchant', 'list'],
  );
  assert.equal(status, 5, err);
  assert.match(err, /^[^\n]*SCRIP_READ_DATABASE_URL must be unset on Citus[^\n]*\n$/);
});

test('a database is distributed once, with its vouchers, also after an interrupted attempt', async (t) => {
  const { url, addWorkers } = await emptyCluster(t);
  await migrate(url);
  await addWorkers();
  const before = await startOn(url);
  const till = await Till.another(before);
  const [voucher, ...others] = await till.vouchers(10, 25);
  assert.ok(voucher);
  const first = await till.done(A.redeem(voucher, 10, 'before'));
  await till.done(update('before', 4));
  for (const other of others) await till.done(A.redeem(other, 1, `one of ${other.serialNumber}`));
  await before.stop();

  // The attempt is killed in the middle: its transaction ends with the connection.
  const owner = await ownerOf(t, url);
  const cut = distribute(url, 4);
  cut.catch(() => {});
  for (let look = 0; look < 500; look++) {
    const [found] = await owner.query<{ done: boolean }>({
      text: `select pg_terminate_backend(pid) as done from pg_stat_activity
        where application_name = 'scrip-owner' and pid <> pg_backend_pid()
          and datname = current_database() and xact_start < now() - interval '0.5 s'`,
      values: [],
    });
    if (found?.done) break;
    await sleep(20);
  }
  await assert.rejects(cut);

  assert.deepEqual(await distribute(url, 4), { buckets: 4, workers: 2, isNew: true });
  assert.deepEqual(await distribute(url), { buckets: 4, workers: 2, isNew: false });
  await refuses(distribute(url, 8), /is distributed into 4 buckets, and their number cannot be changed/);
  assert.deepEqual(await migrate(url), []);

  const after = await startOn(url, before);
  t.after(after.stop);
  const again = await Till.another(after);
  const same = Object.assign(Object.create(Till.prototype), {
    testService: after,
    merchant: till.merchant,
  }) as Till;
  const replay = await same.done(A.redeem(voucher, 10, 'before'));
  assert.deepEqual([replay.replayed, replay.data.transactionId], [true, first.data.transactionId]);
  assert.equal(await same.balanceOf(voucher), 21);
  await same.refused(A, '58', update('before', 1));
  await same.refused(A, '94', A.redeem(others[0] ?? voucher, 10, 'before'));
  await same.done(A.redeem(voucher, 21, 'after'));
  for (const other of others) assert.equal(await same.balanceOf(other), 24);
  await again.done(A.generate('new', 3, 5));
  await again.reconciles();
});

test('a later migration reaches the tables and the functions of every worker', async (t) => {
  const { url, addWorkers } = await emptyCluster(t);
  await migrate(url);
  await addWorkers();
  // Two for each of the two workers.
  assert.deepEqual(await distribute(url), { buckets: 4, workers: 2, isNew: true });
  const migration = `
    set local search_path to scrip; set local citus.multi_shard_modify_mode = 'sequential';
    alter table vouchers add column note text; -- a comment; with a semicolon
    create index vouchers_by_note on vouchers (note) where note is not null;
    create or replace function set_voucher_block(p_bucket integer, p_serial bigint,
      p_blocked_at timestamptz) returns void
    language sql security definer set search_path = scrip, pg_temp as $$
      update vouchers set blocked_at = p_blocked_at, note = 'blocked;' where bucket = p_bucket
        and serial_number = p_serial;
    $$;
    revoke execute on function claim from public;`;
  const owner = await openOwner(url);
  for (const text of ['begin', ...splitStatements(migration), 'commit'])
    await owner.query({ text, values: [] });
  await owner.close();
  const listening = await startOn(url);
  t.after(listening.stop);
  const till = await Till.another(listening);
  for (const voucher of await till.vouchers(8))
    await till.done(A.redeem(voucher, 1, `r${voucher.serialNumber}`));
  await till.reconciles();
});
