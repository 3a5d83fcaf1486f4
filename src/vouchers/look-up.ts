import { randomUUID } from 'node:crypto';
import { inPace, recordGuesses } from '../api-keys/guesses.ts';
import type { Context } from '../context.ts';
import type { CodeAndPin, LookUp } from '../keyring/ring.ts';
import { REFRESH_KEY_RING } from '../keyring/store.ts';
import { codeOf, type Decline, Refusal, refusalOf } from '../refusal.ts';
import { type Asked, recordDecline } from './declines.ts';

/** A look-up, and the bucket of the voucher. */
type LookUpIn = LookUp & { readonly bucket: number };

/**
 * Finds a voucher by its code.
 *
 * An unknown code and a wrong PIN count as guesses of the API key before they are answered. An opaque
 * merchant gets the same answer for both, and for a locked PIN, after the same time and at the same cost:
 * answers are sent at the end of a fixed step, counted from the start of the request.
 * @throws Refusal with the code that `ask` returns
 */
export async function lookUp<Answer extends object>(
  context: Context,
  voucher: CodeAndPin,
  ask: (lookUp: LookUpIn) => Promise<Answer | Decline>,
  asked?: Asked,
): Promise<Answer> {
  const { service, merchant, keyId } = context;
  const steps = merchant.opaque ? new Steps() : undefined;
  try {
    const answer = await inPace(context, async (report) => {
      const found = await find(context, voucher, ask);
      if (typeof found !== 'string') report('right');
      if (!isGuess(found, merchant.opaque)) return found;
      await recordGuesses(service, [keyId]);
      report('guess');
      return found;
    });
    if (typeof answer !== 'string') return answer;
    if (asked) recordDecline(context, asked, codeOf(answer), voucher);
    if (!isHidden(answer)) throw refusalOf(answer);
    await steps?.next();
    throw merchant.opaque ? new Refusal('14') : refusalOf(answer);
  } finally {
    steps?.stop();
  }
}

/** Whether an opaque merchant must not learn this answer. */
function isHidden(answer: unknown): boolean {
  return answer === '14' || answer === '55' || answer === '75';
}

/**
 * Whether an answer counts against a key. For an opaque merchant, a locked PIN counts too. Otherwise the
 * block of the key would show whether a code exists.
 */
const isGuess = (answer: unknown, isOpaque: boolean): boolean =>
  isHidden(answer) && (isOpaque || answer !== '75');

/**
 * Looks a voucher up under each key that can find it; usually there is one.
 *
 * During a rotation there are two, and vouchers move from the older to the newer. The older one is used
 * first, so a voucher that moves in between is found under one of them. If neither finds it, the database is
 * asked for a newer key that this process does not know yet. A key is in use before the first voucher moves
 * to it, so a voucher that has moved is then found. "Not found" is returned only after that.
 *
 * A used reference (`94`) is found before the voucher, so also under a key that does not find the voucher.
 * This outcome is not final either.
 *
 * For an opaque merchant, a wrong or locked PIN takes the same work as an unknown code: the remaining keys
 * look up a code that does not exist, and the database is asked for a newer key.
 */
async function find<Answer extends object>(
  { service, merchant }: Context,
  voucher: CodeAndPin,
  ask: (lookUp: LookUpIn) => Promise<Answer | Decline>,
): Promise<Answer | Decline> {
  const { batcher, keys, buckets } = service;
  const bucket = buckets.ofSlot(keys.slotOf(voucher.code));
  const isMet = (answer: Answer | Decline) => merchant.opaque && (answer === '55' || answer === '75');
  for (;;) {
    const { inUse } = keys;
    let answer: Answer | Decline = '14';
    for (const each of keys.lookUps(voucher)) {
      if (isMet(answer)) await ask({ ...nobody(), bucket });
      else answer = await ask({ ...each, bucket });
      if (answer !== '14' && answer !== '94' && !isMet(answer)) return answer;
    }
    await batcher.add(REFRESH_KEY_RING, 0, keys);
    if (keys.inUse === inUse || isMet(answer)) return answer;
  }
}

/** Returns keys under which no voucher is found. */
const nobody = (): LookUp => ({ codeKey: randomUUID(), pinKey: randomUUID() });

/**
 * The length of a step, much longer than the work takes, even under load. A customer with a mistyped PIN does
 * not notice it.
 */
const STEP_MS = 50;

/**
 * Steps of time from the start of a request. A wait computed after the work would be rounded by the timer,
 * and the remainder would reveal how long the work took.
 */
class Steps {
  #timer: NodeJS.Timeout | undefined;
  #wake: (() => void) | undefined;

  constructor() {
    this.#take();
  }

  /** Resolves at the end of the current step. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #take(): void {
    this.#timer = setTimeout(() => {
      if (this.#wake) this.#wake();
      else this.#take();
    }, STEP_MS);
  }
}
