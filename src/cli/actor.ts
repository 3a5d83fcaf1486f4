import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import type { Actor } from '../context.ts';
import { fail } from './output.ts';

/** Who types, as the command line says it; a process runs one command. */
const said: { by?: string; reason?: string } = {};

/** Far longer than any name, or any reason that somebody reads. */
const LONGEST_NAME = 100;
const LONGEST_REASON = 500;

/**
 * Control characters (a terminal obeys those above 7F too), what turns the direction of the text around or cannot be seen, and
 * separators of lines: an entry could look like another one. The joiners are letters' own in some languages.
 */
const UNREADABLE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u;

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
  const account = accountName();
  const origin = `command line of ${account} at ${hostname()}`;
  return { name: said.by ?? account, origin, reason: said.reason ?? null };
}

function readLine(text: string, option: string, longest: number): string {
  const line = text.trim();
  if (line === '' || line.length > longest || UNREADABLE.test(line))
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
