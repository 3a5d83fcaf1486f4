import { hostname, userInfo } from 'node:os';
import type { Command } from 'commander';
import type { Actor } from '../context.ts';
import { wrongUsage } from './output.ts';
import { parseText } from './parse.ts';

/** The actor as the command line names it. */
let given: { by?: string; reason?: string; breakGlass?: boolean } = {};

const NAME_MAX = 100;
const REASON_MAX = 500;

/** Lets every command take the name of its actor and a reason, for the audit. */
export function takeActor(program: Command): void {
  given = {};
  program
    .option('--by <name>', 'your name, for the audit (default: the name of the system account)')
    .option('--reason <text>', 'the reason for the change, for the audit')
    .option(
      '--break-glass',
      'do alone what another person would have to approve; needs --reason, and is marked in the audit',
    )
    .hook('preAction', (command) => {
      const { by, reason, breakGlass } = command.opts<typeof given>();
      if (by !== undefined) given.by = parseText(by, '--by', NAME_MAX);
      if (reason !== undefined) given.reason = parseText(reason, '--reason', REASON_MAX);
      if (breakGlass && reason === undefined) wrongUsage('--break-glass needs --reason');
      if (breakGlass) given.breakGlass = true;
    });
}

/** The actor of the changes that this process makes. */
export function actor(): Actor {
  const account = accountName();
  const origin = `command line of ${account} at ${hostname()}`;
  return {
    kind: given.breakGlass ? 'break-glass' : 'command-line',
    id: null,
    name: given.by ?? account,
    origin,
    requestId: null,
    reason: given.reason ?? null,
  };
}

/** An account that the system knows by number only has no name. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return `account ${process.getuid?.() ?? 'unknown'}`;
  }
}
