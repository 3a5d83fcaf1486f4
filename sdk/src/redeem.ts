import { ScripError } from './errors.ts';
import type { Balance, CallOptions, EffectOptions, Receipt, RedeemInput, Transaction } from './types.ts';

/** Redemptions of several steps. */

/** A redemption, as the caller gets it. */
export type Payment = Transaction & Receipt;

export type RedeemOptions = EffectOptions<Payment> & {
  /** Whether the result has the balance afterwards. */
  readonly withBalance?: boolean | undefined;
};

/** The options that calls without an effect take. */
export function callOptions({ signal, deadlineMs, attemptTimeoutMs }: CallOptions): CallOptions {
  return { signal, deadlineMs, attemptTimeoutMs };
}

/** The steps of one payment, under one reference. */
type Steps = {
  balance(): Promise<Balance>;
  redeem(amount: number): Promise<Payment>;
  /** The transaction under the reference; null if there is none. */
  find(): Promise<Transaction | null>;
};

/**
 * Redeems what is left on a voucher, at most an amount. If another till takes from it meanwhile, it tries
 * once more.
 */
export async function redeemUpTo(
  { amount, reference }: RedeemInput & { readonly reference: string },
  steps: Steps,
): Promise<Payment> {
  for (let isLast = false; ; isLast = true) {
    const { serialNumber, usableAmount } = await steps.balance();
    // If nothing can be taken, the refusal of the whole amount says why.
    const taken = usableAmount > 0 ? Math.min(amount, usableAmount) : amount;
    try {
      return await steps.redeem(taken);
    } catch (error) {
      if (!(error instanceof ScripError)) throw error;
      if (error.code === 'insufficientBalance' && !isLast) continue;
      if (error.code !== 'referenceAlreadyUsed') throw error;
      // An earlier call under the reference has taken another amount: what was left then.
      const found = await steps.find();
      const isOurs =
        found?.transactionType === 'REDEMPTION' &&
        found.serialNumber === String(serialNumber) &&
        found.amount <= amount;
      if (!isOurs) throw error;
      return { ...found, reference, replayed: true, requestId: null };
    }
  }
}

/** No currency has more decimals. */
const DECIMALS_MAX = 4;

function unitsOf(amount: number): bigint {
  const [whole = '', fraction = ''] = String(amount).split('.');
  return BigInt(whole + fraction.padEnd(DECIMALS_MAX, '0'));
}

/** Subtracts one amount from another without a rounding error. */
export function difference(amount: number, taken: number): number {
  const text = String(unitsOf(amount) - unitsOf(taken)).padStart(DECIMALS_MAX + 1, '0');
  return Number(`${text.slice(0, -DECIMALS_MAX)}.${text.slice(-DECIMALS_MAX)}`);
}
