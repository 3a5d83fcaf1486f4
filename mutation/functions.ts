/**
 * Mutants of the functions in sql/, which move the money: `node mutation/functions.ts [WORD…] [--sample N]
 * [--seed S]`. Each mutant is created in the template database of the tests, and the tests of its function
 * run. Prints the survivors.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openOwner } from '../src/db/pool.ts';
import { leavingNothing } from '../test/leave-nothing.ts';
import { withTestServer } from '../test/server.ts';
import { shuffle } from './mutants.ts';
import { mutateStatement } from './sql.ts';

const ROOT = fileURLToPath(new URL('../', import.meta.url));

/** The functions that are mutated, each with its file in sql/ and its test files. */
const FUNCTIONS: Readonly<Record<string, readonly [file: string, ...tests: string[]]>> = {
  redeem: ['006-redeem', 'redeem.statement', 'redeem.statement.vouchers', 'rows.written', 'redeem.race'],
  activate: [
    '007-activate',
    'activate.statement',
    'activate.statement.vouchers',
    'activate.statement.replay',
    'rows.written',
  ],
  update_redemptions: ['009-update-redemption', 'update.statement', 'update.statement.calls', 'rows.written'],
  read_balances: ['010-balance', 'balance.statement'],
  check_pins: ['010-balance', 'balance.statement', 'pin.guard', 'rows.written'],
};
/** Ten times the duration of the tests of a function. A mutant that waits forever is killed. */
const LIMIT_MS = 120_000;

type Mutant = {
  readonly id: string;
  readonly text: string;
  readonly tests: readonly string[];
  readonly label: string;
};

async function findMutants(name: string): Promise<Mutant[]> {
  const [file, ...tests] = FUNCTIONS[name] as [string, ...string[]];
  const source = await readFile(`${ROOT}sql/${file}.sql`, 'utf8');
  const [text] = new RegExp(`^create function ${name}\\([\\s\\S]*?^end \\$\\$;`, 'm').exec(source) ?? [];
  if (text === undefined) throw new Error(`sql/${file}.sql has no function ${name}`);
  const body = text.indexOf('\nbegin');
  return mutateStatement(text)
    .filter(({ start }) => start > body)
    .map(({ start, end, replacement }) => {
      const line = source.slice(0, source.indexOf(text) + start).split('\n').length;
      return {
        id: `${name} ${start} ${end} ${replacement}`,
        text: text.slice(0, start) + replacement + text.slice(end),
        tests,
        label: `sql/${file}.sql:${line}  ${text.slice(start, end)}  ->  ${replacement || '(nothing)'}`,
      };
    });
}

/** Runs statements in the template database of the tests, which must have no other connection. */
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

async function passes(test: string): Promise<boolean> {
  const args = ['--import', `${ROOT}test/deadline.ts`, `${ROOT}test/${test}.test.ts`];
  const child = spawn(process.execPath, args, { stdio: 'ignore', timeout: LIMIT_MS });
  const [code] = await once(child, 'exit');
  return code === 0;
}

/** Whether a test fails. A mutant that is not a valid function is refused by the database. */
async function isFound({ text, tests }: Mutant): Promise<boolean> {
  try {
    await onTemplate(text);
  } catch {
    return true;
  }
  for (const test of tests) if (!(await passes(test))) return true;
  return false;
}

await leavingNothing(async () => {
  const options = {
    sample: { type: 'string', default: '20' },
    seed: { type: 'string', default: '1' },
  } as const;
  const { values, positionals } = parseArgs({ allowPositionals: true, options });
  const names = Object.keys(FUNCTIONS).filter(
    (name) => positionals.length === 0 || positionals.some((word) => name.includes(word)),
  );
  await withTestServer(async () => {
    for (const name of names) {
      const all = await findMutants(name);
      const sample = shuffle(all, values.seed).slice(0, Number(values.sample));
      const [file] = FUNCTIONS[name] as [string];
      const source = await readFile(`${ROOT}sql/${file}.sql`, 'utf8');
      const [original = ''] =
        new RegExp(`^create function ${name}\\([\\s\\S]*?^end \\$\\$;`, 'm').exec(source) ?? [];
      for (const test of (FUNCTIONS[name] as readonly string[]).slice(1))
        if (!(await passes(test))) throw new Error(`test/${test}.test.ts fails without any change`);
      let found = 0;
      for (const mutant of sample) {
        if (await isFound(mutant)) found++;
        else process.stdout.write(`survived  ${mutant.label}\n`);
      }
      await onTemplate(original);
      process.stdout.write(`${name}: ${found} of ${sample.length} found (of ${all.length} mutants)\n`);
    }
  });
});
