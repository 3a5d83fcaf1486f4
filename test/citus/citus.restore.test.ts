import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { Server, startStandby } from '../../soak/cluster.ts';
import { distribute } from '../../src/db/distribute.ts';
import { migrate } from '../../src/db/migrate.ts';
import { A, type Voucher } from '../support/dialects.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';
import { asOwner } from '../support/owner.ts';
import { Till } from '../support/till.ts';
import { until } from '../support/until.ts';
import { createOnAll, execute, findCitus, startCitus } from './cluster.ts';
import { startOn } from './databases.ts';

/** The drills of the guide: a cluster is restored to one point, and a standby takes a server's place. */

/** Each server archives its log into a folder beside its data. */
const ARCHIVING = [
  'shared_buffers = 64MB',
  "unix_socket_directories = ''", // a copy would begin with the lock of the socket
  'archive_mode = on',
  'archive_command = \'mkdir -p "$PWD.archive" && cp %p "$PWD.archive/%f"\'',
];

async function openCluster(t: TestContext) {
  const folder = await temporaryFolder('scrip-citus-');
  const cluster = await startCitus(folder, ARCHIVING);
  const servers = [cluster.coordinator, ...cluster.workers];
  t.after(async () => {
    for (const server of servers) await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  await createOnAll(cluster, 'scrip');
  const url = cluster.coordinator.url(undefined, 'scrip');
  await migrate(url);
  await distribute(url, 4);
  return { ...cluster, servers, url };
}

const redeemAll = async (till: Till, vouchers: readonly Voucher[], prefix: string) => {
  for (const voucher of vouchers) await till.done(A.redeem(voucher, 1, `${prefix}${voucher.serialNumber}`));
};

test('all servers are restored to one point: later redemptions are gone, and the books agree', async (t) => {
  const { coordinator, servers, url } = await openCluster(t);
  const listening = await startOn(url);
  const till = await Till.another(listening);
  const vouchers = await till.vouchers(8, 25);
  const programs = await findCitus();
  const copies = servers.map(({ data, port }) => new Server(programs, `${data}.copy`, port));
  for (const [index, copy] of copies.entries()) await copy.copy(servers[index] as Server);
  await redeemAll(till, vouchers, 'before');
  await execute(coordinator, 'scrip', "select citus_create_restore_point('hourly')");
  await redeemAll(till, vouchers, 'after');
  for (const server of servers) {
    const [{ name } = { name: '' }] = await asOwner<{ name: string }>(
      server.url(),
      'select pg_walfile_name(pg_switch_wal()) as name',
    );
    await until('the log is archived', async () => {
      const [row] = await asOwner<{ done: boolean }>(
        server.url(),
        `select coalesce(last_archived_wal >= '${name}', false) as done from pg_stat_archiver`,
      );
      return row?.done === true;
    });
  }
  await listening.stop();

  for (const server of servers) await server.stop();
  for (const [index, copy] of copies.entries()) {
    t.after(() => copy.stop());
    await copy.restore(`${servers[index]?.data}.archive`, 'hourly');
    await until('the server accepts writes', async () => {
      const [row] = await asOwner<{ done: boolean }>(copy.url(), 'select not pg_is_in_recovery() as done');
      return row?.done === true;
    });
  }
  const again = await startOn(url, listening);
  t.after(again.stop);
  const later = till.at(again);
  for (const voucher of vouchers) {
    assert.equal(await later.balanceOf(voucher), 24);
    const { headers } = await later.ask(A.redeem(voucher, 1, `before${voucher.serialNumber}`));
    assert.equal(headers.get('idempotent-replayed'), 'true');
    await later.done(A.redeem(voucher, 2, `new${voucher.serialNumber}`));
  }
  await later.reconciles();
});

async function standbyOf(t: TestContext, server: Server): Promise<Server> {
  const standby = await startStandby(await findCitus(), server);
  t.after(() => standby.stop());
  return standby;
}

/** All vouchers are served again, with the balance that they had. */
async function servedAgain(till: Till, vouchers: readonly Voucher[], balance: number): Promise<void> {
  for (const voucher of vouchers) {
    const isServed = async () => (await till.ask(A.balance(voucher))).statusCode === '00';
    await until('all buckets are served', isServed);
    assert.equal(await till.balanceOf(voucher), balance);
  }
}

test("a worker's synchronous standby takes its place, and nothing is lost", async (t) => {
  const { coordinator, workers, url } = await openCluster(t);
  const [worker] = workers;
  assert.ok(worker);
  const standby = await standbyOf(t, worker);
  const listening = await startOn(url);
  t.after(listening.stop);
  const till = await Till.another(listening);
  const vouchers = await till.vouchers(8, 25);
  await redeemAll(till, vouchers, 'before');

  await worker.kill();
  await standby.promote();
  const moved = `select citus_update_node(nodeid, '127.0.0.1', ${standby.port}) from pg_dist_node
    where nodeport = ${worker.port}`;
  await execute(coordinator, 'scrip', moved);
  await servedAgain(till, vouchers, 24);
  await redeemAll(till, vouchers, 'after');
  await till.reconciles();
});

test("the coordinator's synchronous standby takes its place, and nothing is lost", async (t) => {
  const { coordinator, url } = await openCluster(t);
  const standby = await standbyOf(t, coordinator);
  const listening = await startOn(
    `${url.replace('/scrip', `,127.0.0.1:${standby.port}/scrip`)}?target_session_attrs=read-write`,
  );
  t.after(listening.stop);
  const till = await Till.another(listening);
  const vouchers = await till.vouchers(8, 25);
  const inactive = await till.vouchers(2, null);
  await redeemAll(till, vouchers, 'before');

  // An activation waits for the standby, which no longer gets its commit.
  const [first = assert.fail(), ...others] = inactive;
  const [sender = assert.fail()] = await asOwner<{ pid: number }>(
    coordinator.url(),
    'select pid from pg_stat_replication',
  );
  process.kill(sender.pid, 'SIGSTOP');
  const lost = till.ask(A.activate(first, 'lost'));
  const waiting = "select from pg_stat_activity where wait_event = 'SyncRep'";
  await until('a hold waits', async () => (await asOwner(coordinator.url(), waiting)).length > 0);
  await coordinator.kill();
  await lost;

  // API keys that were checked just before are still good.
  const [voucher = assert.fail()] = vouchers;
  const isAway = async () => (await till.ask(A.balance(voucher))).statusCode === '91';
  await until('the coordinator is away', isAway);
  await till.refused(A, '91', A.redeem(voucher, 1, 'meanwhile'));
  await standby.promote();
  const address = `select citus_set_coordinator_host('127.0.0.1', ${standby.port})`;
  await execute(standby, 'scrip', address, 'select recover_prepared_transactions()');
  await servedAgain(till, vouchers, 24);
  await redeemAll(till, vouchers, 'after');
  await till.done(A.activate(first, 'lost'));
  for (const each of others) await till.done(A.activate(each, `on${each.serialNumber}`));
  await till.vouchers(3);
  await execute(standby, 'scrip', 'select * from scrip.node_transactions()');
  await till.reconciles();
});
