import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { readProgram } from './program.ts';

const PAGE = new URL('../docs/reference/commands.md', import.meta.url);

const optionsIn = (text: string) => [...text.matchAll(/--[a-z]+(?:-[a-z]+)*/g)].map(([option]) => option);

/** The rows of the page, each with the commands that it tells: their words, and the options that stand behind them. */
async function readRows(): Promise<{ text: string; told: { name: string; options: string[] }[] }[]> {
  const rows = (await readFile(PAGE, 'utf8')).split('\n').filter((line) => line.startsWith('| `scrip '));
  return rows.map((text) => {
    const [, first = ''] = text.split(/(?<!\\)\|/);
    const spans = [...first.matchAll(/`scrip ([^`]+)`/g)].map(([, span = '']) => span);
    const told = spans.map((span) => ({
      name: (/^[a-z-]+(?: [a-z][a-z-]*)*/.exec(span)?.[0] ?? '').trim(),
      options: optionsIn(span),
    }));
    return { text, told };
  });
}

test('the page of commands tells every command and option that there is, and no others', async () => {
  const program = await readProgram();
  const rows = await readRows();
  assert.ok(program.size > 20 && rows.length > 10, 'program and page are read');
  assert.deepEqual(
    [...new Set(rows.flatMap(({ told }) => told.map(({ name }) => name)))].sort(),
    [...program.keys()].sort(),
  );
  for (const [name, options] of program) {
    const own = rows.filter(({ told }) => told.some((each) => each.name === name));
    const text = own.map((row) => row.text).join('\n');
    // That a list can be had as JSON is said above the tables.
    for (const option of options.filter((each) => each !== '--json')) {
      assert.ok(optionsIn(text).includes(option), `scrip ${name} ${option} is not told`);
    }
    const shown = own.flatMap(({ told }) => told.filter((each) => each.name === name).flatMap((each) => each.options));
    for (const option of shown) assert.ok(options.includes(option), `scrip ${name} has no ${option}`);
  }
});
