import { readdir } from 'node:fs/promises';
import { Command } from 'commander';
import { prepare } from '../src/cli/usage.ts';

const COMMANDS = new URL('../src/cli/', import.meta.url);

/** Every command without subcommands, by its full name: from the objects that parse command lines. */
export async function readCommands(): Promise<Map<string, Command>> {
  const program = new Command('scrip');
  for (const name of await readdir(COMMANDS)) {
    const file = (await import(new URL(name, COMMANDS).href)) as Record<string, (program: Command) => void>;
    for (const [name, register] of Object.entries(file)) if (name.startsWith('register')) register(program);
  }
  prepare(program);
  const found = new Map<string, Command>();
  const visit = (command: Command, words: string[]) => {
    if (command.commands.length === 0) found.set(words.join(' '), command);
    for (const each of command.commands) visit(each, [...words, each.name()]);
  };
  visit(program, []);
  return found;
}

/** The long options of every command. */
export async function readProgram(): Promise<Map<string, string[]>> {
  const commands = [...(await readCommands())];
  return new Map(commands.map(([name, { options }]) => [name, options.map(({ long }) => long ?? '')]));
}
