import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { Command } from 'commander';

const COMMANDS = new URL('../src/cli/', import.meta.url);
const PAGE = new URL('../docs/reference/commands.md', import.meta.url);

/** Every command that does something, by its words, with its options: from the very objects that parse command lines. */
async function readProgram(): Promise<Map<string, string[]>> {
  const program = new Command('scrip');
  for (const name of await readdir(COMMANDS)) {
    const file = (await import(new URL(name, COMMANDS).href)) as Record<string, (program: Command) => void>;
    for (const [name, register] of Object.entries(file)) if (name.startsWith('register')) register(program);
  }
  const found = new Map<string, string[]>();
  const visit = (command: Command, words: string[]) => {
    if (command.commands.length === 0)
      found.set(
        words.join(' '),
        command.options.map(({ long }) => long ?? ''),
      );
    for (const each of command.commands) visit(each, [...words, each.name()]);
  };
  visit(program, []);
  return found;
}

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
