import { setTimeout as sleep } from 'node:timers/promises';
import type { Context, Service } from '../src/context.ts';
import { distribute } from '../src/db/distribute.ts';
import { migrate } from '../src/db/migrate.ts';
import { openOwner } from '../src/db/pool.ts';
import { newKeyRing } from '../src/keyring/file.ts';
import { resolveOldHolds } from '../src/ledger/holds.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { type Cluster, createOnAll, execute, startCitus } from '../test/citus/cluster.ts';
import { atEnd, temporaryFolder } from '../test/support/leave-nothing.ts';
import type { Options } from './arguments.ts';
import { type Ask, any, ask, openService, prepare, type Update, update } from './citus.load.ts';
import { verify } from './citus.verify.ts';
import { checkTraces } from './traces.ts';

/**
 * Concurrent redemptions on a Citus cluster while shards move between workers and workers are killed:
 * nothing acknowledged is lost, nothing is booked twice, and the books always agree.
 */

const BUCKETS = 4;
const SERVICES = 2;
const CALLERS = 768;
const CARDS = 1_000;
const INACTIVE = 300;
/** The intervals of reconciliations, moves of shards and kills of workers. */
const RECONCILE_MS = 30_000;
const MOVE_MS = 8_000;
const KILL_MS = 60_000;

type Soak = {
  readonly cluster: Cluster;
  readonly services: readonly Service[];
  /** A process of its own, as `scrip reconcile` is: callers take none of its connections. */
  readonly reconciler: Service;
  readonly contexts: readonly Context[];
  readonly asks: Ask[];
  readonly updates: Update[];
  readonly isOver: () => boolean;
  readonly counts: { moves: number; kills: number; reconciliations: number; differing: string[] };
};

export async function soakCitus({ minutes }: Options): Promise<void> {
  const cluster = await startCitus(await temporaryFolder('scrip-citus-'), ['shared_buffers = 128MB']);
  await createOnAll(cluster, 'scrip');
  const url = cluster.coordinator.url(undefined, 'scrip');
  await migrate(url);
  await distribute(url, BUCKETS);
  const keys = newKeyRing();
  const services: Service[] = [];
  for (let index = 0; index < SERVICES; index++) services.push(await openService(url, keys));
  const reconciler = await openService(url, keys, true);
  atEnd(() => Promise.all([...services, reconciler].map(({ db }) => db.close())));
  const [first] = services as [Service];
  const { merchantId, contextOf, cards, inactive } = await prepare(first, CARDS, INACTIVE);
  const until = performance.now() + minutes * 60_000;
  const counts = { moves: 0, kills: 0, reconciliations: 0, differing: [] };
  const contexts = services.map(contextOf);
  const isOver = () => performance.now() > until + 60_000;
  const soak: Soak = { cluster, services, reconciler, contexts, asks: [], updates: [], isOver, counts };
  const isRunning = () => performance.now() < until;
  let references = 0;
  const startedAt = performance.now();
  const caller = async () => {
    while (isRunning()) await race(soak, `s${++references}`, cards, inactive);
  };
  await Promise.all([
    ...Array.from({ length: CALLERS }, caller),
    every(isRunning, MOVE_MS, () => moveShard(soak, url)),
    every(isRunning, KILL_MS, () => killWorker(soak)),
    every(isRunning, RECONCILE_MS, () => reconcileNow(soak)),
  ]);
  const seconds = (performance.now() - startedAt) / 1_000;
  await report(soak, url, merchantId, seconds);
}

async function every(isRunning: () => boolean, ms: number, run: () => Promise<void>): Promise<void> {
  while (isRunning()) {
    await sleep(ms);
    if (isRunning()) await run();
  }
}

/** Sends the requests under one reference: one alone, copies, others, or an update or activation after it. */
async function race(
  { contexts, asks, updates, isOver }: Soak,
  reference: string,
  cards: Parameters<typeof ask>[1]['card'][],
  inactive: Parameters<typeof ask>[1]['card'][],
): Promise<void> {
  const made = (over: Partial<Ask> = {}): Ask => {
    const request: Ask = {
      reference,
      card: any(cards),
      amount: 1 + (asks.length % 3),
      operation: 'redeem',
      answers: [],
      sendings: [],
      ...over,
    };
    asks.push(request);
    return request;
  };
  const send = (request: Ask) => ask(any(contexts), request, isOver);
  const one = made();
  const kind = Number(reference.slice(1)) % 40;
  if (kind < 32) await send(one);
  // Concurrent copies, through several processes.
  else if (kind < 34) await Promise.all([send(one), send(one), send(one)]);
  // Other requests under the same reference: one of them is booked.
  else if (kind < 36)
    await Promise.all([send(one), send(made({ card: any(cards) })), send(made({ amount: 9 }))]);
  // A declined request does not use its reference up.
  else if (kind < 38) await Promise.all([send(made({ amount: 900_000_00 })), send(one)]);
  else if (kind < 39) {
    await send(one);
    const both: Update[] = [0, 1].map((amount) => ({ reference, amount, code: '' }));
    updates.push(...both);
    await Promise.all(both.map((each) => update(any(contexts), each, isOver)));
  } else {
    await send(one);
    const card = any(inactive);
    const twice = made({ operation: 'activate', card, amount: 100 });
    await Promise.all([send(twice), send(twice)]);
  }
}

async function moveShard({ counts }: Soak, url: string): Promise<void> {
  const owner = await openOwner(url);
  // While a worker is away, a move fails and has no effect. Never by block_writes, which loses prepared
  // transactions that are not committed yet (docs/how-to/citus.md).
  await owner
    .query({
      text: `
select citus_move_shard_placement(p.shardid, f.nodename, f.nodeport, t.nodename, t.nodeport,
  shard_transfer_mode => 'force_logical')
from scrip.bucket_positions b
join pg_dist_placement p on p.shardid = get_shard_id_for_distribution_column('scrip.buckets', b.bucket)
join pg_dist_node f on f.groupid = p.groupid
join pg_dist_node t on t.groupid <> f.groupid and t.groupid > 0
order by random() limit 1`,
      values: [],
    })
    .then(
      () => counts.moves++,
      () => {},
    );
  await owner.close();
}

/** Kills a worker as a power cut does, and starts it again two seconds later. */
async function killWorker({ cluster, counts }: Soak): Promise<void> {
  const worker = any(cluster.workers);
  await worker.kill();
  counts.kills++;
  await sleep(2_000);
  await worker.restart();
}

async function reconcileNow({ reconciler, counts }: Soak): Promise<void> {
  await reconcile(reconciler).then(
    ({ ok, checks }) => {
      counts.reconciliations++;
      if (!ok) counts.differing.push(JSON.stringify(checks.filter((check) => !check.ok)));
    },
    // A worker is away: the books cannot be checked now.
    () => {},
  );
}

async function report(soak: Soak, url: string, merchantId: number, seconds: number): Promise<void> {
  const { services, asks, updates, counts } = soak;
  const [service] = services as [Service];
  await execute(soak.cluster.coordinator, 'scrip', 'select recover_prepared_transactions()');
  await resolveOldHolds({ ...service, clock: () => new Date(Date.now() + 3_600_000) });
  const owner = await openOwner(url);
  const faults = await verify(owner, merchantId, asks, updates);
  const { traces, events, refused } = await checkTraces(
    owner,
    asks.map(({ card, amount, ...asked }) => {
      return { merchantId, serialNumber: card.serialNumber, amountMinor: BigInt(amount), ...asked };
    }),
    true,
  );
  faults.push(...refused);
  await owner.close();
  const final = await reconcile({ ...service, clock: () => new Date(Date.now() + 3_600_000) });
  if (!final.ok) faults.push(JSON.stringify(final.checks.filter((check) => !check.ok)));
  faults.push(...counts.differing);
  const codes: Record<string, number> = {};
  for (const { answers } of asks) for (const { code } of answers) codes[code] = (codes[code] ?? 0) + 1;
  const { moves, kills, reconciliations } = counts;
  const booked = codes['00'] ?? 0;
  process.stdout.write(
    `${JSON.stringify(codes)}\n${booked} booked in ${Math.round(seconds)} s (${Math.round(booked / seconds)}/s), ` +
      `${updates.length} updates sent, ${moves} shards moved, ${kills} workers killed, ` +
      `${reconciliations} reconciliations under load, ${faults.length} faults\n` +
      `the model accepts ${traces - refused.length} of ${traces} traces with ${events} events\n`,
  );
  for (const fault of faults.slice(0, 20)) process.stdout.write(`${fault}\n`);
  if (faults.length > 0) throw new Error(`${faults.length} faults`);
}
