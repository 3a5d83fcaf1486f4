/**
 * `npm run bench`: the throughput and latency of the service over HTTP, with everything switched on,
 * beside yardsticks of the same run on the same machine. Compare the ratios: machines are shared, and a
 * figure alone says little.
 */
import { Argument, Command, Option } from 'commander';
import { leavingNothing } from '../test/support/leave-nothing.ts';
import { numberFrom } from '../test/support/number-option.ts';
import type { Given } from './scenario.ts';

type Scenario = {
  readonly about: string;
  /** The options with their defaults. */
  readonly options?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** The names of its parts, each of which can be run by itself. */
  readonly parts?: readonly string[];
  readonly load: () => Promise<{ run(given: Given): Promise<void> }>;
};

const SHAPE = { seconds: 4, turns: 3 };

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  suite: {
    about: 'every operation, batches, load beyond the greatest, crowds, processes and the start',
    options: {
      ...SHAPE,
      vouchers: '100000,1000000',
      entries: '10',
      redemptions: 1_000_000,
      report: false,
      keep: undefined,
    },
    parts: [
      ...['redeem', 'balance', 'lookup', 'activate', 'update', 'list', 'till'],
      ...['generate', 'download', 'latency', 'overload', 'crowds', 'processes', 'start', 'growth', 'bloat'],
    ],
    load: () => import('./suite.ts'),
  },
  batches: {
    about: 'tills beside large batches, and memory; fails above its limits',
    load: () => import('./batches.ts'),
  },
  books: {
    about: 'the close of a large day beside tills, and reports of a year',
    options: { rows: 2_000_000, merchants: 200, vouchers: 0, quiet: false },
    load: () => import('./books.ts'),
  },
  cells: {
    about: 'a simulation of a million redemptions a second over several servers',
    options: {
      rate: 1_000_000,
      seconds: 3,
      cells: 16,
      cores: 16,
      fronts: 150,
      owners: 6,
      call: 400,
      request: 40,
      commit: 1,
    },
    load: () => import('./cells.ts'),
  },
  citus: {
    about: 'processor time of a redemption, on one server and over shards',
    options: { seconds: 8, buckets: 4 }, // the buckets that two workers get by default
    load: () => import('./citus.ts'),
  },
  cost: {
    about: 'what metrics, traces and a backup cost redemptions',
    options: { seconds: 30, turns: 3, connections: 64 },
    parts: ['nothing', 'metrics', 'traces', 'backup'],
    load: () => import('./cost.ts'),
  },
  counter: {
    about: 'cashiers who redeem at the till of the portal',
    options: { seconds: 10, cashiers: 8 },
    load: () => import('./counter.ts'),
  },
  desk: {
    about: 'operators on a large database, and tills beside them',
    options: { ...SHAPE, vouchers: 100_000, calls: 40, keep: undefined },
    parts: ['lists', 'tills', 'crowd', 'consoles', 'core'],
    load: () => import('./desk.ts'),
  },
  log: {
    about: 'the write-ahead log of a redemption just after a checkpoint, by table and index',
    options: { vouchers: 3_000_000, entries: 2, calls: 18_000, turns: 2 },
    load: () => import('./log.ts'),
  },
  metrics: {
    about: 'the CPU time of counters and spans, beside the batcher of another checkout',
    options: { base: undefined },
    load: () => import('./metrics.ts'),
  },
  paint: {
    about: 'pages of the console in a browser: until they are painted, and what they transfer',
    options: { vouchers: 0, keep: undefined },
    load: () => import('./paint.ts'),
  },
  proof: {
    about: 'the proof of a large day: its close, its export, and both programs that verify it',
    options: { rows: 1_000_000 },
    load: () => import('./proof.ts'),
  },
  receipt: {
    about: 'a cashier at the till of the portal in a browser, from the scan to the receipt',
    options: { sales: 60 },
    load: () => import('./receipt.ts'),
  },
  services: {
    about: 'connections and statements of a hundred processes',
    options: { processes: 100, merchants: 20, redemptions: 20_000 },
    load: () => import('./services.ts'),
  },
  timing: {
    about: 'whether the time of an answer tells something',
    options: { samples: 4_000, load: false, report: false },
    parts: ['balance', 'redeem', 'activate', 'locked', 'authentication', 'guessing'],
    load: () => import('./timing.ts'),
  },
  webhooks: {
    about: 'deliveries beside endpoints that hang',
    load: () => import('./webhooks.ts'),
  },
};

/** An option with a default: a flag, a number, or text such as a list of numbers. */
function optionOf(name: string, value: string | number | boolean | undefined): Option {
  if (value === false) return new Option(`--${name}`).default(value);
  if (typeof value === 'number')
    return new Option(`--${name} <number>`).default(value).argParser(numberFrom(0));
  return new Option(`--${name} <text>`).default(value);
}

function addScenario(program: Command, name: string, { about, options = {}, parts, load }: Scenario): void {
  const command = program.command(name, { isDefault: name === 'suite' }).description(about);
  for (const [option, value] of Object.entries(options)) command.addOption(optionOf(option, value));
  if (parts) command.addArgument(new Argument('[parts...]', 'only these parts').choices(parts));
  command.action(async () => {
    const { run } = await load();
    await leavingNothing(() => run({ words: command.args, values: command.opts() }));
  });
}

const program = new Command('npm run bench --').description(
  'Measure the service beside yardsticks on the same machine (docs/explanation/performance.md).',
);
for (const [name, scenario] of Object.entries(SCENARIOS)) addScenario(program, name, scenario);
await program.parseAsync();
// What a scenario has opened for good, such as a collector of traces, would keep the process alive.
process.exit();
