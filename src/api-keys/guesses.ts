import type { Context, Service } from '../context.ts';
import type { Operation } from '../db/batcher.ts';
import { retrying } from '../db/errors.ts';
import { plainArray, textArray } from '../db/sql.ts';
import { addCalls, addGuesses, blockGuesser, findBlock } from '../merchants/queries.ts';
import { dayOf, markBlocked } from './cache.ts';

/**
 * Calls and guesses of each key, by UTC day. A guess is an unknown code or a wrong PIN. A key with more
 * than fifty in a day, and more than two in a hundred of its calls, may not send PINs until the next day
 * or the operator's word.
 *
 * Guesses are counted before they are answered; calls, which only ever speak for a key, a moment later
 * and many at once.
 */

const MOST_GUESSES = 50;
const MOST_SHARE = 0.02;
/**
 * Whenever so many more guesses of a key are within its share, the operator is told: who makes calls of
 * all kinds earns guesses.
 */
const MANY = 500;
/** How late a call is counted at most. Each process writes a row for each key that called it: seldom, or a hundred processes write more of these rows
 * than redemptions. */
const FLUSH_MS = 30_000;

type Calls = {
  /** By day and key: the calls that are not written yet. */
  days: Map<string, Map<string, number>>;
  timer: NodeJS.Timeout | undefined;
  /** The flush under way, if any. */
  flushing: Promise<void>;
};

const counters = new WeakMap<Service, Calls>();

/**
 * Counts a call of a key. Costs no statement: calls are written together, up to half a minute later.
 * @param speaksFor whether it is one of those of which so many may be guesses; else it is only the key's
 *   last use
 */
export function countCall(service: Service, keyId: string, now: Date, speaksFor: boolean): void {
  const calls = callsOf(service);
  add(calls.days, dayOf(now), keyId, speaksFor ? 1 : 0);
  // The timer keeps no process alive: whoever closes the service flushes.
  calls.timer ??= setTimeout(() => void flushCalls(service), FLUSH_MS).unref();
}

/**
 * Writes the calls counted so far; when it is done, those of an earlier flush are written too. What
 * cannot be written now is written with the next ones: calls only ever speak for a key.
 */
export function flushCalls(service: Service): Promise<void> {
  const calls = callsOf(service);
  clearTimeout(calls.timer);
  calls.timer = undefined;
  const due = calls.days;
  calls.days = new Map();
  const earlier = calls.flushing;
  calls.flushing = (async () => {
    await earlier;
    for (const [day, keys] of due) {
      try {
        await retrying(() =>
          service.db.query(
            addCalls(textArray([...keys.keys()]), plainArray([...keys.values()]), day, service.clock()),
          ),
        );
      } catch (error) {
        for (const [keyId, count] of keys) add(calls.days, day, keyId, count);
        service.log.debug({ error: (error as Error).message }, 'calls could not be counted yet');
      }
    }
  })();
  return calls.flushing;
}

function callsOf(service: Service): Calls {
  let calls = counters.get(service);
  if (!calls) {
    calls = { days: new Map(), timer: undefined, flushing: Promise.resolve() };
    counters.set(service, calls);
  }
  return calls;
}

function add(days: Calls['days'], day: string, keyId: string, count: number): void {
  let keys = days.get(day);
  if (!keys) {
    keys = new Map();
    days.set(day, keys);
  }
  keys.set(keyId, (keys.get(keyId) ?? 0) + count);
}

type Guess = { readonly service: Service; readonly keyId: string; readonly now: Date };

type GuessRow = { readonly key_id: string; readonly guesses: number; readonly blocked: boolean };

const guesses: Operation<Guess, void, void> = {
  keysOf: () => [],
  async run(db, requests) {
    const { service, now } = requests[0] as Guess;
    const day = dayOf(now);
    const rows = await db.query<GuessRow>(addGuesses(textArray(requests.map(({ keyId }) => keyId)), day));
    for (const { key_id, guesses: count, blocked } of rows) {
      if (blocked) markBlocked(service, key_id, day);
      else if (count > MOST_GUESSES && !(await judge(service, key_id, day, now))) {
        const before = count - requests.filter(({ keyId }) => keyId === key_id).length;
        if (Math.floor(count / MANY) > Math.floor(before / MANY))
          service.log.warn(
            { keyId: key_id, guesses: count },
            'key guesses much, though little for its calls',
          );
      }
    }
    return requests.map(() => undefined);
  },
  answer: () => undefined,
};

/** Blocks the key if it has guessed too much, by what all processes have counted; tells whether it has. */
async function judge(service: Service, keyId: string, day: string, now: Date): Promise<boolean> {
  await flushCalls(service);
  const [blocked] = await service.db.query<{ guesses: number; calls: bigint; first: boolean }>(
    blockGuesser(keyId, day, MOST_GUESSES, MOST_SHARE, now),
  );
  if (!blocked) return false;
  markBlocked(service, keyId, day);
  const fields = { keyId, guesses: blocked.guesses, calls: Number(blocked.calls) };
  if (blocked.first) service.log.warn(fields, 'key blocked for today: it keeps guessing');
  return true;
}

/** Whether a key that is not in the cache of API keys, such as that of a portal, has guessed too much today. */
export async function isBlockedToday({ service, keyId, now }: Context): Promise<boolean> {
  const [row] = await service.db.query<{ blocked: boolean }>(findBlock(keyId, dayOf(now)));
  return row?.blocked ?? false;
}

/**
 * Counts guesses of keys, one for each id given. When it is done they are counted for all processes, and
 * a key that guesses too much is blocked: in this process at once, in the others within a second.
 */
export async function recordGuesses(service: Service, keyIds: readonly string[]): Promise<void> {
  const now = service.clock();
  await Promise.all(keyIds.map((keyId) => service.batcher.add(guesses, 0, { service, keyId, now })));
}
