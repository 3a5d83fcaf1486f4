import { ScripError, UnknownOutcomeError } from './errors.ts';
import type { Pending, PendingCall } from './pending.ts';
import type { Batch, CallOptions, RedemptionUpdate, Transaction } from './types.ts';

/** What became of a pending call. */
export type Recovered = { readonly call: PendingCall } & (
  | { readonly outcome: 'done'; readonly result: Transaction | Batch | RedemptionUpdate }
  /** It had no effect, and will have none. With an error: why the service refused it. */
  | { readonly outcome: 'not-done'; readonly error: ScripError | null }
  /** It is still kept. With an error: why it could not be found out. */
  | { readonly outcome: 'unknown'; readonly error: ScripError | null }
);

export type RecoverOptions = CallOptions & {
  /** Called with each known outcome before the call is forgotten: save it here. */
  readonly record?: ((recovered: Recovered) => unknown) | undefined;
};

/** How a client finds outcomes out. */
export type Means = {
  /** Whether the call was sent to this client's service, in its variant. */
  isOwn(call: PendingCall): boolean;
  /** The transaction under the reference of a call; null if there is none. */
  lookup(call: PendingCall): Promise<Transaction | null>;
  /** Gives a redemption up; undefined if the client cannot. */
  readonly undo: ((reference: string) => Promise<unknown>) | undefined;
  /** Sends the request of a call again, under its reference. */
  repeat(call: PendingCall): Promise<Transaction | Batch | RedemptionUpdate>;
};

/**
 * Finds the outcomes of all pending calls, one after the other.
 * @throws DamagedStoreError after all calls that could be read
 */
export async function recoverAll(
  pending: Pending,
  means: Means,
  record: RecoverOptions['record'],
): Promise<Recovered[]> {
  const { calls, damage } = await pending.list();
  const all: Recovered[] = [];
  for (const call of calls) {
    const recovered = await recoverOne(call, means);
    all.push(recovered);
    if (recovered.outcome === 'unknown') continue;
    await record?.(recovered);
    await pending.forget(call);
  }
  if (damage) throw damage;
  return all;
}

async function recoverOne(call: PendingCall, means: Means): Promise<Recovered> {
  if (!means.isOwn(call)) return { call, outcome: 'unknown', error: null };
  try {
    if (call.body !== null) return { call, outcome: 'done', result: await means.repeat(call) };
    const result = await means.lookup(call);
    if (result !== null) return { call, outcome: 'done', result };
    // The request may still be on its way.
    if (call.operation !== 'redeem' || !means.undo) return { call, outcome: 'unknown', error: null };
    await means.undo(call.reference);
    return { call, outcome: 'not-done', error: null };
  } catch (error) {
    if (!(error instanceof ScripError)) throw error;
    const isRefused = call.body !== null && !(error instanceof UnknownOutcomeError);
    return { call, outcome: isRefused ? 'not-done' : 'unknown', error };
  }
}
