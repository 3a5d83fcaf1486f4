import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { readPages } from '../docs/site/pages.ts';
import { readProgram } from './program.ts';

/** Commands that print no result of their own. */
const WITHOUT_JSON = ['serve', 'work', 'db url', 'completion'];

/** The usage of each command on the page: its words, and the options behind them. */
async function readUsages(): Promise<Map<string, string[]>> {
  const text = (await readPages()).get('docs/reference/commands.md')?.text ?? '';
  const blocks = [...text.matchAll(/^```text\n([\s\S]*?)^```/gm)].map(([, block = '']) => block);
  const usages = blocks.join('').replace(/\n +/g, ' ').trim().split('\n');
  return new Map(
    usages.map((usage) => [
      (/^scrip ([a-z-]+(?: [a-z][a-z0-9-]*)*)/.exec(usage)?.[1] ?? '').trim(),
      [...usage.matchAll(/--[a-z]+(?:-[a-z]+)*/g)].map(([option]) => option).sort(),
    ]),
  );
}

test('the page of commands shows exactly the commands and options of the program', async () => {
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

/** Every line of a guide that runs the program. */
async function readGuides(): Promise<{ guide: string; line: string }[]> {
  const folder = new URL('../docs/', import.meta.url);
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.md'));
  const lines = await Promise.all(
    names.map(async (guide) => {
      const text = await readFile(new URL(guide, folder), 'utf8');
      return [...text.matchAll(/^ *```(?:sh|cron)\n([\s\S]*?)^ *```/gm)].flatMap(([, block = '']) =>
        block
          .replaceAll('\\\n', ' ')
          .split('\n')
          .map((line) => line.replace(/ #.*| [|>] .*/g, ''))
          .filter((line) => /(^|\()\s*([A-Z_]+=\S+ )*(.*&& )?scrip [a-z]/.test(line))
          .map((line) => ({ guide, line })),
      );
    }),
  );
  return lines.flat();
}

test('every command and option in the guides exists', async () => {
  const program = await readProgram();
  const all = ['--by', '--reason', '--break-glass', '--help', '--version'];
  const lines = await readGuides();
  assert.ok(lines.length > 120, String(lines.length));
  for (const { guide, line } of lines)
    for (const [, command = ''] of line.matchAll(
      /(?:^\s*|\(|&& |\* {2})(?:[A-Z_]+=\S+ )*scrip ([a-z].*?)(?=&&|$|\))/g,
    )) {
      const words = command.split(' ');
      const name = [3, 2, 1]
        .map((count) => words.slice(0, count).join(' '))
        .find((each) => program.has(each));
      // `scrip backup DIR` is `scrip backup create DIR`.
      const found = name ?? (words[0] === 'backup' ? 'backup create' : assert.fail(`${guide}: ${line}`));
      for (const [option] of command.matchAll(/(?<= )--[a-z-]+/g))
        assert.ok([...(program.get(found) ?? []), ...all].includes(option), `${guide}: ${line}: ${option}`);
    }
});
