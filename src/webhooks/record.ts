import type { Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import { plainArray, textArray } from '../db/sql.ts';
import type { Delivery } from './body.ts';
import { disableEndpoint, markEndpoint, RECORD_ATTEMPTS } from './queries.ts';
import { nextTry } from './retry.ts';
import type { Attempt } from './send.ts';

/** An attempt that was made; `final` if a failure is not tried again. */
export type Made = { readonly delivery: Delivery; readonly attempt: Attempt; readonly final?: boolean };

const GONE = 410;
/** An endpoint that has failed for this long is disabled. */
const FAILING_DAYS_MS = 5 * 86_400_000;

type Verdict = { readonly state: 'DELIVERED' | 'FAILED' | 'PENDING'; readonly dueAt: Date | null };

function judge({ delivery, attempt, final }: Made, now: Date): Verdict {
  if (attempt.error === null) return { state: 'DELIVERED', dueAt: null };
  const delay =
    final || attempt.status === GONE
      ? undefined
      : nextTry(delivery.tries, attempt.retryAfterMs, Math.random());
  if (delay === undefined) return { state: 'FAILED', dueAt: null };
  return { state: 'PENDING', dueAt: new Date(now.getTime() + delay) };
}

/** Records attempts and the new state of their deliveries. Safe to repeat. */
export async function recordAttempts({ db, clock }: Service, made: readonly Made[]): Promise<void> {
  const now = clock();
  for (const [bucket, attempts] of Map.groupBy(made, ({ delivery }) => delivery.bucket)) {
    const verdicts = attempts.map((each) => judge(each, now));
    const values = [
      bucket,
      plainArray(attempts.map(({ delivery }) => delivery.endpoint_id)),
      plainArray(attempts.map(({ delivery }) => delivery.event_id)),
      plainArray(attempts.map(({ delivery }) => delivery.attempts)),
      textArray(attempts.map(({ attempt }) => attempt.attemptedAt.toISOString())),
      plainArray(attempts.map(({ attempt }) => attempt.durationMs)),
      plainArray(attempts.map(({ attempt }) => attempt.status)),
      textArray(attempts.map(({ attempt }) => attempt.error)),
      textArray(verdicts.map(({ state }) => state)),
      textArray(verdicts.map(({ dueAt }) => dueAt?.toISOString() ?? null)),
      now,
    ];
    await retrying(() => db.hot(RECORD_ATTEMPTS, values, bucket));
  }
}

/**
 * What recorded attempts mean for their endpoints, one by one, so that the failure of one does not
 * affect the others. An endpoint that answered 410, or has failed for five days, is disabled: one row.
 * Its pending deliveries are no longer claimed, and are ended later (maintain.ts).
 */
export async function judgeEndpoints({ db, log, clock }: Service, made: readonly Made[]): Promise<void> {
  const now = clock();
  for (const [id, attempts] of Map.groupBy(made, ({ delivery }) => delivery.endpoint_id)) {
    const failed = attempts.filter(({ attempt }) => attempt.error !== null);
    const succeeded = failed.length < attempts.length;
    // A healthy endpoint needs no write.
    if (failed.length === 0 && attempts.every(({ delivery }) => delivery.failing_since === null)) continue;
    await retrying(() => db.query(markEndpoint(id, !succeeded, now)));
    if (failed.length === 0) continue;
    const isGone = failed.some(({ attempt }) => attempt.status === GONE);
    const before = new Date(now.getTime() - FAILING_DAYS_MS);
    const [off] = await retrying(() =>
      db.query<{ disabled_reason: string }>(disableEndpoint(id, isGone, before, now)),
    );
    if (off)
      log.warn(
        { part: 'webhooks', endpoint: id, reason: off.disabled_reason },
        'a webhook endpoint was disabled',
      );
  }
}

/** Both, for a single attempt. */
export async function recordAll(service: Service, made: readonly Made[]): Promise<void> {
  await recordAttempts(service, made);
  await judgeEndpoints(service, made);
}
