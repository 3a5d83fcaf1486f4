import { randomUUID } from 'node:crypto';
import type { Context } from '../context.ts';
import { refreshKeyRing } from '../db/key-ring.ts';
import { inPace } from '../merchants/guess-pace.ts';
import { recordGuesses } from '../merchants/guessing.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import type { CodeAndPin, LookUp } from '../secrets.ts';

/**
 * Asks for a voucher by its code, and tells what came of it.
 *
 * An unknown code and a wrong PIN count as guesses of the key before they are told. An opaque merchant is told the same of
 * both, at the same time: they are answered in steps of time from when they came, and by the same work.
 * @throws Refusal whatever `ask` answers with a code
 */
export async function lookUp<Answer extends object>(
  context: Context,
  voucher: CodeAndPin,
  ask: (lookUp: LookUp) => Promise<Answer | RefusalCode>,
): Promise<Answer> {
  const { service, merchant, keyId } = context;
  const steps = merchant.opaque ? new Steps() : undefined;
  try {
    const answer = await inPace(context, async (tell) => {
      const found = await find(context, voucher, ask);
      if (typeof found !== 'string') tell('right');
      if (found !== '14' && found !== '55') return found;
      await recordGuesses(service, [keyId]);
      tell('guess');
      return found;
    });
    if (typeof answer !== 'string') return answer;
    if (answer !== '14' && answer !== '55') throw new Refusal(answer);
    await steps?.next();
    throw new Refusal(merchant.opaque ? '14' : answer);
  } finally {
    steps?.stop();
  }
}

/**
 * Asks under each key that a voucher could be looked up by. Nearly always there is one.
 *
 * While a rotation is under way there are two, and vouchers move from the older to the newer. They are asked in that order,
 * so a voucher that moves in between is met by one of the two. Whether there is another key that this process has not heard of
 * yet is asked after nothing was found: a key is put to use before the first voucher moves to it, so a voucher that has gone
 * from where it was looked for is looked for again. What is not found is told as such only when this was asked.
 *
 * A used reference is told (`94`) before the voucher is looked at, and so also where it is not found under a key: that is not the
 * last word either.
 *
 * Where a wrong PIN must look like an unknown code it is found out by the same work: under each key, with nobody's code once the
 * voucher was met, and with the question for another key.
 */
async function find<Answer extends object>(
  { service, merchant }: Context,
  voucher: CodeAndPin,
  ask: (lookUp: LookUp) => Promise<Answer | RefusalCode>,
): Promise<Answer | RefusalCode> {
  const { db, keys } = service;
  for (;;) {
    const { inUse } = keys;
    let answer: Answer | RefusalCode = '14';
    for (const each of keys.lookUps(voucher)) {
      if (answer === '55') await ask(nobody());
      else answer = await ask(each);
      if (answer !== '14' && answer !== '94' && !(answer === '55' && merchant.opaque)) return answer;
    }
    await refreshKeyRing(db, keys);
    if (keys.inUse === inUse || answer === '55') return answer;
  }
}

/** What no voucher is found by. */
const nobody = (): LookUp => ({ codeKey: randomUUID(), pinKey: randomUUID() });

/**
 * Far longer than it takes to find out either: under load too, nearly all fall into the first step. A customer who mistyped a PIN
 * does not notice it.
 */
const STEP_MS = 50;

/**
 * Steps of time from a moment on. They begin with the request and not with its outcome: a rest that is worked out afterwards is
 * rounded by the timer, and what is lost tells how long the work took.
 */
class Steps {
  #timer: NodeJS.Timeout | undefined;
  #wake: (() => void) | undefined;

  constructor() {
    this.#take();
  }

  /** The end of the step that is under way. */
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
