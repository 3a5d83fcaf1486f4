import { readdir } from 'node:fs/promises';
import { Command } from 'commander';

const COMMANDS = new URL('../src/cli/', import.meta.url);

/** Every command that does something, by its words, with its options: from the very objects that parse command lines. */
export async function readProgram(): Promise<Map<string, string[]>> {
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
