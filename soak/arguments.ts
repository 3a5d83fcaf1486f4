import { parseArgs } from 'node:util';

export type Wanted = {
  readonly what: string;
  readonly minutes: number;
  readonly seed: number;
  /** Of a failover: whether the standby is asynchronous, so that there is something to lose. */
  readonly isAsync: boolean;
};

const MOST_MINUTES = 7 * 24 * 60;

/**
 * What `npm run soak -- WHAT --minutes M --seed S [--async]` asks for: faults for one minute, with a seed
 * of the day's making, unless it says otherwise.
 */
export function readArguments(args: string[]): Wanted {
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
  return { what: positionals[0] ?? 'faults', minutes, seed, isAsync: values.async };
}
