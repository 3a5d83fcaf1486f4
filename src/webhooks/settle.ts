import type { Service } from '../context.ts';
import { retrying } from '../db/retry.ts';
import { plainArray, textArray } from '../db/sql.ts';
import type { Delivery } from './body.ts';
import { disableEndpoints, failPending, markEndpoints, RECORD_ATTEMPTS } from './deliver.queries.ts';
import { nextTry } from './retry.ts';
import type { Attempt } from './send.ts';

/** An attempt that was made; `final` where a failure is not to be tried again. */
export type Made = { readonly delivery: Delivery; readonly attempt: Attempt; readonly final?: boolean };

const GONE = 410;
/** An endpoint that has failed for so long is turned off. */
const FAILING_DAYS_MS = 5 * 86_400_000;

type Verdict = { readonly state: 'DELIVERED' | 'FAILED' | 'PENDING'; readonly dueAt: Date | null };

function judge({ delivery, attempt, final }: Made, now: Date): Verdict {
  if (attempt.error === null) return { state: 'DELIVERED', dueAt: null };
  const delay =
    final || attempt.status === GONE ? undefined : nextTry(delivery.tries, attempt.retryAfterMs, Math.random());
  if (delay === undefined) return { state: 'FAILED', dueAt: null };
  return { state: 'PENDING', dueAt: new Date(now.getTime() + delay) };
}

/** Records attempts, what becomes of their deliveries, and then what they tell of their endpoints; safe to repeat. */
export async function settle({ db, log, clock }: Service, made: readonly Made[]): Promise<void> {
  const now = clock();
  const verdicts = made.map((each) => judge(each, now));
  const failed = made.filter(({ attempt }) => attempt.error !== null);
  const ids = (list: readonly Made[]) => [...new Set(list.map(({ delivery }) => delivery.endpoint_id))];
  const failing = ids(failed);
  // What was well already needs no write of its own.
  const recovered = ids(made.filter(({ attempt, delivery }) => !attempt.error && delivery.failing_since !== null));
  const gone = ids(failed.filter(({ attempt }) => attempt.status === GONE));
  // The attempts first: an endpoint that is turned off without the attempt that did it would be a riddle.
  await retrying(() =>
    db.hot(RECORD_ATTEMPTS, [
      plainArray(made.map(({ delivery }) => delivery.endpoint_id)),
      plainArray(made.map(({ delivery }) => delivery.event_id)),
      plainArray(made.map(({ delivery }) => delivery.attempts)),
      textArray(made.map(({ attempt }) => attempt.attemptedAt.toISOString())),
      plainArray(made.map(({ attempt }) => attempt.durationMs)),
      plainArray(made.map(({ attempt }) => attempt.status)),
      textArray(made.map(({ attempt }) => attempt.error)),
      textArray(verdicts.map(({ state }) => state)),
      textArray(verdicts.map(({ dueAt }) => dueAt?.toISOString() ?? null)),
      now,
    ]),
  );
  if (failing.length + recovered.length === 0) return;
  const disabled = await retrying(() =>
    db.transaction(async (tx) => {
      await tx.query(markEndpoints(plainArray(recovered), plainArray(failing), now));
      const before = new Date(now.getTime() - FAILING_DAYS_MS);
      const off = await tx.query<{ id: number; disabled_reason: string }>(
        disableEndpoints(plainArray(gone), plainArray(failing), before, now),
      );
      if (off.length > 0) await tx.query(failPending(plainArray(off.map(({ id }) => id)), now));
      return off;
    }),
  );
  for (const { id, disabled_reason } of disabled)
    log.warn({ part: 'webhooks', endpoint: id, reason: disabled_reason }, 'a webhook endpoint was turned off');
}
