import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { readPages } from '../../docs/site/pages.ts';
import { parseLine, readProgram } from '../support/program.ts';

const ROOT = new URL('../../', import.meta.url);

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

/** What may precede the program in a line: the time of a cron job, variables, other programs that run it. */
const BEFORE = /^[\s"]*(?:(?:[\d*]+ +){5})?(?:[A-Z_]+=\S+ |sudo |nice )*(?=scrip [a-z])/;

/** The pages with commands, without what is made from the program. */
async function readTexts(): Promise<{ path: string; text: string }[]> {
  const paths = ['README.md', ...(await readPages()).keys()];
  return Promise.all(
    paths.map(async (path) => ({ path, text: await readFile(new URL(path, ROOT), 'utf8') })),
  );
}

/** Every command line of the program in a block of a page, without what the shell does around it. */
const linesOf = (text: string) =>
  [...text.matchAll(/^ *```(?:sh|cron)\n([\s\S]*?)^ *```/gm)]
    .flatMap(([, block = '']) => block.replaceAll(/\\\n\s*/g, '').split('\n'))
    .flatMap((line) => line.replace(/(^| )# .*/, '').split(/&&|\$\(|\)|;|(?<= )[|<>]/))
    .filter((line) => BEFORE.test(line))
    .map((line) => line.replace(BEFORE, '').replaceAll('…', '1').trim());

test('every command line in a block of the guides is understood', async () => {
  const failed: string[] = [];
  let count = 0;
  for (const { path, text } of await readTexts())
    for (const line of linesOf(text)) {
      await parseLine(line).catch((error: Error) => failed.push(`${path}: ${line}: ${error.message}`));
      count++;
    }
  assert.deepEqual(failed, []);
  assert.ok(count > 150, String(count));
});

test('every command that a sentence names exists, with its options', async () => {
  const program = await readProgram();
  const ofAll = ['--by', '--reason', '--break-glass', '--help', '--version', '--json'];
  const failed: string[] = [];
  let count = 0;
  for (const { path, text } of await readTexts())
    for (const [, command = ''] of text
      .replaceAll(/^ *```[\s\S]*?^ *```/gm, '')
      .matchAll(/`scrip ([a-z-][^`]*)`/g)) {
      const words = command.split(/\s+/);
      const named = words.slice(0, words.findIndex((word) => !/^[a-z][a-z0-9-]*$/.test(word)) >>> 0);
      const names = [...program.keys()].filter((name) => `${named.join(' ')} `.startsWith(`${name} `));
      const isNoun = [...program.keys()].some((name) => name.startsWith(named.join(' ')));
      const options = new Set([...ofAll, ...names.flatMap((name) => program.get(name) ?? [])]);
      const isFine = names.length > 0 || isNoun;
      if (!isFine || words.some((word) => /^--[a-z]/.test(word) && !options.has(word)))
        failed.push(`${path}: scrip ${command}`);
      count++;
    }
  assert.deepEqual(failed, []);
  assert.ok(count > 100, String(count));
});
