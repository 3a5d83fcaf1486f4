import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import type { Actor } from '../context.ts';
import { fail } from './output.ts';

/** Who types, as the command line says it; a process runs one command. */
const said: { by?: string; reason?: string } = {};

/** Far longer than any name, or any reason that somebody reads. */
const LONGEST_NAME = 100;
const LONGEST_REASON = 500;

/** Lets every command be told who runs it and why: for the audit. */
export function takeActor(program: Command): void {
  program
    .option('--by <name>', 'who makes the change, for the audit (default: the name of the system account)')
    .option('--reason <text>', 'why, for the audit')
    .configureHelp({ showGlobalOptions: true })
    .hook('preAction', (command) => {
      const { by, reason } = command.opts<typeof said>();
      if (by !== undefined) said.by = readLine(by, '--by', LONGEST_NAME);
      if (reason !== undefined) said.reason = readLine(reason, '--reason', LONGEST_REASON);
    });
}

/** Who makes the changes of this process. */
export function actor(): Actor {
  return { name: said.by ?? accountName(), origin: `command line at ${hostname()}`, reason: said.reason ?? null };
}

function readLine(text: string, option: string, longest: number): string {
  const line = text.trim();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
  if (line === '' || line.length > longest || /[\u0000-\u001f\u007f]/.test(line))
    fail(`${option} takes one line of 1 to ${longest} characters`);
  return line;
}

/** An account that the system knows by number only has no name. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `account ${process.getuid?.() ?? 'unknown'}`;
  }
}
