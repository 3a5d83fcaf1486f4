import type { Command } from 'commander';
import { createProgram } from '../src/cli/program.ts';

/** Every command without subcommands, by its full name: from the objects that parse command lines. */
export async function readCommands(): Promise<Map<string, Command>> {
  const program = await createProgram();
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
