import type { Context, Service } from '../context.ts';
import { Refusal } from '../refusal.ts';
import { dayOf, isBlocked } from './cache.ts';

/**
 * How many calls that look at a PIN a key has under way at the same time in a process. A key is stopped
 * by what its guesses were counted as, and a thousand that are sent at one moment would all be looked at
 * before the first is counted. So a key begins with a few, each right answer lets it have one more, and a
 * guess takes back what fifty right ones gave. The calls of an honest till wait for some milliseconds,
 * once a day: until the first hundreds have been answered.
 */

/** Without having been right today. */
const FEW = 16;
/** More than a process works on at the same time. */
const MOST = 1_024;
/** What a guess costs: a key may be wrong in two of a hundred. */
const GUESS = 50;
/** Keys that are remembered: beyond it those with nothing under way are forgotten, and begin with a few. */
const MOST_PACES = 10_000;
const DAY_MS = 86_400_000;

class Pace {
  underWay = 0;
  width = FEW;
  day: string;
  readonly waiting: (() => void)[] = [];

  constructor(day: string) {
    this.day = day;
  }
}

const paces = new WeakMap<Service, Map<string, Pace>>();

/** What came of a look at a PIN; `neither` where it was not looked at, or nobody knows. */
type Outcome = 'right' | 'guess' | 'neither';

/**
 * Runs what looks at a PIN, once its key may have another one under way.
 * @param run gets what is to be called with the outcome, once a guess is counted; without it, it is neither
 * @throws Refusal `97` where the key has been stopped while it waited
 */
export async function inPace<Answer>(
  context: Context,
  run: (tell: (outcome: Outcome) => void) => Promise<Answer>,
): Promise<Answer> {
  const { service, keyId, now } = context;
  const pace = paceOf(service, keyId, dayOf(now));
  if (pace.underWay < pace.width) pace.underWay++;
  else await new Promise<void>((resolve) => pace.waiting.push(resolve));
  let left = false;
  const leave = (outcome: Outcome) => {
    if (left) return;
    left = true;
    if (outcome === 'right') pace.width = Math.min(MOST, pace.width + 1);
    if (outcome === 'guess') pace.width = Math.max(FEW, pace.width - GUESS);
    pace.underWay--;
    while (pace.underWay < pace.width && pace.waiting.length > 0) {
      pace.underWay++;
      (pace.waiting.shift() as () => void)();
    }
  };
  try {
    if (isBlocked(service, keyId, dayOf(now))) refuseGuesser(now);
    return await run(leave);
  } finally {
    leave('neither');
  }
}

/** Refuses (`97`) a key that keeps guessing, until the next day. */
export function refuseGuesser(now: Date): never {
  const leftMs = DAY_MS - (now.getTime() % DAY_MS);
  throw new Refusal('97', { retryAfterSeconds: Math.ceil(leftMs / 1000) });
}

function paceOf(service: Service, keyId: string, day: string): Pace {
  let own = paces.get(service);
  if (!own) {
    own = new Map();
    paces.set(service, own);
  }
  let pace = own.get(keyId);
  if (!pace) {
    if (own.size >= MOST_PACES) forgetIdle(own);
    pace = new Pace(day);
    own.set(keyId, pace);
  }
  // A new day, a new count: what was right yesterday does not speak for today's guesses.
  if (pace.day !== day) {
    pace.day = day;
    pace.width = FEW;
  }
  return pace;
}

function forgetIdle(own: Map<string, Pace>): void {
  for (const [keyId, { underWay }] of own) if (underWay === 0) own.delete(keyId);
}
