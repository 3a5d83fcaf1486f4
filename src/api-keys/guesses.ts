import { type Context, inOrder, kept, type Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Operation } from '../db/operation.ts';
import { plainArray, type Sql, sql, textArray } from '../db/sql.ts';
import { Refusal } from '../refusal.ts';
import { DAY_MS } from '../time.ts';
import { dayOf, isBlocked, markBlocked } from './cache.ts';

/**
 * Counts the calls and guesses of each key, by UTC day. A guess is an unknown code or a wrong PIN. If a key
 * has more than fifty guesses in a day and they exceed 2 % of its calls, it may not send PINs until the next
 * day, or until the operator pardons it.
 *
 * Guesses are counted before they are answered. Calls only count in favor of a key, so they are written a
 * moment later, many at once.
 */

const GUESSES_MAX = 50;
const GUESS_SHARE_MAX = 0.02;
/**
 * Guesses within the share are logged each time their number passes a multiple of this. A key can make many,
 * since calls of all kinds permit more guesses.
 */
const WARN_EVERY = 500;
/**
 * The longest delay of a counted call. Each process writes a row for each key that called it. With a shorter
 * delay, a hundred processes would write more of these rows than redemptions.
 */
const FLUSH_MS = 30_000;

type Calls = {
  /** The calls that are not written yet, by day and key. */
  days: Map<string, Map<string, number>>;
  timer: NodeJS.Timeout | undefined;
};

const callsOf = kept((): Calls => ({ days: new Map(), timer: undefined }));

/**
 * Counts a call of a key without a statement: calls are written together, up to half a minute later.
 * @param speaksFor whether the call permits more guesses; otherwise it only sets the last use of the
 *   key
 */
export function countCall(service: Service, keyId: string, now: Date, speaksFor: boolean): void {
  const calls = callsOf(service);
  add(calls.days, dayOf(now), keyId, speaksFor ? 1 : 0);
  // The timer does not keep the process alive: closing the service flushes.
  calls.timer ??= setTimeout(() => void flushCalls(service), FLUSH_MS).unref();
}

/**
 * Writes the calls counted so far, including those of a flush in progress. If they cannot be written now,
 * they are written with later ones; they only count in favor of a key.
 */
export const flushCalls = inOrder(async (service) => {
  const calls = callsOf(service);
  clearTimeout(calls.timer);
  calls.timer = undefined;
  const due = calls.days;
  calls.days = new Map();
  for (const [day, keys] of due) {
    try {
      const statement = sql`
insert into api_key_days as d (key_id, day, calls, last_call_at)
select n.key_id, ${day}::date, n.calls, ${service.clock()}::timestamptz
from unnest(${textArray([...keys.keys()])}::text[], ${plainArray([...keys.values()])}::bigint[])
  as n (key_id, calls)
order by n.key_id
on conflict (key_id, day) do update set
  calls = d.calls + excluded.calls, last_call_at = greatest(d.last_call_at, excluded.last_call_at)`;
      await retrying(() => service.db.query(statement));
    } catch (error) {
      for (const [keyId, count] of keys) add(calls.days, day, keyId, count);
      service.log.debug({ error: (error as Error).message }, 'calls could not be counted yet');
    }
  }
});

function add(days: Calls['days'], day: string, keyId: string, count: number): void {
  const keys = days.get(day) ?? new Map<string, number>();
  days.set(day, keys);
  keys.set(keyId, (keys.get(keyId) ?? 0) + count);
}

type Guess = { readonly service: Service; readonly keyId: string; readonly now: Date };

type GuessRow = { readonly keyId: string; readonly guesses: number; readonly blocked: boolean };

const guesses: Operation<Guess, void, void> = {
  keysOf: () => [],
  async run(db, requests) {
    const { service, now } = requests[0] as Guess;
    const day = dayOf(now);
    const rows = await db.query<GuessRow>(sql`
insert into api_key_days as d (key_id, day, guesses)
select n.key_id, ${day}::date, count(*)
from unnest(${textArray(requests.map(({ keyId }) => keyId))}::text[]) as n (key_id)
group by n.key_id order by n.key_id
on conflict (key_id, day) do update set guesses = d.guesses + excluded.guesses
returning key_id as "keyId", guesses - pardoned_guesses as guesses, blocked_at is not null as blocked`);
    for (const { keyId, guesses: count, blocked } of rows) {
      if (blocked) markBlocked(service, keyId, day);
      else if (count > GUESSES_MAX && !(await judge(service, keyId, day, now))) {
        const before = count - requests.filter((request) => request.keyId === keyId).length;
        if (Math.floor(count / WARN_EVERY) > Math.floor(before / WARN_EVERY))
          service.log.warn({ keyId, guesses: count }, 'key guesses much, though little for its calls');
      }
    }
    return requests.map(() => undefined);
  },
  answer: () => undefined,
};

/**
 * Blocks a key with too many guesses: more than `most` in the day, and more than `share` of its calls. A key
 * that another process has just blocked is returned too.
 */
export function blockGuesser(keyId: string, day: string, most: number, share: number, now: Date): Sql {
  return sql`
with blocked as (
  update api_key_days set blocked_at = coalesce(blocked_at, ${now})
  where key_id = ${keyId} and day = ${day}::date
    and guesses - pardoned_guesses > ${most} and guesses - pardoned_guesses > calls * ${share}::float8
  returning guesses, calls, blocked_at = ${now}::timestamptz as first
), changed as (
  update api_keys set changed_by = pg_current_xact_id() where id = ${keyId} and exists (select from blocked)
)
select * from blocked`;
}

/**
 * Blocks the key if it has guessed too often, by the count of all processes.
 * @returns whether it is blocked
 */
async function judge(service: Service, keyId: string, day: string, now: Date): Promise<boolean> {
  await flushCalls(service);
  const [blocked] = await service.db.query<{ guesses: number; calls: bigint; first: boolean }>(
    blockGuesser(keyId, day, GUESSES_MAX, GUESS_SHARE_MAX, now),
  );
  if (!blocked) return false;
  markBlocked(service, keyId, day);
  const fields = { keyId, guesses: blocked.guesses, calls: Number(blocked.calls) };
  if (blocked.first) service.log.warn(fields, 'key blocked for today: it keeps guessing');
  return true;
}

/** Whether a key outside the cache of API keys, such as that of a portal, has guessed too often today. */
export async function isBlockedToday({ service, keyId, now }: Context): Promise<boolean> {
  const [row] = await service.db.query<{ blocked: boolean }>(sql`
select blocked_at is not null as blocked from api_key_days
where key_id = ${keyId} and day = ${dayOf(now)}::date`);
  return row?.blocked ?? false;
}

/**
 * Counts guesses of keys, one for each given id. Afterwards they count for all processes, and a key with too
 * many guesses is blocked: in this process at once, in the others within a second.
 */
export async function recordGuesses(service: Service, keyIds: readonly string[]): Promise<void> {
  const now = service.clock();
  await Promise.all(keyIds.map((keyId) => service.batcher.add(guesses, 0, { service, keyId, now })));
}

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

type Limiter = { underWay: number; width: number; day: string; readonly waiting: (() => void)[] };

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
    if (own.size >= LIMITERS_MAX)
      for (const [idle, { underWay }] of own) if (underWay === 0) own.delete(idle);
    limiter = { underWay: 0, width: CONCURRENT_MIN, day, waiting: [] };
    own.set(keyId, limiter);
  }
  // A new day starts a new count: yesterday's right answers do not permit guesses today.
  if (limiter.day !== day) {
    limiter.day = day;
    limiter.width = CONCURRENT_MIN;
  }
  return limiter;
}
