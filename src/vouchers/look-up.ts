import type { Context } from '../context.ts';
import { refreshKeyRing } from '../db/key-ring.ts';
import type { RefusalCode } from '../refusal.ts';
import type { CodeAndPin, LookUp } from '../secrets.ts';

/**
 * Asks for a voucher by its code, under each key that it could be looked up by. Nearly always there is one.
 *
 * While a rotation is under way there are two, and vouchers move from the older to the newer. They are asked in that order,
 * so a voucher that moves in between is met by one of the two. Whether there is another key that this process has not heard of
 * yet is asked after nothing was found: a key is put to use before the first voucher moves to it, so a voucher that has gone
 * from where it was looked for is looked for again. What is not found is told as such only when this was asked.
 *
 * A used reference is told (`94`) before the voucher is looked at, and so also where it is not found under a key: that is not the
 * last word either.
 */
export async function lookUp<Answer>(
  { service }: Context,
  voucher: CodeAndPin,
  ask: (lookUp: LookUp) => Promise<Answer | RefusalCode>,
): Promise<Answer | RefusalCode> {
  const { db, keys } = service;
  for (;;) {
    const { inUse } = keys;
    let answer: Answer | RefusalCode = '14';
    for (const each of keys.lookUps(voucher)) {
      answer = await ask(each);
      if (answer !== '14' && answer !== '94') break;
    }
    // A wrong PIN is found out by the same work as an unknown code: the time must not tell them apart.
    if (answer !== '14' && answer !== '94' && answer !== '55') return answer;
    await refreshKeyRing(db, keys);
    if (keys.inUse === inUse || answer === '55') return answer;
  }
}
