import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Command } from 'commander';
import { openOwner } from '../src/db/pool.ts';
import { leavingNothing, temporaryFolder } from '../test/support/leave-nothing.ts';
import { wholeFrom } from '../test/support/number-option.ts';
import { withTestServer } from '../test/support/server.ts';
import { shuffle } from './mutants.ts';
import { Ranking } from './ranking.ts';
import { type Sandbox, withSandbox } from './sandbox.ts';
import type { Reaching } from './selection.ts';
import { mutateStatement } from './sql.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));
/** The limit of a test file whose duration is not known yet. */
const FIRST_MS = 120_000;

/**
 * Conditions that matter on several shards only: the tests run on one server, in one bucket. (On Citus, most
 * of these mutants would ask every worker, and fail.)
 */
const OVER_SHARDS = /^((\w+\.)?bucket = p_bucket|(not )?p_claimed)$/;
/** The line of the statement that pins a shard. */
const PIN = /position < 0/;

/** The functions that are mutated, each with its file in sql/ and its test files. */
const FUNCTIONS: Readonly<Record<string, readonly [file: string, ...tests: string[]]>> = {
  wrong_pins_after: ['005-rules', 'redeem.statement', 'balance.statement', 'pin.guard'],
  pin_locked_until: ['005-rules', 'redeem.statement', 'balance.statement', 'pin.guard'],
  announce: ['005-rules', 'redeem.statement', 'rows.written', 'webhooks.events', 'webhooks.operator'],
  redeem: [
    '006-redeem',
    'redeem.statement',
    'redeem.statement.vouchers',
    'rows.written',
    'redeem.race',
    'daily-limits',
    'db.plans',
    'webhooks.operator',
  ],
  debit_float: ['007-activate', 'activate.statement', 'merchants.floats', 'generate'],
  activate: [
    '007-activate',
    'activate.statement',
    'activate.statement.vouchers',
    'activate.statement.replay',
    'daily-limits',
    'rows.written',
    'db.plans',
  ],
  update_redemptions: [
    '009-update-redemption',
    'update.statement',
    'update.statement.calls',
    'update',
    'outstanding',
    'books.refunds',
    'daily-limits',
    'rows.written',
    'db.plans',
    'webhooks.operator',
  ],
  read_balances: ['010-balance', 'balance.statement', 'balance', 'db.plans'],
  check_pins: ['010-balance', 'balance.statement', 'pin.guard', 'rows.written', 'db.plans'],
  set_voucher_block: ['012-vouchers', 'operate', 'rows.written'],
  reset_voucher_pin: ['012-vouchers', 'operate', 'rows.written'],
  set_voucher_expiry: ['012-vouchers', 'operate', 'rows.written', 'books.repeat'],
  replace_voucher: [
    '012-vouchers',
    'operate',
    'books.tax',
    'rows.written',
    'update.statement',
    'books.repeat',
  ],
  create_vouchers: ['012-vouchers', 'generate', 'batches.production'],
  void_vouchers: [
    '012-vouchers',
    'void.statement',
    'batches.failures',
    'batches.background',
    'rows.written',
    'reconcile.differences',
  ],
  post: ['012-vouchers', 'generate', 'rows.written', 'batches.failures'],
  book: [
    '015-booking',
    'booking.statement.accounts',
    'books.opening',
    'merchants.floats',
    'settlement.payout',
    'rows.written',
  ],
  book_voucher: ['015-booking', 'booking.statement', 'operator.support', 'rows.written', 'books.repeat'],
  take_price: ['015-booking', 'generate', 'books.never-activated', 'rows.written'],
  release_price: [
    '015-booking',
    'books.never-activated',
    'batches.background',
    'sweep.statement',
    'rows.written',
  ],
  reserve_batch: ['015-booking', 'generate', 'batches.background', 'rows.written'],
  release_batch: ['015-booking', 'batches.failures', 'batches.background', 'rows.written'],
  release_lapsed: ['015-booking', 'books.never-activated', 'sweep.statement', 'rows.written'],
  cancel_inactive: ['015-booking', 'books.never-activated', 'operate', 'rows.written'],
  reserve_again: ['015-booking', 'books.never-activated', 'rows.written'],
  sweep_vouchers: ['015-booking', 'sweep.statement', 'books.clocks', 'rows.written', 'books.repeat'],
  import_vouchers: ['016-imports', 'import.vouchers', 'import.takeover'],
};

type Mutant = { readonly id: string; readonly text: string; readonly label: string };

/** The text of a function, and the number of its first line. */
async function readFunction(name: string, file: string): Promise<{ text: string; line: number }> {
  const source = await readFile(`${ROOT}sql/${file}.sql`, 'utf8');
  const [text] = new RegExp(`^create function ${name}\\([\\s\\S]*?^(?:end )?\\$\\$;`, 'm').exec(source) ?? [];
  if (text === undefined) throw new Error(`sql/${file}.sql has no function ${name}`);
  return { text, line: source.slice(0, source.indexOf(text)).split('\n').length };
}

async function findMutants(name: string, file: string): Promise<Mutant[]> {
  const { text, line } = await readFunction(name, file);
  const body = text.indexOf('$$');
  return mutateStatement(text)
    .filter(({ start, end }) => {
      const lineOf = text.slice(text.lastIndexOf('\n', start) + 1, text.indexOf('\n', start));
      return start > body && !OVER_SHARDS.test(text.slice(start, end)) && !PIN.test(lineOf);
    })
    .map(({ start, end, replacement }) => {
      const at = line + text.slice(0, start).split('\n').length - 1;
      return {
        id: `${name} ${start} ${end} ${replacement}`,
        text: text.slice(0, start) + replacement + text.slice(end),
        label: `sql/${file}.sql:${at}  ${text.slice(start, end)}  ->  ${replacement || '(nothing)'}`,
      };
    });
}

/** Creates a function in the template database of the tests, which must have no other connection. */
async function onTemplate(text: string): Promise<void> {
  const url = new URL(process.env['SCRIP_TEST_URL'] as string);
  url.pathname = `/${process.env['SCRIP_TEST_TEMPLATE']}`;
  const owner = await openOwner(url.href);
  await owner
    .query({
      text: `set search_path = scrip; ${text.replace('create function', 'create or replace function')}`,
      values: [],
    })
    .finally(() => owner.close());
}

/** The test files of a function, with their durations. They must pass without any change. */
async function measureTests(sandbox: Sandbox, names: readonly string[]): Promise<Reaching[]> {
  const tests: Reaching[] = [];
  for (const each of names) {
    const [name] = await Array.fromAsync(glob(`**/${each}.test.ts`, { cwd: join(ROOT, 'test') }));
    if (name === undefined) throw new Error(`there is no test ${each}.test.ts`);
    const started = Date.now();
    const result = await sandbox.runTest(name, FIRST_MS);
    if (result !== 'passed') throw new Error(`test/${name} ${result} without any change`);
    tests.push({ name, ms: Date.now() - started });
  }
  return tests;
}

async function mutateFunction(sandbox: Sandbox, name: string, sample: number, seed: string): Promise<void> {
  const [file, ...names] = FUNCTIONS[name] as [string, ...string[]];
  const tests = await measureTests(sandbox, names);
  const ranking = new Ranking();
  /** Whether a test fails. A mutant that is not a valid function is refused by the database. */
  const isFound = async ({ text }: Mutant): Promise<boolean> => {
    const isValid = await onTemplate(text).then(
      () => true,
      () => false,
    );
    if (!isValid) return true;
    for (const test of ranking.inOrder(name, tests)) {
      const isKilled = (await sandbox.runTest(test.name, test.ms)) !== 'passed';
      ranking.note(name, test.name, isKilled);
      if (isKilled) return true;
    }
    return false;
  };
  const all = await findMutants(name, file);
  const chosen = shuffle(all, seed).slice(0, sample);
  let found = 0;
  for (const mutant of chosen) {
    if (await isFound(mutant)) found++;
    else process.stdout.write(`survived  ${mutant.label}\n`);
  }
  await onTemplate((await readFunction(name, file)).text);
  process.stdout.write(`${name}: ${found} of ${chosen.length} found (of ${all.length} mutants)\n`);
}

await leavingNothing(async () => {
  const program = new Command('npx node mutation/functions.ts')
    .description(
      'Mutate the functions of sql/ that move the money, and print the mutants that no test finds.',
    )
    .argument('[words...]', 'only functions whose names hold one of them')
    .option('--sample <number>', 'how many mutants of each', wholeFrom(1), 20)
    .option('--seed <text>', 'of the draw', '1')
    .parse();
  const words = program.args;
  const { sample, seed } = program.opts<{ sample: number; seed: string }>();
  const names = Object.keys(FUNCTIONS).filter(
    (name) => words.length === 0 || words.some((word) => name.includes(word)),
  );
  // Only the database changes, so that the source is loaded once.
  process.env['SCRIP_MUTATION_RELOADS'] = 'test/';
  await withTestServer(async () => {
    await withSandbox(ROOT, await temporaryFolder('scrip-mutation-'), async (sandbox) => {
      for (const name of names) await mutateFunction(sandbox, name, sample, seed);
    });
  });
});
