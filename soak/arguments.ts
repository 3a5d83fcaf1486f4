import { parseArgs } from 'node:util';

export type Wanted = { readonly what: string; readonly minutes: number; readonly seed: number };

const MOST_MINUTES = 7 * 24 * 60;

/**
 * What `npm run soak -- WHAT --minutes M --seed S` asks for: faults for one minute, with a seed of the day's making, unless
 * it says otherwise.
 */
export function readArguments(args: string[]): Wanted {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { minutes: { type: 'string', default: '1' }, seed: { type: 'string' } },
  });
  const minutes = Number(values.minutes);
  if (!(minutes > 0 && minutes <= MOST_MINUTES)) throw new Error(`--minutes must be above 0, at most ${MOST_MINUTES}`);
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  if (!Number.isInteger(seed)) throw new Error('--seed must be a whole number');
  return { what: positionals[0] ?? 'faults', minutes, seed };
}
