/**
 * Mutation testing: changes the code in many small ways, one at a time, and sees whether a test notices (docs/mutation.md).
 *
 * npm run mutation -- [WORD…] [--sample N] [--seed S] [--minutes M] [--again] [--test WORD…] [--score] [--survivors]
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openOwner } from '../src/db/pool.ts';
import { withTestServer } from '../test/server.ts';
import { findMutants, findSources, type Mutant, shuffle } from './mutants.ts';
import { type Outcome, readOutcomes, tellScore, tellSurvivors, writeOutcome } from './outcomes.ts';
import { type Sandbox, withSandbox } from './sandbox.ts';
import { type Selection, selectTests } from './selection.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
const RESULTS = join(ROOT, 'mutation/results');

const { values: asked, positionals: words } = parseArgs({
  allowPositionals: true,
  options: {
    sample: { type: 'string' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string' },
    again: { type: 'boolean', default: false },
    test: { type: 'string', multiple: true, default: [] },
    score: { type: 'boolean', default: false },
    survivors: { type: 'boolean', default: false },
  },
});

/** What only this needs, and `npm ci` does not bring: installed at its first run, by a lockfile of its own. */
function install(): void {
  if (existsSync(join(ROOT, 'mutation/node_modules'))) return;
  const { status } = spawnSync('npm', ['ci'], { cwd: join(ROOT, 'mutation'), stdio: 'inherit' });
  if (status !== 0) throw new Error('npm ci failed in mutation/');
}

/** A database of its own, for a moment and for nothing of worth: it need not wait for the disk. */
async function hurry(): Promise<void> {
  if (process.env['SCRIP_DATABASE_URL']) return;
  const owner = await openOwner(process.env['SCRIP_TEST_URL'] as string);
  for (const text of ['alter system set fsync = off', 'select pg_reload_conf()'])
    await owner.query({ text, values: [] });
  await owner.close();
  process.env['SCRIP_TEST_COPY'] = 'file_copy';
}

/** The test that found the mutant before this one out is asked first: it looks at the same place. */
function inOrder(tests: readonly { name: string; ms: number }[], last: string | undefined) {
  return [...tests.filter(({ name }) => name === last), ...tests.filter(({ name }) => name !== last)];
}

async function tryMutant(sandbox: Sandbox, selection: Selection, mutant: Mutant, last?: string): Promise<Outcome> {
  const { id, path } = mutant;
  const tests = inOrder(selection.testsOf(mutant), last);
  if (tests.length === 0) return { id, path, status: 'not reached' };
  const text = await readFile(join(sandbox.folder, path), 'utf8');
  const mutated = text.slice(0, mutant.start) + mutant.replacement + text.slice(mutant.end);
  return sandbox.withText(path, mutated, async () => {
    for (const { name, ms } of tests) {
      const outcome = await sandbox.runTest(name, ms);
      if (outcome !== 'passed') return { id, path, status: outcome === 'timeout' ? 'timeout' : 'killed', by: name };
    }
    return { id, path, status: 'survived' };
  });
}

async function tryAll(sandbox: Sandbox, mutants: readonly Mutant[]): Promise<void> {
  const selection = await selectTests(sandbox, join(RESULTS, 'reached.json'), asked.test);
  const deadline = asked.minutes === undefined ? Number.POSITIVE_INFINITY : Date.now() + Number(asked.minutes) * 60_000;
  let last: string | undefined;
  let done = 0;
  let stopped = false;
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => (stopped = true));
  for (const mutant of mutants) {
    if (stopped || Date.now() > deadline) break;
    const outcome = await tryMutant(sandbox, selection, mutant, last);
    last = outcome.by ?? last;
    await writeOutcome(RESULTS, outcome);
    done++;
    if (outcome.status !== 'killed') process.stdout.write(`${outcome.status}: ${tellSurvivors([mutant])}`);
  }
  process.stdout.write(`${done} of ${mutants.length} mutants\n`);
}

async function main(): Promise<void> {
  install();
  await mkdir(RESULTS, { recursive: true });
  const all = await findMutants(ROOT, await findSources(ROOT, words));
  const outcomes = await readOutcomes(RESULTS);
  const alive = all.filter(({ id }) => /survived|not reached/.test(outcomes.get(id)?.status ?? ''));
  if (asked.score) return void process.stdout.write(tellScore(all, outcomes));
  if (asked.survivors) return void process.stdout.write(tellSurvivors(alive));
  const chosen = shuffle(all, asked.seed).slice(0, asked.sample === undefined ? all.length : Number(asked.sample));
  const again = asked.again ? chosen.filter((mutant) => alive.includes(mutant)) : [];
  const due = [...again, ...chosen.filter(({ id }) => !outcomes.has(id))];
  if (due.length === 0) return void process.stdout.write('nothing to do: --again tries the survivors once more\n');
  await withTestServer(async () => {
    await hurry();
    await withSandbox(ROOT, await mkdtemp(join(tmpdir(), 'scrip-mutation-')), (sandbox) => tryAll(sandbox, due));
  });
}

await main();
