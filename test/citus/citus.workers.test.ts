import assert from 'node:assert/strict';
import { rm } from 'node:fs/promises';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { distribute } from '../../src/db/distribute.ts';
import { retrying } from '../../src/db/errors.ts';
import { migrate } from '../../src/db/migrate.ts';
import type { Queries } from '../../src/db/pool.ts';
import { sql } from '../../src/db/sql.ts';
import { A, update, type Voucher } from '../support/dialects.ts';
import { folderOf } from '../support/folder.ts';
import { temporaryFolder } from '../support/leave-nothing.ts';
import { asOwner, ownerOf } from '../support/owner.ts';
import { Till } from '../support/till.ts';
import { type Cluster, createOnAll, execute, startCitus } from './cluster.ts';
import { startOn } from './databases.ts';
import { prepareReleases } from './releases.ts';

/** Opens a till on a cluster of its own, since tests kill its workers. */
async function openTill(
  t: TestContext,
  { spare = 0 }: { readonly spare?: number } = {},
): Promise<{ till: Till; cluster: Cluster; url: string }> {
  const folder = await temporaryFolder('scrip-citus-');
  const cluster = await startCitus(folder, ['shared_buffers = 64MB'], 2 + spare);
  t.after(async () => {
    for (const server of [cluster.coordinator, ...cluster.workers]) await server.stop();
    await rm(folder, { recursive: true, force: true });
  });
  await createOnAll({ ...cluster, workers: cluster.workers.slice(0, 2) }, 'scrip');
  const url = cluster.coordinator.url(undefined, 'scrip');
  await migrate(url);
  await distribute(url, 4);
  const listening = await startOn(url);
  t.after(listening.stop);
  return { till: await Till.another(listening), cluster, url };
}

/** The port of the worker that has the bucket of each voucher. */
async function portsOf(url: string, vouchers: readonly Voucher[]): Promise<Map<Voucher, number>> {
  const rows = await asOwner<{ serial_number: bigint; port: number }>(
    url,
    `select v.serial_number, n.nodeport as port from scrip.vouchers v
      join pg_dist_placement p on p.shardid = get_shard_id_for_distribution_column('scrip.buckets', v.bucket)
      join pg_dist_node n on n.groupid = p.groupid`,
  );
  const ports = new Map(rows.map((row) => [Number(row.serial_number), row.port]));
  return new Map(vouchers.map((voucher) => [voucher, ports.get(voucher.serialNumber) ?? 0]));
}

test('an absent worker fails only the calls of its buckets, with 91, until it is back', async (t) => {
  const { till, cluster, url } = await openTill(t);
  const vouchers = await till.vouchers(10, 25);
  const ports = await portsOf(url, vouchers);
  const [gone, other] = cluster.workers;
  assert.ok(gone && other);
  const on = ({ port }: { port: number }) => vouchers.filter((voucher) => ports.get(voucher) === port);
  assert.ok(on(gone).length > 0 && on(other).length > 0);
  await gone.kill();
  for (const voucher of on(gone)) {
    const answer = await till.ask(A.balance(voucher));
    assert.deepEqual([answer.statusCode, answer.status], ['91', 503]);
    assert.ok(answer.headers.get('retry-after'));
  }
  for (const voucher of on(other)) await till.done(A.balance(voucher));
  const { reference: _, ...withoutReference } = A.redeem(on(other)[0] as Voucher, 1, 'x').body as Record<
    string,
    unknown
  >;
  await till.done({ ...A.redeem(on(other)[0] as Voucher, 1, 'x'), body: withoutReference });
  await gone.restart();
  for (const voucher of on(gone)) {
    for (let look = 0; (await till.ask(A.balance(voucher))).statusCode !== '00'; look++) {
      assert.ok(look < 200, 'the worker is back, but its calls fail');
      await sleep(50);
    }
  }
  for (const voucher of vouchers) await till.done(A.redeem(voucher, 2, `r${voucher.serialNumber}`));
  await till.reconciles();
});

test('calls of a bucket whose worker is not listed get 91, until it is listed again', async (t) => {
  const { till, url } = await openTill(t);
  const vouchers = await till.vouchers(1, 25);
  const [voucher] = vouchers as [Voucher];
  const port = (await portsOf(url, vouchers)).get(voucher);
  const list = (role: string) =>
    asOwner(url, `update pg_dist_node set noderole = '${role}' where nodeport = ${port}`);
  const answered = async (code: string) => {
    for (let look = 0; ; look++) {
      const { statusCode } = await till.ask(A.balance(voucher));
      if (statusCode === code) return;
      assert.ok(['00', '91'].includes(statusCode) && look < 200, `${statusCode} instead of ${code}`);
      await sleep(50);
    }
  };
  await answered('00');
  await list('secondary');
  await answered('91');
  await list('primary');
  await answered('00');
});

test('a transaction that reads all buckets is repeated if a bucket moves meanwhile', async (t) => {
  const { till, cluster, url } = await openTill(t);
  const vouchers = await till.vouchers(10, 25);
  const [from, to] = cluster.workers;
  assert.ok(from && to);
  const owner = await ownerOf(t, url);
  const { db } = till.testService.service;
  const found: number[] = [];
  const readAll = () =>
    db.transaction(async (tx) => {
      const count = async () => (await tx.query(sql`select serial_number from vouchers`)).length;
      // Each worker has a snapshot from now on.
      found.push(await count());
      if (found.length === 1) await moveAll(owner, from.port, to.port);
      found.push(await count());
    }, 'repeatable read');
  await retrying(readAll);
  assert.ok((found[1] as number) < vouchers.length, 'nothing has moved');
  assert.deepEqual(found.slice(2), [vouchers.length, vouchers.length]);
});

/** Moves all buckets of one worker to another one. */
async function moveAll(owner: Queries, from: number, to: number): Promise<void> {
  const shards = await owner.query<{ shard: bigint }>(sql`
    select p.shardid as shard from scrip.bucket_positions b
    join pg_dist_placement p on p.shardid = get_shard_id_for_distribution_column('scrip.buckets', b.bucket)
    join pg_dist_node n on n.groupid = p.groupid where n.nodeport = ${from}`);
  for (const { shard } of shards)
    await owner.query(
      sql`select citus_move_shard_placement(${shard}, '127.0.0.1', ${from}, '127.0.0.1', ${to}, 'force_logical')`,
    );
}

test('calls follow a bucket that moves to another worker', async (t) => {
  const { till, cluster, url } = await openTill(t);
  const vouchers = await till.vouchers(10, 25);
  const [from, to] = cluster.workers;
  assert.ok(from && to);
  const owner = await ownerOf(t, url);
  let moves = true;
  const calls = (async () => {
    for (let turn = 0; moves || turn < 3; turn++)
      await Promise.all(
        vouchers.map((voucher) => till.done(A.redeem(voucher, 0.01, `m${turn} ${voucher.serialNumber}`))),
      );
  })();
  for (const [source, target] of [
    [from, to],
    [to, from],
  ] as const) {
    await moveAll(owner, source.port, target.port);
    assert.deepEqual([...new Set((await portsOf(url, vouchers)).values())].includes(source.port), false);
  }
  moves = false;
  await calls;
  await till.reconciles();
});

/**
 * What a node must have before the service can use it. `open`: functions of a bucket that every account may
 * execute. `generic`: those that keep a plan of Citus. `copies`: how many hot functions each bucket has.
 * `old`: copies that are not of this release. `planned`: those with a table that Citus plans each time.
 */
const prepared = (release: number) => `
  select (select array_to_string(s.setconfig, ' ') from pg_db_role_setting s
      join pg_database d on d.oid = s.setdatabase and d.datname = current_database()) as settings,
    (select rolcanlogin from pg_roles where rolname = 'scrip_service') as "signsIn",
    (select count(*)::int from pg_proc p where p.pronamespace::regnamespace::text ~ '^scrip'
      and 'p_bucket' = any (p.proargnames) and has_function_privilege('public', p.oid, 'execute')) as open,
    (select count(*)::int from pg_proc p where p.pronamespace = 'scrip'::regnamespace
      and 'p_bucket' = any (p.proargnames)
      and exists (select from unnest(p.proconfig) c where c = 'plan_cache_mode=force_generic_plan')) as generic,
    (select array_agg(distinct c.count)::int[] from (
      select count(*) from pg_proc p where p.pronamespace::regnamespace::text ~ '^scrip_bucket_'
        and has_function_privilege('scrip_service', p.oid, 'execute')
        and p.proowner = (select nspowner from pg_namespace where nspname = 'scrip')
      group by p.pronamespace) c) as copies,
    (select count(*)::int from pg_proc p where p.pronamespace::regnamespace::text ~ '^scrip_bucket_'
      and p.prosrc !~ 'release ${release}\\M') as old,
    (select count(*)::int from pg_proc p where p.pronamespace::regnamespace::text ~ '^scrip_bucket_'
      and exists (select from pg_dist_partition d join pg_class c on c.oid = d.logicalrelid
        where not c.relispartition and (d.partmethod = 'h' or d.repmodel = 't')
          and p.prosrc ~ format('\\m%s\\M', c.relname))) as planned`;

const ready = {
  settings: 'search_path=scrip, public jit=off',
  signsIn: true,
  open: 0,
  generic: 0,
  copies: [18],
  old: 0,
  planned: 0,
};

test('a worker refuses calls for a bucket that has left it, and changes nothing', async (t) => {
  const { till, cluster, url } = await openTill(t);
  const [voucher] = (await till.vouchers(1, 25)) as [Voucher];
  const port = (await portsOf(url, [voucher])).get(voucher);
  const from = cluster.workers.find((worker) => worker.port === port);
  const to = cluster.workers.find((worker) => worker !== from);
  assert.ok(from && to);
  const [row] = await asOwner<{ bucket: number }>(
    url,
    `select bucket from scrip.vouchers where serial_number = ${voucher.serialNumber}`,
  );
  const calls = [
    `find_vouchers(${row?.bucket}, '{null}', '{${voucher.serialNumber}}')`,
    `void_transaction(${row?.bucket}, ${voucher.serialNumber}, gen_random_uuid())`,
  ].map((call) => `select from scrip_bucket_${row?.bucket}.${call}`);
  const on = (server: typeof from, call: string) => asOwner(server.url(undefined, 'scrip'), call);
  for (const call of calls) await on(from, call);
  for (const call of calls) await assert.rejects(on(to, call), { code: 'SC003' });
  await moveAll(await ownerOf(t, url), from.port, to.port);
  for (const call of calls) await assert.rejects(on(from, call), { code: 'SC003' });
  for (const call of calls) await on(to, call);
});

test('a release replaces every function while tills redeem, and no call fails', async (t) => {
  const { till, cluster, url } = await openTill(t);
  const vouchers = await till.vouchers(10, 25);
  const inactive = await till.vouchers(4, null);
  const release = await prepareReleases(folderOf(t));
  let isOver = false;
  let turns = 0;
  const redeemAll = (turn: number) =>
    Promise.all(
      vouchers.map(async (voucher) => {
        const reference = `t${turn} ${voucher.serialNumber}`;
        await till.done(A.redeem(voucher, 0.02, reference));
        await till.done(update(reference, 0.01));
      }),
    );
  const redeeming = (async () => {
    while (!isOver) await redeemAll(turns++);
  })();
  await Promise.all([release(url).finally(() => (isOver = true)), redeeming]);
  await redeemAll(turns++);
  for (const voucher of inactive) await till.done(A.activate(voucher, `on${voucher.serialNumber}`));
  for (const voucher of vouchers) assert.equal(await till.balanceOf(voucher), (2_500 - turns) / 100);
  for (const server of [cluster.coordinator, ...cluster.workers])
    assert.deepEqual(await asOwner(server.url(undefined, 'scrip'), prepared(1)), [ready]);
  await till.reconciles();
});

test('a worker that is added later is prepared by the same command, and takes over buckets', async (t) => {
  const { till, cluster, url } = await openTill(t, { spare: 1 });
  const vouchers = await till.vouchers(10, 25);
  const [from, , added] = cluster.workers;
  assert.ok(from && added);
  await execute(added, 'postgres', 'create database scrip');
  await execute(added, 'scrip', 'create extension citus');
  const add = `select citus_add_node('127.0.0.1', ${added.port})`;
  await execute(cluster.coordinator, 'scrip', 'set search_path = pg_catalog', add);
  assert.deepEqual(await distribute(url), { buckets: 4, workers: 3, isNew: false });
  const on = async (server: { url(user?: string, database?: string): string }) => {
    return asOwner(server.url(undefined, 'scrip'), prepared(0));
  };
  const copies = ready.copies[0] as number;
  const unreleased = { ...ready, old: copies * 4 };
  assert.deepEqual(await on(added), [unreleased]);
  assert.deepEqual(await on(from), [unreleased]);
  const owner = await ownerOf(t, url);
  await owner.query(sql`select replicate_reference_tables('force_logical')`);
  await moveAll(owner, from.port, added.port);
  for (const voucher of vouchers) await till.done(A.redeem(voucher, 2, `r${voucher.serialNumber}`));
  await till.reconciles();
});
