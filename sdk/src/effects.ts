import type { ScripError } from './errors.ts';
import { type About, mismatch } from './failure.ts';
import type { Answer } from './http.ts';
import { readBatchHead, readTransaction, readUpdate, readVouchers } from './read.ts';
import type { Batch, Receipt, RedemptionUpdate, Transaction } from './types.ts';

/** The results of calls that have an effect, and the refusals that prove that they had none. */

/**
 * Refusals that come after the service has looked for the reference: had an earlier copy had its effect,
 * the service would have returned that. Other refusals (of the key, the permission, the product, a locked
 * PIN) come before and prove nothing.
 */
const AFTER_REPLAY: ReadonlySet<string> = new Set('94 14 55 44 43 54 40 41 47 42 51 50'.split(' '));

export function provesNoEffect({ code, statusCode }: ScripError): boolean {
  return code === 'undone' || AFTER_REPLAY.has(statusCode ?? '');
}

/**
 * Refusals of an undoing that say what became of the redemption: it was changed to another amount, or its
 * voucher was canceled.
 */
export function provesNoUndoing({ statusCode }: ScripError): boolean {
  return statusCode === '58' || statusCode === '44' || statusCode === '18';
}

/** The same for an update: a replay of one is refused with 58. */
export function provesNoUpdate({ statusCode, update }: ScripError): boolean {
  return statusCode === '60' || statusCode === '51' || (statusCode === '58' && update !== null);
}

function receiptOf({ replayed, requestId }: Answer, reference: string): Receipt {
  return { reference, replayed, requestId };
}

export function takeBatch(about: About, answer: Answer, reference: string): Batch & Receipt {
  const batch = readBatchHead(answer.data);
  if (batch.reference !== reference) throw mismatch(about, 'it is about another reference', answer.requestId);
  const receipt = receiptOf(answer, reference);
  return batch.status === 'COMPLETED'
    ? { ...batch, ...receipt, status: batch.status, vouchers: readVouchers(answer.data) }
    : { ...batch, ...receipt, status: batch.status };
}

export type Expected = {
  readonly type: 'ACTIVATION' | 'REDEMPTION';
  readonly reference: string;
  /** Null where the client does not know it. */
  readonly amount: number | null;
};

/** Reads a transaction. One of another call must not pass for the result of this one. */
export function takeTransaction(about: About, answer: Answer, expected: Expected): Transaction & Receipt {
  const transaction = readTransaction(answer.data);
  const { transactionType, reference, amount } = transaction;
  const refuse = (what: string) => mismatch(about, `it is about another ${what}`, answer.requestId);
  if (transactionType !== expected.type) throw refuse('type of transaction');
  if (reference !== null && reference !== expected.reference) throw refuse('reference');
  if (expected.amount !== null && amount !== expected.amount) throw refuse('amount');
  return { ...transaction, ...receiptOf(answer, expected.reference) };
}

/** Reads the active transaction under a reference, which is a transaction id where it has none. */
export function takeFound(about: About, { data, requestId }: Answer, asked: string): Transaction {
  const transaction = readTransaction(data);
  const { reference, transactionId } = transaction;
  if (![reference, transactionId].includes(asked) && reference !== `NEW-${asked}`)
    throw mismatch(about, 'it is about another reference', requestId);
  return transaction;
}

export function takeUpdate(
  about: About,
  answer: Answer,
  reference: string,
  amountUsed: number,
): RedemptionUpdate & Receipt {
  const update = readUpdate(answer.data);
  if (update.summary.newAmount !== amountUsed)
    throw mismatch(about, 'it is about another amount', answer.requestId);
  return { ...update, ...receiptOf(answer, reference) };
}

/** The result behind the refusal of a second copy of an update. */
export function recoverUpdate(error: ScripError, reference: string, amountUsed: number) {
  const { statusCode, update, requestId } = error;
  if (statusCode !== '58' || update?.summary.newAmount !== amountUsed) return undefined;
  return { ...update, reference, replayed: true, requestId };
}
