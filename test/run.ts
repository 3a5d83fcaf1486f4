/**
 * Runs the tests, as `npm test`, `npm run test:e2e`, `npm run test:all`, `npm run test:watch` and `npm run
 * attack` do. `--help` lists the options.
 *
 * One PostgreSQL serves the whole run: an embedded one in a folder of its own, or the server of
 * SCRIP_DATABASE_URL, whose account must be allowed to create databases. The schema is migrated once,
 * into a template; each test works on a copy.
 *
 * Each process runs several files one after the other, since loading the source takes longer than most tests.
 * An end-to-end test has a process of its own.
 *
 * `--on citus` runs the tests of what merchants and operators see on a Citus cluster of the run's own,
 * with the tests of Citus itself. `--on pgbouncer` runs those of what needs a session or a transaction,
 * behind PgBouncer in session mode, and `--on pgbouncer-transaction` in transaction mode.
 */
import { readdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import { run as runTests } from 'node:test';
import { spec } from 'node:test/reporters';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { Command, Option } from 'commander';
import { findCitus } from './citus/cluster.ts';
import { findPgBouncer, findTransactionPooler } from './pgbouncer/bouncer.ts';
import { type Attack, attackTable, isAttack } from './support/attack-table.ts';
import { whyStale } from './support/console-build.ts';
import { type Counts, lastLines } from './support/last-lines.ts';
import { atEnd, leavingNothing, temporaryFolder } from './support/leave-nothing.ts';
import { useMemory } from './support/memory.ts';
import { type Place, withTestServer } from './support/server.ts';

/** Processes at a time: two for each core of a small machine, since some tests wait for timeouts. */
const CONCURRENCY = 4;
/** Enough that a process spends little of its time on loading, and few enough to share the work. */
const FILES_OF_A_PROCESS = 8;
/** Every process of tests and every command compiles the same source. */
const COMPILE_CACHE = fileURLToPath(new URL('../node_modules/.cache/scrip', import.meta.url));
const DEADLINE = fileURLToPath(new URL('./support/deadline.ts', import.meta.url));

/**
 * The files that run on Citus: tests of behaviour, not those of the functions, tables and plans of one
 * server.
 */
const ON_CITUS =
  /^(citus\.|activate\.(holds|test)|balance\.test|bank\.test|batches\.(background|export)|books\.(days|entries|pack|property|publish|refunds|reports|tax|ugly)|claims|crash|float\.forecast|generate|give-up|http\.answers|list\.test|look-up|lookup|merchants|model|operate|operator\.(bank|support|till)|redeem\.(keys|test|race|replay)|settlement|status|update\.test|vouchers|requests|webhooks\.(events|delivery|full))/;
/** The files that could differ behind a pooler: prepared statements, session settings, locks, LISTEN. */
const ON_PGBOUNCER =
  /^(activate\.test|balance\.test|batches\.background|jobs\.away|keys\.rotate\.race|list\.test|pgbouncer|redeem\.(keys|test|race|replay)|update\.test|webhooks\.events)/;
/** Those of them without background work, which needs sessions. */
const ON_TRANSACTIONS =
  /^(activate\.test|balance\.test|keys\.rotate\.race|list\.test|pgbouncer|redeem\.(keys|test|race|replay)|update\.test)/;
/** The files that need Citus or PgBouncer. */
const ONLY_THERE = /^(citus|pgbouncer)\./;

const RUNS: Readonly<Record<Place, (name: string) => boolean>> = {
  postgres: (name) => !ONLY_THERE.test(name),
  citus: (name) => ON_CITUS.test(name),
  pgbouncer: (name) => ON_PGBOUNCER.test(name),
  'pgbouncer-transaction': (name) => ON_TRANSACTIONS.test(name),
};

/** The files that take some ten seconds or more on a quiet machine of two cores (`--times`). */
const LONG = new Set(
  `
    approvals approvals.decisions audit.states batches.background batches.export batches.failures
    batches.production books.forgeries books.never-activated books.property books.refunds
    books.reports books.taken-back books.tampering books.tax books.ugly claims.hours
    cli.audit.commands cli.batch cli.merchants cli.outcome cli.webhooks
    conformance.exactly-once conformance.misbehave current-folder.attacks db.away
    documents.attacks.growth generate give-up http.attacks.growth http.download http.fuzz
    http.overload import.vouchers keys.kms keys.rotate list.rows model operator.table operator.till
    people.attacks people.lockout.attacks people.persons.attacks pin.guard
    reconcile.differences redeem.race release reseal sandbox sdk.cli sdk.download sdk.listen
    sdk.network sdk.pending sdk.python sdk.undo secrets.whole serve.drain settlement
    settlement.payout sheets soak webhooks.delivery
`
    .trim()
    .split(/\s+/),
);

const isEndToEnd = (name: string) => name.endsWith('.e2e.test.ts');
const isLong = (name: string) => isEndToEnd(name) || LONG.has(name.replace(/\.test\.ts$/, ''));
const isOfConsole = (name: string) => name.startsWith('console.') && isEndToEnd(name);

/** Finds the files to run, by name; those that take longest first, so that no core is idle at the end. */
async function findFiles(isWanted: (name: string) => boolean): Promise<string[]> {
  const folder = fileURLToPath(new URL('./', import.meta.url));
  const all = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith('.test.ts'));
  const gone = LONG.difference(new Set(all.map((path) => basename(path, '.test.ts'))));
  if (gone.size > 0) throw new Error(`LONG names files that do not exist: ${[...gone].join(', ')}`);
  const paths = all.filter((path) => isWanted(basename(path)));
  const rank = (path: string) => Number(isEndToEnd(path)) + Number(isLong(basename(path)));
  return paths
    .sort((one, other) => rank(other) - rank(one) || basename(one).localeCompare(basename(other)))
    .map((path) => join(folder, path));
}

/**
 * Divides files among processes. Each file becomes a suite of its process. They are imported one after the
 * other: if two wait for one module, Node may run both in the suite of one, or in none.
 * @returns the modules to run, one for each process
 */
async function divide(files: readonly string[]): Promise<string[]> {
  const alone = files.filter((file) => isEndToEnd(basename(file)));
  const others = files.filter((file) => !alone.includes(file));
  const count = Math.max(Math.ceil(others.length / FILES_OF_A_PROCESS), Math.min(others.length, CONCURRENCY));
  // Neighbors test the same subject, and take long together: they go to different processes.
  const shared = Array.from({ length: count }, (_, index) =>
    others.filter((_file, place) => place % count === index),
  );
  const folder = await temporaryFolder('scrip-processes-');
  const modules = [...alone.map((file) => [file]), ...shared].map(async (own, index) => {
    const suites = own.map((file) => {
      const [name, url] = [basename(file), pathToFileURL(file)].map((text) => JSON.stringify(text));
      return `describe(${name}, () => import(${url}));\nawait import(${url}).catch(() => {});\n`;
    });
    const module = join(folder, `${index}.mjs`);
    await writeFile(module, `import { describe } from 'node:test';\n${suites.join('')}`);
    return module;
  });
  return Promise.all(modules);
}

/** How long each file took. */
type Times = { readonly name: string; readonly seconds: number }[];

/** The outcome of each test. */
type Attacks = Attack[];

type TestEvent = {
  readonly type: string;
  readonly data: { readonly file?: string; readonly success?: boolean };
};

type EndedTest = {
  readonly name: string;
  readonly file?: string;
  readonly details: { readonly type?: string };
};

/** Holds back what a process prints until it has ended, and drops it if all of its tests have passed. */
async function* withoutNoise(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  const held = new Map<string, TestEvent[]>();
  for await (const event of events) {
    const { file = '', success } = event.data;
    if (event.type === 'test:stdout' || event.type === 'test:stderr') {
      held.set(file, [...(held.get(file) ?? []), event]);
      continue;
    }
    if (event.type === 'test:summary' && file !== '') {
      if (!success) yield* held.get(file) ?? [];
      held.delete(file);
    }
    yield event;
  }
}

/** A line on a terminal that shows the progress of the run, below its output. */
class ProgressLine {
  readonly #processes: number;
  readonly #startedAt = Date.now();
  #done = 0;
  #failed = 0;

  constructor(processes: number) {
    this.#processes = processes;
  }

  add(success: boolean): void {
    this.#done++;
    if (!success) this.#failed++;
  }

  /** Prints text above the line. */
  print(text: string): void {
    if (!process.stderr.isTTY) return void process.stdout.write(text);
    process.stderr.write('\r\u001b[K');
    process.stdout.write(text);
    if (!text.endsWith('\n')) return;
    const seconds = Math.round((Date.now() - this.#startedAt) / 1_000);
    process.stderr.write(
      `${this.#done} of ${this.#processes} processes, ${this.#failed} failed, ${seconds} s`,
    );
  }
}

/**
 * Runs the files.
 * @param watch runs a file again when it, or what it imports, has changed, until Ctrl-C
 * @param attacks receives the outcome of each test
 * @returns how many tests passed and failed
 */
async function runFiles(files: string[], watch: boolean, times: Times, attacks: Attacks): Promise<Counts> {
  const stopping = new AbortController();
  atEnd(() => stopping.abort());
  const options = {
    concurrency: CONCURRENCY,
    execArgv: ['--import', DEADLINE],
    signal: stopping.signal,
  };
  // A change runs the file that imports what has changed, and no other one.
  const modules = watch ? files : await divide(files);
  const stream = runTests({ files: modules, watch, ...options });
  let counts: Counts | undefined;
  const reasons: string[] = [];
  const progress = new ProgressLine(modules.length);
  stream.on('test:complete', ({ name, nesting, details }) => {
    if (nesting === 0 && name.endsWith('.test.ts'))
      times.push({ name, seconds: details.duration_ms / 1_000 });
  });
  const add = ({ name, file = '', details }: EndedTest, outcome: Attack['outcome']) => {
    if (details.type !== 'suite') attacks.push({ file: basename(file), name, outcome });
  };
  stream.on('test:fail', (ended) => add(ended, 'broken'));
  stream.on('test:pass', (ended) => {
    const { skip } = ended;
    add(ended, skip === undefined ? 'held' : 'not tried');
    if (skip !== undefined) reasons.push(String(skip));
  });
  stream.on('test:summary', ({ file, success, counts: { tests, passed, skipped, todo } }) => {
    // Each process has a summary of its own; the one without a file is of all of them.
    if (file !== undefined) return progress.add(success);
    const failed = tests - passed - skipped - todo;
    // A hook that fails after the last test is not a failed test, but a failure.
    counts = { passed, failed: success ? failed : Math.max(failed, 1), skipped: reasons };
  });
  for await (const text of Readable.from(withoutNoise(stream)).compose(spec)) progress.print(String(text));
  if (!counts) throw new Error('the tests ended without a summary');
  return counts;
}

const FIND: Readonly<Record<Place, () => Promise<unknown>>> = {
  postgres: async () => {},
  citus: findCitus,
  pgbouncer: findPgBouncer,
  'pgbouncer-transaction': findTransactionPooler,
};

/** Says why nothing was tested: the run has failed. */
function refuse(why: string): void {
  process.stderr.write(`${why}\n`);
  process.exitCode = 1;
}

async function isInstalled(place: Place): Promise<boolean> {
  try {
    await FIND[place]();
    return true;
  } catch (error) {
    refuse((error as Error).message);
    return false;
  }
}

async function main(): Promise<void> {
  const program = new Command('npx node test/run.ts')
    .description('Run the tests: without options, the quick ones.')
    .argument('[words...]', 'only the files whose names hold one of them')
    .option('--e2e', 'the end-to-end tests (*.e2e.test.ts)', false)
    .option('--all', 'the quick tests, the end-to-end tests, and those that take long', false)
    .option('--attacks', 'those that attack; prints a table of attacks and outcomes', false)
    .option('--watch', 'run them again after each change', false)
    .option('--times', 'list how long each file took', false)
    .addOption(
      new Option('--on <place>', 'where').choices(Object.keys(RUNS)).default('postgres' satisfies Place),
    )
    .parse();
  const words = program.args;
  const { on: place, ...wanted } = program.opts<{
    on: Place;
    e2e: boolean;
    all: boolean;
    attacks: boolean;
    watch: boolean;
    times: boolean;
  }>();
  if (!(await isInstalled(place))) return;
  const isSelected = (name: string) => {
    if (wanted.attacks) return isAttack(name);
    if (words.length > 0) return words.some((word) => name.includes(word));
    if (wanted.all || place !== 'postgres') return true;
    return wanted.e2e ? isEndToEnd(name) : !isLong(name);
  };
  const files = await findFiles((name) => RUNS[place](name) && isSelected(name));
  if (files.length === 0) program.error('no test file has such a name');
  const stale = files.some((file) => isOfConsole(basename(file))) && (await whyStale());
  // A browser test would wait for what the old console does not show.
  if (stale) return refuse(stale);
  let counts: Counts = { passed: 0, failed: 0, skipped: [] };
  const times: Times = [];
  const attacks: Attacks = [];
  process.env['NODE_COMPILE_CACHE'] ??= COMPILE_CACHE;
  await useMemory();
  await withTestServer(async () => {
    counts = await runFiles(files, wanted.watch, times, attacks);
  }, place);
  times.sort((one, other) => other.seconds - one.seconds);
  if (wanted.times)
    for (const { name, seconds } of times)
      process.stdout.write(`${seconds.toFixed(1).padStart(7)} s  ${name}\n`);
  if (wanted.attacks) process.stdout.write(attackTable(attacks));
  if (counts.failed > 0 || counts.passed === 0) process.exitCode = 1;
  process.stdout.write(`${process.stderr.isTTY ? '\n' : ''}${lastLines(counts)}`);
}

await leavingNothing(main);
