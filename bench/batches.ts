import type { Batch } from '../src/batches/batch.ts';
import { median, print, textOf, whole } from './figures.ts';
import { measureGenerate } from './generate.ts';
import { measure, type Shape } from './measure.ts';
import type { Load } from './play.ts';
import type { Stock } from './requests.ts';
import { type Serve, Stage } from './stage.ts';
import { watchMemory } from './usage.ts';

const TURNS = 3;
/** Of small batches, which are not measured here. */
const SMALL_SECONDS = 1;
/** A batch that outlasts the load beside it. */
const LONG = 400_000;
const VALUE = 0.01;
const SECONDS = 8;
/** A shop on an ordinary day, and the greatest load (pauses need wrk). */
const SHAPES = [
  { name: 'tills with pauses', connections: 32, pauseMs: 20 },
  { name: 'tills without pauses', connections: 64, pauseMs: 0 },
];
/** A request that allocates for every voucher would take hundreds of megabytes. */
const MOST_GROWTH_MB = 50;
const MOST_P99_RATIO = 3;
const LEAST_COPY_RATIO = 0.5;

/** The cost of large batches beside COPY, their effect on tills, and memory. Bounds fail the run. */
export async function run(): Promise<void> {
  const stage = await Stage.open();
  const { large } = await measureGenerate(stage, SMALL_SECONDS, TURNS);
  print(`production: median ratio ${large.ratios.copy.toFixed(2)} (at least ${LEAST_COPY_RATIO})`);
  if (large.ratios.copy < LEAST_COPY_RATIO) process.exitCode = 1;
  await stage.allowLargeBatches();
  const serve = await stage.serve();
  const stock = await stage.stock(0, 0);
  const batch = await measureTills(stage, serve, stock);
  await measureMemory(stage, serve, batch);
}

/** Returns one of the batches that were made meanwhile. */
async function measureTills(stage: Stage, serve: Serve, stock: Stock): Promise<Batch> {
  let batch: Batch | undefined;
  const load = (shape: Omit<Shape, 'seconds'>) =>
    measure(stage, serve, stock, 'redeem', { ...shape, seconds: SECONDS });
  for (const shape of SHAPES) {
    const ratios: number[] = [];
    for (let turn = 1; turn <= TURNS; turn++) {
      const name = `${shape.name}, turn ${turn}`;
      const idle = await load(shape);
      const memory = watchMemory(serve.pid);
      const before = await countVouchers(stage);
      const ordered = stage.order(LONG, VALUE);
      // Awaited below; until then its failure must not hide that of the load.
      ordered.catch(() => {});
      const busy = await load(shape);
      const made = (await countVouchers(stage)) - before;
      const { beforeMb, mostMb } = await memory.stop();
      const ratio = busy.p99Ms / idle.p99Ms;
      ratios.push(ratio);
      print(
        `${name}: without a batch ${summary(idle)}; with one ${summary(busy)}, ${whole(made / SECONDS)} vouchers/s meanwhile`,
      );
      print(
        `        p99 ratio ${ratio.toFixed(2)}; memory ${whole(beforeMb)} MB before, ${whole(mostMb)} MB at most`,
      );
      if (idle.failed + busy.failed > 0) process.exitCode = 1;
      batch = await ordered;
    }
    print(`${shape.name}: median p99 ratio ${median(ratios).toFixed(2)} (at most ${MOST_P99_RATIO})`);
    if (median(ratios) > MOST_P99_RATIO) process.exitCode = 1;
  }
  return batch as Batch;
}

/** All batches together. */
async function countVouchers({ owner }: Stage): Promise<number> {
  const { rows } = await owner.query('select sum(produced)::int as made from batches');
  return rows[0].made;
}

const summary = (load: Load) => `${textOf(load)}${load.failed > 0 ? `, ${load.failed} failed` : ''}`;

/** Downloads a long batch, plain and with gzip, as fast as the service sends it. */
async function measureMemory({ authorization }: Stage, { url, pid }: Serve, batch: Batch): Promise<void> {
  for (const encoding of ['identity', 'gzip']) {
    const memory = watchMemory(pid);
    const start = performance.now();
    const response = await fetch(`${url}/api/v2/vouchers/${batch.reference}`, {
      headers: { authorization, 'accept-encoding': encoding },
    });
    let bytes = 0;
    for await (const chunk of response.body ?? []) bytes += chunk.length;
    const seconds = (performance.now() - start) / 1000;
    const { beforeMb, mostMb } = await memory.stop();
    print(
      `download of ${whole(LONG)}, ${response.headers.get('content-encoding') ?? 'plain'}: ${whole(bytes / 1e6)} MB (unpacked) in ${seconds.toFixed(1)} s; memory ${whole(beforeMb)} MB before, ${whole(mostMb)} MB at most`,
    );
    if (mostMb - beforeMb > MOST_GROWTH_MB) process.exitCode = 1;
  }
}
