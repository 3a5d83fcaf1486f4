import { type Context, kept, type Service } from '../context.ts';
import { Refusal } from '../refusal.ts';
import { DAY_MS } from '../time.ts';
import { dayOf, isBlocked } from './cache.ts';

/**
 * A concurrency limit for calls with a PIN, for each key in each process. A key is blocked by its counted
 * guesses, but a thousand simultaneous guesses would all be compared before the first is counted. So a key
 * begins with a few concurrent calls. Each right answer adds one, and each guess takes away fifty. The calls
 * of an honest till wait for some milliseconds until the first hundreds of a day are answered.
 */

/** The limit at the beginning of a day. */
const CONCURRENT_MIN = 16;
/** The highest limit, above the concurrent calls of a process. */
const CONCURRENT_MAX = 1_024;
/** The price of a guess: a key may be wrong in two of a hundred calls. */
const GUESS = 50;
/** The number of remembered keys. Above it, idle ones are removed and begin again. */
const LIMITERS_MAX = 10_000;

class Limiter {
  underWay = 0;
  width = CONCURRENT_MIN;
  day: string;
  readonly waiting: (() => void)[] = [];

  constructor(day: string) {
    this.day = day;
  }
}

const limitersOf = kept(() => new Map<string, Limiter>());

/** The outcome of comparing a PIN; `neither` if it was not compared, or the outcome is unknown. */
type Outcome = 'right' | 'guess' | 'neither';

/**
 * Runs a call with a PIN once its key may have another one in flight.
 * @param run receives a function to call with the outcome, after a guess is counted; if it is not called, the
 *   outcome is `neither`
 * @throws Refusal `97` if the key was blocked while it waited
 */
export async function inPace<Answer>(
  context: Context,
  run: (report: (outcome: Outcome) => void) => Promise<Answer>,
): Promise<Answer> {
  const { service, keyId, now } = context;
  const limiter = limiterOf(service, keyId, dayOf(now));
  if (limiter.underWay < limiter.width) limiter.underWay++;
  else await new Promise<void>((resolve) => limiter.waiting.push(resolve));
  let left = false;
  const leave = (outcome: Outcome) => {
    if (left) return;
    left = true;
    if (outcome === 'right') limiter.width = Math.min(CONCURRENT_MAX, limiter.width + 1);
    if (outcome === 'guess') limiter.width = Math.max(CONCURRENT_MIN, limiter.width - GUESS);
    limiter.underWay--;
    while (limiter.underWay < limiter.width && limiter.waiting.length > 0) {
      limiter.underWay++;
      (limiter.waiting.shift() as () => void)();
    }
  };
  try {
    if (isBlocked(service, keyId, dayOf(now))) refuseGuesser(now);
    return await run(leave);
  } finally {
    leave('neither');
  }
}

/** Refuses (`97`) a key that is blocked for guessing, until the next day. */
export function refuseGuesser(now: Date): never {
  const leftMs = DAY_MS - (now.getTime() % DAY_MS);
  throw new Refusal('97', { retryAfterSeconds: Math.ceil(leftMs / 1000) });
}

function limiterOf(service: Service, keyId: string, day: string): Limiter {
  const own = limitersOf(service);
  let limiter = own.get(keyId);
  if (!limiter) {
    if (own.size >= LIMITERS_MAX) forgetIdle(own);
    limiter = new Limiter(day);
    own.set(keyId, limiter);
  }
  // A new day starts a new count: yesterday's right answers do not permit guesses today.
  if (limiter.day !== day) {
    limiter.day = day;
    limiter.width = CONCURRENT_MIN;
  }
  return limiter;
}

function forgetIdle(own: Map<string, Limiter>): void {
  for (const [keyId, { underWay }] of own) if (underWay === 0) own.delete(keyId);
}
