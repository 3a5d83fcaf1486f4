import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mutateSql } from '../../mutation/sql.ts';

/** The mutants of a statement, each as the changed statement. */
function mutantsOf(statement: string): string[] {
  const source = `const ASK = { text: \`${statement}\` };`;
  return mutateSql(source)
    .map(({ start, end, replacement }) => source.slice(0, start) + replacement + source.slice(end))
    .map((mutated) => mutated.slice(source.indexOf(statement), mutated.lastIndexOf('`')));
}

test('a condition becomes the neutral value of its operator, and other parts change once each', () => {
  assert.deepEqual(mutantsOf('select 1 from t where a is null and (b or c) for update').sort(), [
    'select 1 from t where a is not null and (b or c) for update',
    'select 1 from t where a is null and (b or c) ',
    'select 1 from t where a is null and (b or false) for update',
    'select 1 from t where a is null and (false or c) for update',
    'select 1 from t where a is null and true for update',
    'select 1 from t where true and (b or c) for update',
    'select 2 from t where a is null and (b or c) for update',
  ]);
});

test('the condition of a CASE becomes false, and values of a simple CASE do not change', () => {
  assert.deepEqual(mutantsOf("select case when a and b then 'x' else 'y' end"), [
    "select case when true and b then 'x' else 'y' end",
    "select case when false then 'x' else 'y' end",
    "select case when a and true then 'x' else 'y' end",
  ]);
  assert.deepEqual(mutantsOf("select case kind when 'A' then b when 'B' then c end"), []);
});

test('BETWEEN keeps its AND', () => {
  assert.deepEqual(mutantsOf('select x where a between b and c and d'), [
    'select x where true and d',
    'select x where a between b and c and true',
  ]);
});

test('comparisons, arithmetic, arguments of COALESCE and values of IN lists change', () => {
  assert.deepEqual(mutantsOf("select coalesce(a, b) - c, d <= $1, e in ('u', 'v')").sort(), [
    "select (a) - c, d <= $1, e in ('u', 'v')",
    "select coalesce( b) - c, d <= $1, e in ('u', 'v')",
    "select coalesce(a, b) + c, d <= $1, e in ('u', 'v')",
    "select coalesce(a, b) - c, d < $1, e in ('u', 'v')",
    "select coalesce(a, b) - c, d <= $1, e in ('none', 'v')",
    "select coalesce(a, b) - c, d <= $1, e in ('u', 'none')",
  ]);
});

test('comments, strings, limits and placeholders do not change', () => {
  assert.deepEqual(mutantsOf("select 'a and b < 5' from t -- where not c\nlimit 50"), []);
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the text of a template.
  assert.deepEqual(mutantsOf('select ${a < b} from t'), []);
});

test('only templates with SQL are mutated', () => {
  assert.deepEqual(mutateSql('const told = `where a and b`;'), []);
  assert.equal(mutateSql('return sql`select from t where a`;').length, 1);
});
