import { parseArgs } from 'node:util';

export type Options = {
  readonly name: string;
  readonly minutes: number;
  readonly seed: number;
  /** Whether the standby of a failover is asynchronous, so that commits can be lost. */
  readonly isAsync: boolean;
};

const MOST_MINUTES = 7 * 24 * 60;

/**
 * Parses `npm run soak -- NAME --minutes M --seed S [--async]`. The default is faults for one minute with a
 * random seed.
 */
export function readArguments(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      minutes: { type: 'string', default: '1' },
      seed: { type: 'string' },
      async: { type: 'boolean', default: false },
    },
  });
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= MOST_MINUTES))
    throw new Error(`--minutes must be above 0, at most ${MOST_MINUTES}`);
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  if (!Number.isInteger(seed)) throw new Error('--seed must be a whole number');
  return { name: positionals[0] ?? 'faults', minutes, seed, isAsync: values.async };
}
