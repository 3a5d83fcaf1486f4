import type { Argument, Command, Option } from 'commander';
import { createProgram } from '../../src/cli/program.ts';

/** The commands of a noun, in Markdown: the usage of each, and what it does. */
export async function commandsText(noun: string): Promise<string> {
  const program = await createProgram(noun);
  const found = leavesOf(program, ['scrip']).filter(({ words }) => words[1] === noun);
  if (found.length === 0) throw new Error(`there are no commands of ${noun}`);
  return [
    '```text',
    ...found.flatMap(usageOf),
    '```',
    '',
    ...found.map(({ words, command }) => `- \`${words.slice(2).join(' ')}\`: ${command.description()}.`),
  ].join('\n');
}

type Leaf = { readonly words: readonly string[]; readonly command: Command };

function leavesOf(command: Command, words: readonly string[]): Leaf[] {
  if (command.commands.length === 0) return [{ words, command }];
  return command.commands.flatMap((each) => leavesOf(each, [...words, each.name()]));
}

const COLUMNS = 105;

/** The usage of a command. What does not fit on a line goes on the next, below the first option. */
function usageOf({ words, command }: Leaf): string[] {
  const head = [...words, ...command.registeredArguments.map(argumentText)].join(' ');
  const lines = [head];
  for (const option of command.options.filter(({ long }) => long !== '--json')) {
    const text = optionText(option);
    const last = lines.at(-1) ?? '';
    if (last.length + text.length < COLUMNS) lines[lines.length - 1] = `${last} ${text}`;
    else lines.push(`${' '.repeat(words.join(' ').length + 1)}${text}`);
  }
  return lines;
}

const argumentText = (argument: Argument) =>
  argument.required ? argument.name().toUpperCase() : `[${argument.name().toUpperCase()}]`;

function optionText({ long, flags, mandatory, parseArg }: Option): string {
  const [, value] = /<(.+)>/.exec(flags) ?? [];
  const shown = value === undefined || value.includes('|') ? value : value.toUpperCase();
  const text = shown === undefined ? String(long) : `${long} ${shown}`;
  const repeated = parseArg ? '…' : '';
  return mandatory ? text + repeated : `[${text}]${repeated}`;
}
