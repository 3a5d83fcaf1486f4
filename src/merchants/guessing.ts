import type { Service } from '../context.ts';
import { gather } from '../db/gather.ts';
import { plainArray, textArray } from '../db/sql.ts';
import { dayOf, markBlocked } from './key-cache.ts';
import { addCalls, addGuesses, blockGuesser } from './queries.ts';

/**
 * Calls and guesses of each key, by UTC day. A guess is an unknown code or a wrong PIN. A key with more than fifty in a day,
 * and more than two in a hundred of its calls, may not send PINs until the next day or the operator's word.
 *
 * Guesses are counted before they are answered; calls, which only ever speak for a key, a moment later and many at once.
 */

const MOST_GUESSES = 50;
const MOST_SHARE = 0.02;
/** How late a call is counted at most. */
const FLUSH_MS = 250;

type Pending = { day: string; calls: Map<string, number>; timer: NodeJS.Timeout | undefined };

const pendings = new WeakMap<Service, Pending>();

/** Counts a call of a key. Costs no statement: calls are written together, a quarter of a second later. */
export function countCall(service: Service, keyId: string, now: Date): void {
  let pending = pendings.get(service);
  if (!pending) {
    pending = { day: dayOf(now), calls: new Map(), timer: undefined };
    pendings.set(service, pending);
  }
  pending.calls.set(keyId, (pending.calls.get(keyId) ?? 0) + 1);
  if (pending.timer) return;
  pending.day = dayOf(now);
  pending.timer = setTimeout(() => void flushCalls(service), FLUSH_MS).unref();
}

/** Writes the calls counted so far. What cannot be written now is written with the next ones. */
export async function flushCalls(service: Service): Promise<void> {
  const pending = pendings.get(service);
  if (!pending) return;
  clearTimeout(pending.timer);
  pending.timer = undefined;
  if (pending.calls.size === 0) return;
  const { calls, day } = pending;
  pending.calls = new Map();
  try {
    await service.db.query(addCalls(textArray([...calls.keys()]), plainArray([...calls.values()]), day));
  } catch (error) {
    for (const [keyId, count] of calls) pending.calls.set(keyId, (pending.calls.get(keyId) ?? 0) + count);
    service.log.debug({ error: (error as Error).message }, 'calls could not be counted yet');
  }
}

type Guess = { readonly service: Service; readonly keyId: string; readonly now: Date };

const guessGathered = gather<Guess, void>({
  keysOf: () => [],
  async run(db, guesses) {
    const { service, now } = guesses[0] as Guess;
    const day = dayOf(now);
    const rows = await db.query<{ key_id: string; guesses: number; blocked: boolean }>(
      addGuesses(textArray(guesses.map(({ keyId }) => keyId)), day),
    );
    for (const { key_id, guesses: count, blocked } of rows) {
      if (blocked) markBlocked(service, key_id);
      else if (count > MOST_GUESSES) await judge(service, key_id, day, now);
    }
    return guesses.map(() => undefined);
  },
});

/** Blocks the key if it has guessed too much, by what all processes have counted. */
async function judge(service: Service, keyId: string, day: string, now: Date): Promise<void> {
  await flushCalls(service);
  const [blocked] = await service.db.query<{ guesses: number; calls: bigint }>(
    blockGuesser(keyId, day, MOST_GUESSES, MOST_SHARE, now),
  );
  if (!blocked) return;
  markBlocked(service, keyId);
  service.log.warn({ keyId, guesses: blocked.guesses, calls: Number(blocked.calls) }, 'key blocked for today: it keeps guessing');
}

/** Counts guesses of keys, one for each id given; when it is done, a key that guesses too much is blocked. */
export async function recordGuesses(service: Service, keyIds: readonly string[]): Promise<void> {
  const now = service.clock();
  await Promise.all(keyIds.map((keyId) => guessGathered(service.db, { service, keyId, now })));
}
