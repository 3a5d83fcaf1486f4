import type { Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { type HotStatement, plainArray, sql, textArray } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../time.ts';
import { type Delivery, enqueueEvent } from './outbox.ts';
import type { Attempt } from './send.ts';

/** Decides when a failed delivery is tried again. It is pure, so that it can be tested without a network. */

/** The delays after each failed attempt, counted from that attempt. */
const DELAYS_MS = [
  ...[5_000, 5 * MINUTE_MS, 30 * MINUTE_MS],
  ...[2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS, 10 * HOUR_MS],
];
/** Up to a fifth is added at random, so that deliveries that failed together are not repeated together. */
const JITTER = 0.2;
/** The longest delay that a receiver may ask for. */
const RETRY_AFTER_MAX_MS = DAY_MS;

/**
 * Returns the delay before the next attempt.
 * @param tries made so far, including the one that has just failed
 * @param retryAfterMs the delay that the receiver asked for; the next attempt is never earlier
 * @param random from 0 to 1
 * @returns the delay in milliseconds, or undefined if there is no further attempt
 */
export function nextTry(tries: number, retryAfterMs: number | undefined, random: number): number | undefined {
  const delay = DELAYS_MS[tries - 1];
  if (delay === undefined) return undefined;
  return Math.max(delay * (1 + JITTER * random), Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
}

/** A completed attempt. `final`: a failure is not tried again. */
export type Made = { readonly delivery: Delivery; readonly attempt: Attempt; readonly final?: boolean };

const GONE = 410;
/** An endpoint that has failed for this long is disabled. */
const FAILING_MS = 5 * DAY_MS;

/** Returns the state of a delivery after an attempt, and when it is due again. */
function judge({ delivery, attempt, final }: Made, now: Date) {
  if (attempt.error === null) return { state: 'DELIVERED', dueAt: null };
  const delay =
    final || attempt.status === GONE
      ? undefined
      : nextTry(delivery.tries + 1, attempt.retryAfterMs, Math.random());
  if (delay === undefined) return { state: 'FAILED', dueAt: null };
  return { state: 'PENDING', dueAt: new Date(now.getTime() + delay) };
}

/** The function of sql/013-deliveries.sql. */
const RECORD_ATTEMPTS: HotStatement = {
  name: 'record-attempts',
  background: true,
  text: 'select record_attempts($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)',
};

/** Records attempts and the new state of their deliveries. Safe to repeat. */
export async function recordAttempts({ db, clock }: Service, made: readonly Made[]): Promise<void> {
  const now = clock();
  for (const [bucket, attempts] of Map.groupBy(made, ({ delivery }) => delivery.bucket)) {
    const verdicts = attempts.map((each) => judge(each, now));
    const values = [
      bucket,
      plainArray(attempts.map(({ delivery }) => delivery.endpointId)),
      plainArray(attempts.map(({ delivery }) => delivery.eventId)),
      textArray(attempts.map(({ delivery }) => delivery.leaseUntil.toISOString())),
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
 * Updates the endpoints of recorded attempts one by one, so that the failure of one does not affect the
 * others. An endpoint that answered 410, or has failed for five days, is disabled, which changes one row. Its
 * pending deliveries are no longer claimed, and are ended later, in parts.
 */
export async function judgeEndpoints({ db, log, clock }: Service, made: readonly Made[]): Promise<void> {
  const now = clock();
  for (const [id, attempts] of Map.groupBy(made, ({ delivery }) => delivery.endpointId)) {
    const failed = attempts.filter(({ attempt }) => attempt.error !== null);
    const succeeded = failed.length < attempts.length;
    // A healthy endpoint needs no write.
    if (failed.length === 0 && attempts.every(({ delivery }) => delivery.failingSince === null)) continue;
    // The first failure after a success sets the start of failures, a success clears it.
    const mark = sql`
update webhook_endpoints set failing_since = case when ${!succeeded}::boolean then ${now}::timestamptz end
where id = ${id} and (failing_since is null) = ${!succeeded}::boolean`;
    await retrying(() => db.query(mark));
    if (failed.length === 0) continue;
    const isGone = failed.some(({ attempt }) => attempt.status === GONE);
    const before = new Date(now.getTime() - FAILING_MS);
    const disable = sql`
update webhook_endpoints set
  disabled_at = ${now},
  disabled_reason = case
    when ${isGone}::boolean then 'it answered 410 Gone'
    else 'it failed for five days'
  end
where id = ${id} and disabled_at is null and removed_at is null
  and (${isGone}::boolean or failing_since < ${before})
returning merchant_id as "merchantId", disabled_reason as reason`;
    const off = await retrying(() =>
      db.transaction(async (tx) => {
        const [row] = await tx.query<{ merchantId: number; reason: string }>(disable);
        if (row) await announceDisabled(tx, id, row, now);
        return row;
      }),
    );
    if (off)
      log.warn({ part: 'webhooks', endpoint: id, reason: off.reason }, 'a webhook endpoint was disabled');
  }
}

/** Announces a disabled endpoint at the other endpoints of its merchant. */
function announceDisabled(
  tx: Queries,
  id: number,
  { merchantId, reason }: { readonly merchantId: number; readonly reason: string },
  now: Date,
): Promise<void> {
  const data = { endpointId: String(id), reason };
  const event = { type: 'webhook.disabled', eventId: newId(now), subjectId: null } as const;
  return enqueueEvent(tx, { ...event, merchantId, data, now });
}

/** How many days an attempt is kept. */
const KEEP_DAYS = 90;
/** The number of deliveries that one statement ends. */
const PART = 5_000;

/** Drops deliveries and attempts that are older than 90 days, month by month. */
export async function dropDeliveries({ db, log, clock }: Service): Promise<void> {
  const keptFrom = new Date(clock().getTime() - KEEP_DAYS * DAY_MS);
  for (;;) {
    const [dropped] = await db.query<{ month: string | null }>(
      sql`select drop_old_deliveries(${keptFrom}) as month`,
    );
    if (!dropped?.month) return;
    log.info({ part: 'webhooks', month: dropped.month }, 'old deliveries were dropped');
  }
}

/** Ends pending deliveries of disabled or removed endpoints, a part at a time. Operators can resend them. */
export async function endAbandoned({ db, buckets, clock }: Service): Promise<void> {
  const abandoned = await db.query<{ id: number }>(sql`
select id from webhook_endpoints
where (disabled_at is not null or removed_at is not null)
  and id in (select distinct d.endpoint_id from webhook_deliveries d where d.state = 'PENDING')
order by id limit 100`);
  for (const { id } of abandoned) {
    for (const bucket of buckets.all) {
      for (let failed = PART; failed === PART; ) {
        const [row] = await db.query<{ failed: number }>(sql`
with failed as (
  update webhook_deliveries set state = 'FAILED', finished_at = ${clock()}
  where bucket = ${bucket} and endpoint_id = ${id} and event_id = any (array(
    select event_id from webhook_deliveries
    where bucket = ${bucket} and endpoint_id = ${id} and state = 'PENDING'
    limit ${PART} for update skip locked))
  returning 1
)
select count(*)::int as failed from failed`);
        failed = row?.failed ?? 0;
      }
    }
  }
}
