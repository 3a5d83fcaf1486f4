import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { STATUS } from '../../src/cli/output.ts';
import { OPERATIONS } from '../../src/operations/table.ts';

const ROOT = new URL('../../', import.meta.url);
const read = (path: string) => readFile(new URL(path, ROOT), 'utf8');
const PAGE = await read('docs/reference/commands.md');

/** The part of the page below a heading, up to the next one of its level. */
const below = (heading: string) => PAGE.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? '';

/** The names and numbers of the table of statuses. */
const statuses = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/^\| (\d+) \| `(\w+)` \|/gm)].map(([, status, name = '']) => [name, Number(status)]),
  );

/** The files of the program that set its exit status. */
async function readCommands(): Promise<{ path: string; text: string }[]> {
  const names = (await readdir(new URL('src/cli/', ROOT))).map((name) => `src/cli/${name}`);
  return Promise.all(['src/main.ts', ...names].map(async (path) => ({ path, text: await read(path) })));
}

test('the page lists exactly the exit statuses of the program', () => {
  assert.deepEqual(statuses(below('Exit statuses of scrip')), STATUS);
});

test('the program ends only with exit statuses of the table', async () => {
  for (const { path, text } of await readCommands())
    for (const [all, status] of text.matchAll(/process\.exit(?:Code = |\()([^);]*)/g))
      assert.match(
        status ?? '',
        /^(|[01]|STATUS\.unknown|urged \? 1 : 0|await report\((error|interruption\())$/,
        `${path}: ${all}`,
      );
});

test('the page lists exactly the codes of failures', async () => {
  const listed = [...below('Exit statuses of scrip').matchAll(/^\| `([a-z-]+)` \| \d+ \|/gm)].map(
    ([, code]) => code,
  );
  const used = new Set<string>();
  const patterns = [
    /new CommandError\([^;]*?,\s*'([a-z-]+)'/g,
    /fail\([^;]*?,\s*'([a-z-]+)'\)/g,
    /\bcode: '([a-z-]+)'/g,
    /message: string, code = '([a-z-]+)'/g,
  ];
  for (const { text } of await readCommands())
    for (const pattern of patterns) for (const [, code = ''] of text.matchAll(pattern)) used.add(code);
  assert.deepEqual([...used].sort(), listed.sort());
});

test('the page lists every command whose result can be exit status 1', async () => {
  const listed = new Set(
    [...below('Exit statuses of scrip').matchAll(/^\| `scrip ([a-z]+)[^`]*` \|/gm)].map(([, name]) => name),
  );
  const derived = OPERATIONS.filter(({ outcome }) => outcome !== undefined);
  const found = (await readCommands()).flatMap(({ path, text }) => {
    if (path === 'src/cli/commands.ts') return derived.map(({ command }) => String(command).split(' ')[0]);
    const ofFile = path.replace('src/cli/', '').replace(/(-[a-z]+)?\.ts$/, '');
    return text
      .split(/^export function register/m)
      .filter((part) => part.includes('process.exitCode = 1'))
      .map((part) => /\bprogram\s*\.command\('([a-z]+)'/.exec(part)?.[1] ?? ofFile);
  });
  assert.deepEqual([...listed].sort(), [...new Set(found)].sort());
});

test('the page lists exactly the exit statuses of the program for merchants', async () => {
  const source = await read('sdk/src/cli/main.ts');
  const own = [...source.matchAll(/^const ([A-Z_]+) = (\d+);/gm)].map(([, name, status]) => [
    name,
    Number(status),
  ]);
  assert.deepEqual(statuses(below('Exit statuses of scrip-client')), Object.fromEntries(own));
});
