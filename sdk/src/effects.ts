import { type Answer, mismatch } from './answer.ts';
import type { EffectiveCall } from './caller.ts';
import type { ScripError } from './errors.ts';
import type { About } from './failure.ts';
import { readBatchHead, readTransaction, readUpdate, readVouchers } from './read.ts';
import type { Batch, RedemptionUpdate, Told, Transaction } from './types.ts';

/** What the answers of the calls that have an effect are read as, and what proves that they had none. */

type Tell = EffectiveCall<unknown>['tells'];

/**
 * Refusals of a request with a reference that are told only after it was looked for: had an earlier copy had its effect,
 * that would have been told instead. The others (of the key, the permission, the product, a locked PIN) come before, and say
 * nothing about earlier copies.
 */
const AFTER_REPLAY: ReadonlySet<string> = new Set('94 14 55 44 43 54 40 41 47 42 51 50'.split(' '));

export const tellsOfRequest: Tell = ({ statusCode }) => AFTER_REPLAY.has(statusCode ?? '');

/** The same for an update, of which `58` is what a replay gets. */
export const tellsOfUpdate: Tell = ({ statusCode, update }) =>
  statusCode === '60' || statusCode === '51' || (statusCode === '58' && update !== null);

function told({ replayed, requestId }: Answer, reference: string): Told {
  return { reference, replayed, requestId };
}

export function takeBatch(about: About, answer: Answer, reference: string): Batch & Told {
  const batch = readBatchHead(answer.data);
  if (batch.reference !== reference) throw mismatch(about, 'it is of another reference', answer.requestId);
  const rest = told(answer, reference);
  return batch.status === 'COMPLETED'
    ? { ...batch, ...rest, status: batch.status, vouchers: readVouchers(answer.data) }
    : { ...batch, ...rest, status: batch.status };
}

type Expected = {
  readonly type: 'ACTIVATION' | 'REDEMPTION';
  readonly reference: string;
  readonly amount: number | undefined;
};

/** A transaction that somebody else asked for must not pass for this call's. */
export function takeTransaction(about: About, answer: Answer, expected: Expected): Transaction & Told {
  const transaction = readTransaction(answer.data);
  const { transactionType, reference, amount } = transaction;
  if (transactionType !== expected.type) throw mismatch(about, `it is of type ${transactionType}`, answer.requestId);
  if (reference !== null && reference !== expected.reference) {
    throw mismatch(about, 'it is of another reference', answer.requestId);
  }
  if (expected.amount !== undefined && amount !== expected.amount) {
    throw mismatch(about, 'it is of another amount', answer.requestId);
  }
  return { ...transaction, ...told(answer, expected.reference) };
}

export function takeUpdate(
  about: About,
  answer: Answer,
  reference: string,
  amountUsed: number,
): RedemptionUpdate & Told {
  const update = readUpdate(answer.data);
  if (update.summary.newAmount !== amountUsed) throw mismatch(about, 'it is of another amount', answer.requestId);
  return { ...update, ...told(answer, reference) };
}

/** The second copy of an update is refused; where it asked for the same, what it tells is what the first one did. */
export function settleUpdate(error: ScripError, reference: string, amountUsed: number) {
  const { statusCode, update, requestId } = error;
  if (statusCode !== '58' || update?.summary.newAmount !== amountUsed) return undefined;
  return { ...update, reference, replayed: true, requestId };
}
