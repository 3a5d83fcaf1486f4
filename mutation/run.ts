import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { numberFrom, wholeFrom } from '../test/support/number-option.ts';
import { withTestServer } from '../test/support/server.ts';
import { findMutants, findSources, type Mutant, shuffle } from './mutants.ts';
import { formatScore, formatSurvivors, type Outcome, readOutcomes, writeOutcome } from './outcomes.ts';
import { Ranking } from './ranking.ts';
import { type Sandbox, withSandbox } from './sandbox.ts';
import { type Selection, selectTests } from './selection.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const RESULTS = join(ROOT, 'mutation/results');

const program = new Command('npm run mutation --')
  .description('Change the code in many small ways, one at a time, and check whether a test fails.')
  .argument('[words...]', 'only files whose path holds one of them, with `:LINE` only that line')
  .option('--sample <number>', 'how many mutants, drawn at random (default: all)', wholeFrom(1))
  .option('--seed <text>', 'of the draw', '1')
  .option('--minutes <number>', 'stop after so long; the next run continues', numberFrom(0))
  .option('--again', 'try the survivors once more', false)
  .option(
    '--test <word>',
    'by the tests whose names hold it, not those of the source (repeatable)',
    (word: string, others: readonly string[]) => [...others, word],
    [],
  )
  .option('--score', 'print a table of scores by file', false)
  .option('--survivors', 'print what survived so far', false)
  .option('--verify <number>', "repeat so many that were killed under Node's own test runner", wholeFrom(1))
  .parse();
const words = program.args;
const options = program.opts<{
  readonly sample?: number;
  readonly seed: string;
  readonly minutes?: number;
  readonly again: boolean;
  readonly test: readonly string[];
  readonly score: boolean;
  readonly survivors: boolean;
  readonly verify?: number;
}>();

/**
 * Installs the packages that only mutation testing needs, by their own lockfile, at the first run.
 */
function install(): void {
  if (existsSync(join(ROOT, 'mutation/node_modules'))) return;
  const { status } = spawnSync('npm', ['ci'], { cwd: join(ROOT, 'mutation'), stdio: 'inherit' });
  if (status !== 0) throw new Error('npm ci failed in mutation/');
}

async function withMutant<T>(
  sandbox: Sandbox,
  { path, start, end, replacement }: Mutant,
  run: () => Promise<T>,
) {
  const text = await readFile(join(sandbox.folder, path), 'utf8');
  return sandbox.withText(path, text.slice(0, start) + replacement + text.slice(end), run);
}

async function tryMutant(sandbox: Sandbox, selection: Selection, ranking: Ranking, mutant: Mutant) {
  const { id, path } = mutant;
  const tests = ranking.inOrder(path, selection.testsOf(mutant));
  if (tests.length === 0) return { id, path, status: 'not reached' } as const;
  return withMutant<Outcome>(sandbox, mutant, async () => {
    for (const { name, ms } of tests) {
      const outcome = await sandbox.runTest(name, ms);
      ranking.note(path, name, outcome !== 'passed');
      if (outcome !== 'passed')
        return { id, path, status: outcome === 'timeout' ? 'timeout' : 'killed', by: name };
    }
    return { id, path, status: 'survived' };
  });
}

async function tryAll(sandbox: Sandbox, mutants: readonly Mutant[]): Promise<void> {
  const paths = new Set(mutants.map(({ path }) => path));
  const selection = await selectTests(sandbox, join(RESULTS, 'reached'), paths, options.test);
  // What the tests reach is kept, so that learning it is not part of the time.
  const deadline =
    options.minutes === undefined ? Number.POSITIVE_INFINITY : Date.now() + options.minutes * 60_000;
  const ranking = new Ranking();
  let done = 0;
  let stopped = false;
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => (stopped = true));
  for (const mutant of mutants) {
    if (stopped || Date.now() > deadline) break;
    const outcome = await tryMutant(sandbox, selection, ranking, mutant);
    await writeOutcome(RESULTS, outcome);
    done++;
    if (outcome.status !== 'killed') process.stdout.write(`${outcome.status}: ${formatSurvivors([mutant])}`);
  }
  process.stdout.write(`${done} of ${mutants.length} mutants\n`);
}

/** Checks that killed mutants are also killed by Node's test runner, each in a new process. */
async function verify(sandbox: Sandbox, mutants: readonly Mutant[], outcomes: ReadonlyMap<string, Outcome>) {
  let failed = 0;
  for (const mutant of mutants) {
    const by = outcomes.get(mutant.id)?.by as string;
    const result = await withMutant(sandbox, mutant, () => sandbox.runAlone(by));
    if (result === 'failed') failed++;
    else process.stdout.write(`${by} ${result}: ${formatSurvivors([mutant])}`);
  }
  process.stdout.write(`${failed} of ${mutants.length} are killed in the same way\n`);
}

async function main(): Promise<void> {
  install();
  await mkdir(RESULTS, { recursive: true });
  const found = await findMutants(
    ROOT,
    await findSources(
      ROOT,
      words.map((word) => word.replace(/:\d+$/, '')),
    ),
  );
  const all = found.filter(
    ({ path, line }) =>
      words.length === 0 ||
      words.some((word) => `${path}:${line}:`.includes(/:\d+$/.test(word) ? `${word}:` : word)),
  );
  const outcomes = await readOutcomes(RESULTS);
  const ended = (as: RegExp) => all.filter(({ id }) => as.test(outcomes.get(id)?.status ?? ''));
  if (options.score) return void process.stdout.write(formatScore(all, outcomes));
  if (options.survivors) return void process.stdout.write(formatSurvivors(ended(/survived|not reached/)));
  const chosen = shuffle(all, options.seed).slice(0, options.sample);
  // A timeout counts as killed, and may have been too short on a busy machine.
  const open = new Set(options.again ? ended(/survived|not reached|timeout/) : []);
  const again = chosen.filter((mutant) => open.has(mutant));
  const due = [...again, ...chosen.filter(({ id }) => !outcomes.has(id))];
  const sure = shuffle(
    all.filter(({ id }) => outcomes.get(id)?.status === 'killed'),
    options.seed,
  ).slice(0, options.verify ?? 0);
  const work = (sandbox: Sandbox) =>
    options.verify ? verify(sandbox, sure, outcomes) : tryAll(sandbox, due);
  if (due.length === 0 && !options.verify)
    return void process.stdout.write('nothing to do: --again tries the survivors once more\n');
  await withTestServer(async () => {
    await withSandbox(ROOT, await mkdtemp(join(tmpdir(), 'scrip-mutation-')), work);
  });
}

await main();
