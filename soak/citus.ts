import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../src/context.ts';
import { distribute } from '../src/db/distribute.ts';
import { isRetryable, isUnavailable } from '../src/db/errors.ts';
import { migrate } from '../src/db/migrate.ts';
import { openOwner } from '../src/db/pool.ts';
import { newKeyRing } from '../src/keyring/file.ts';
import { resolveOldHolds } from '../src/ledger/holds.ts';
import { reconcile } from '../src/ledger/reconcile.ts';
import { HOUR_MS, MINUTE_MS } from '../src/time.ts';
import { createOnAll, execute, findCitus, startCitus } from '../test/citus/cluster.ts';
import { prepareReleases } from '../test/citus/releases.ts';
import { atEnd, opened, temporaryFolder } from '../test/support/leave-nothing.ts';
import type { Options } from './arguments.ts';
import { type Ask, any, ask, openService, prepare, type Update, update } from './citus.load.ts';
import { verify } from './citus.verify.ts';
import { startStandby } from './cluster.ts';
import { checkTraces } from './traces.ts';

/**
 * Concurrent redemptions on a Citus cluster while shards move between workers, workers are killed, releases
 * replace all functions, and the coordinator's standby takes its place: nothing acknowledged is lost, nothing
 * is booked twice, and the books always agree.
 */

const BUCKETS = 4;
const SERVICES = 2;
const CALLERS = 768;
const CARDS = 1_000;
const INACTIVE = 300;
/** The intervals of reconciliations, moves of shards and kills of workers. */
const RECONCILE_MS = 30_000;
const MOVE_MS = 8_000;
const KILL_MS = MINUTE_MS;
/** The parts of the time after which all functions are replaced, and after which the coordinator is lost. */
const RELEASES = [0.2, 0.8];
const LOSS = 0.5;
/** How long a cluster manager takes to be sure that the coordinator is gone. */
const WATCHED_MS = 500;
/** The pause before something that an absent worker prevented is tried again. */
const AGAIN_MS = 500;

export async function soakCitus({ minutes }: Options): Promise<void> {
  const soak = await begin(minutes);
  const { merchantId, cards, inactive } = soak;
  const release = await prepareReleases(await temporaryFolder('scrip-releases-'));
  const startedAt = performance.now();
  const until = startedAt + minutes * MINUTE_MS;
  const isRunning = () => performance.now() < until;
  const at = async (part: number, run: () => Promise<void>) => {
    await sleep(part * minutes * MINUTE_MS);
    await run();
  };
  let references = 0;
  const caller = async () => {
    while (isRunning()) await race(soak, `s${++references}`, cards, inactive);
  };
  await Promise.all([
    ...Array.from({ length: CALLERS }, caller),
    every(isRunning, MOVE_MS, () => moveShard(soak)),
    every(isRunning, KILL_MS, () => killWorker(soak)),
    every(isRunning, RECONCILE_MS, () => reconcileNow(soak)),
    ...RELEASES.map((part) => at(part, () => replaceFunctions(soak, release))),
    at(LOSS, () => loseCoordinator(soak)),
  ]);
  const seconds = (performance.now() - startedAt) / 1_000;
  await report(soak, merchantId, seconds);
}

/** Starts the cluster and the services, with a merchant and its vouchers. */
async function begin(minutes: number) {
  const cluster = await startCitus(await temporaryFolder('scrip-citus-'), ['shared_buffers = 128MB']);
  await createOnAll(cluster, 'scrip');
  await migrate(cluster.coordinator.url(undefined, 'scrip'));
  await distribute(cluster.coordinator.url(undefined, 'scrip'), BUCKETS);
  const standby = await startStandby(await findCitus(), cluster.coordinator);
  const hosts = [cluster.coordinator, standby].map(({ port }) => `127.0.0.1:${port}`).join();
  const url = `postgres://postgres:soak@${hosts}/scrip?target_session_attrs=read-write`;
  const keys = newKeyRing();
  const services: Service[] = [];
  for (let index = 0; index < SERVICES; index++) services.push(await openService(url, keys));
  const reconciler = await openService(url, keys, true);
  atEnd(() => Promise.all([...services, reconciler].map(({ db }) => db.close())));
  const [first] = services as [Service];
  const { contextOf, ...prepared } = await prepare(first, CARDS, INACTIVE);
  const until = performance.now() + minutes * MINUTE_MS;
  return {
    ...prepared,
    cluster,
    standby,
    /** Of the coordinator and its standby. */
    url,
    services,
    /** A process of its own, as `scrip reconcile` is: callers take none of its connections. */
    reconciler,
    contexts: services.map(contextOf),
    asks: [] as Ask[],
    updates: [] as Update[],
    isOver: () => performance.now() > until + MINUTE_MS,
    counts: {
      moves: 0,
      kills: 0,
      reconciliations: 0,
      releases: 0,
      /** How long the coordinator was away, in milliseconds. */
      awayMs: 0,
      differing: [] as string[],
    },
  };
}

type Soak = Awaited<ReturnType<typeof begin>>;

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

async function moveShard({ counts, url }: Soak): Promise<void> {
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

/** Repeats what an absent worker or a moving shard prevents, as an operator does. */
async function untilDone(run: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!isUnavailable(error) && !isRetryable(error)) throw error;
      await sleep(AGAIN_MS);
    }
  }
}

async function replaceFunctions({ url, counts }: Soak, release: (url: string) => Promise<void>) {
  await untilDone(() => release(url));
  counts.releases++;
}

/** Kills the coordinator, and promotes its standby half a second later. */
async function loseCoordinator({ cluster, standby, counts }: Soak): Promise<void> {
  const from = performance.now();
  await opened(() => cluster.coordinator.kill());
  await sleep(WATCHED_MS);
  await standby.promote();
  counts.awayMs = Math.round(performance.now() - from);
  const address = `select citus_set_coordinator_host('127.0.0.1', ${standby.port})`;
  await untilDone(() => execute(standby, 'scrip', address));
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

async function report(soak: Soak, merchantId: number, seconds: number): Promise<void> {
  const { services, standby, url, asks, updates, counts } = soak;
  const [service] = services as [Service];
  await execute(standby, 'scrip', 'select recover_prepared_transactions()');
  await resolveOldHolds({ ...service, clock: () => new Date(Date.now() + HOUR_MS) });
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
  const final = await reconcile({ ...service, clock: () => new Date(Date.now() + HOUR_MS) });
  if (!final.ok) faults.push(JSON.stringify(final.checks.filter((check) => !check.ok)));
  faults.push(...counts.differing.map((each) => `under load: ${each}`));
  const codes: Record<string, number> = {};
  for (const { answers } of asks) for (const { code } of answers) codes[code] = (codes[code] ?? 0) + 1;
  const { moves, kills, reconciliations, releases, awayMs } = counts;
  const booked = codes['00'] ?? 0;
  process.stdout.write(
    `${JSON.stringify(codes)}\n${booked} booked in ${Math.round(seconds)} s (${Math.round(booked / seconds)}/s), ` +
      `${updates.length} updates sent, ${moves} shards moved, ${kills} workers killed, ` +
      `${releases} releases, the coordinator away for ${awayMs} ms, ` +
      `${reconciliations} reconciliations under load, ${faults.length} faults\n` +
      `the longest wait for a certain answer: ${longestWait(asks, 'redeem')} ms to redeem, ` +
      `${longestWait(asks, 'activate')} ms to activate\n` +
      `the model accepts ${traces - refused.length} of ${traces} traces with ${events} events\n`,
  );
  for (const fault of faults.slice(0, 20)) process.stdout.write(`${fault}\n`);
  if (faults.length > 0) throw new Error(`${faults.length} faults`);
}

/** The longest time from the first sending of a request to its certain answer, in milliseconds. */
function longestWait(asks: readonly Ask[], operation: Ask['operation']): number {
  const waits = asks.flatMap(({ sendings, ...each }) => {
    const [first] = sendings;
    const last = sendings.at(-1);
    return each.operation === operation && first && last ? [last.to - first.from] : [];
  });
  return Math.round(waits.reduce((longest, wait) => Math.max(longest, wait), 0));
}
