import type { Context } from '../context.ts';
import { recordGuesses } from '../merchants/guessing.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';

/**
 * Refuses a call that named a voucher by its code. An unknown code and a wrong PIN count as guesses of the key before
 * they are told; an opaque merchant is told the same of both.
 */
export async function refuseVoucher(context: Context, code: RefusalCode): Promise<never> {
  if (code !== '14' && code !== '55') throw new Refusal(code);
  await recordGuesses(context.service, [context.keyId]);
  throw new Refusal(context.merchant.opaque ? '14' : code);
}
