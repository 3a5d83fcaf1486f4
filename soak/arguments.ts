import type { Command } from 'commander';
import { numberFrom, wholeFrom } from '../test/support/number-option.ts';

export type Options = {
  readonly minutes: number;
  readonly seed: number;
  /** Whether the standby of a failover is asynchronous, so that commits can be lost. */
  readonly isAsync: boolean;
};

const WEEK_MINUTES = 7 * 24 * 60;

/** Adds the options of every soak to a command. */
export const withOptions = (command: Command): Command =>
  command
    .option('--minutes <number>', 'how long it runs', numberFrom(0.01, WEEK_MINUTES), 1)
    .option('--seed <number>', 'of its random choices (default: a random one)', wholeFrom(0));

/** Reads the options of a command. */
export function readOptions(command: Command): Options {
  const {
    minutes,
    seed,
    async: isAsync,
  } = command.opts<{ minutes: number; seed?: number; async?: boolean }>();
  return { minutes, seed: seed ?? Math.floor(Math.random() * 2 ** 31), isAsync: isAsync ?? false };
}
