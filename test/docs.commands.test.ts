import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { readProgram } from './program.ts';

const PAGE = new URL('../docs/reference/commands.md', import.meta.url);
/** Commands that print no result of their own. */
const WITHOUT_JSON = ['serve', 'work', 'db url'];

/** The usage of each command on the page: its words, and the options behind them. */
async function readUsages(): Promise<Map<string, string[]>> {
  const text = await readFile(PAGE, 'utf8');
  const blocks = [...text.matchAll(/^```text\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
  const usages = blocks.join('').replace(/\n +/g, ' ').trim().split('\n');
  return new Map(
    usages.map((usage) => [
      (/^scrip ([a-z-]+(?: [a-z][a-z0-9-]*)*)/.exec(usage)?.[1] ?? '').trim(),
      [...usage.matchAll(/--[a-z]+(?:-[a-z]+)*/g)].map(([option]) => option).sort(),
    ]),
  );
}

test('the page of commands shows every command and option of the program, and no others', async () => {
  const program = await readProgram();
  const usages = await readUsages();
  assert.ok(program.size > 20);
  const expected = [...program].map(([name, options]) => [
    name,
    options.filter((each) => each !== '--json').sort(),
  ]);
  assert.deepEqual(Object.fromEntries(usages), Object.fromEntries(expected));
});

test('every command that prints a result takes --json', async () => {
  const without = [...(await readProgram())].filter(([, options]) => !options.includes('--json'));
  assert.deepEqual(without.map(([name]) => name).sort(), [...WITHOUT_JSON].sort());
});
