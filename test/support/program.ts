import type { Command } from 'commander';
import { createProgram } from '../../src/cli/program.ts';

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

/** Parses a command line as a shell splits it, without running the command. */
export async function parseLine(line: string): Promise<void> {
  const words = [...line.matchAll(/(?:'(?:[^']|'\\'')*'|"[^"]*"|[^\s'"])+/g)].map(([word]) =>
    word.replaceAll("'\\''", '\0').replaceAll(/['"]/g, '').replaceAll('\0', "'"),
  );
  const program = await createProgram(words[1]);
  const silence = (command: Command): void => {
    command.configureOutput({ writeErr: () => {} }).exitOverride();
    if (command.commands.length === 0) command.action(() => {});
    command.commands.forEach(silence);
  };
  silence(program);
  await program.parseAsync(words.slice(1), { from: 'user' });
}
