import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray } from '../db/sql.ts';
import { idFloor, newId } from '../ledger/id.ts';
import { LEASE_MS, prepare } from './deliver.ts';
import { type Delivery, makeBodies, TEST_EVENT } from './outbox.ts';
import {
  findForTest,
  insertTest,
  listAttemptRows,
  listDeliveryRows,
  listLastAttempts,
  resendFailed,
  resendOne,
} from './queries.ts';
import { recordAll } from './record.ts';
import type { Attempt, Sender } from './send.ts';

/** The most tests that one person or token sends within a minute: each is a request to any public address. */
const TESTS_MAX = 10;

/** An event for an endpoint, with its last attempt. */
export type DeliveryRecord = {
  readonly eventId: string;
  readonly type: string;
  readonly occurredAt: Date;
  readonly state: 'PENDING' | 'DELIVERED' | 'FAILED';
  readonly attempts: number;
  /** The time of the next attempt, if it is pending. */
  readonly dueAt: Date | null;
  readonly lastAttempt: {
    readonly at: Date;
    readonly status: number | null;
    readonly error: string | null;
  } | null;
};

type DeliveryRow = {
  event_id: string;
  type: string;
  occurred_at: Date;
  state: DeliveryRecord['state'];
  attempts: number;
  due_at: Date;
};

type LastAttemptRow = {
  event_id: string;
  status: number | null;
  error: string | null;
  attempted_at: Date;
};

export type AttemptRecord = {
  readonly number: number;
  readonly at: Date;
  readonly durationMs: number;
  readonly status: number | null;
  readonly error: string | null;
};

type AttemptRow = {
  number: number;
  attempted_at: Date;
  duration_ms: number;
  status: number | null;
  error: string | null;
};

/** Lists deliveries of an endpoint, newest first, before the id of an event. */
export async function listDeliveries(
  db: Queries,
  endpointId: number,
  state: DeliveryRecord['state'] | null,
  most: number,
  before: string | null = null,
): Promise<DeliveryRecord[]> {
  const rows = await db.query<DeliveryRow>(listDeliveryRows(endpointId, state, most, before));
  const eventIds = plainArray(rows.map(({ event_id }) => event_id));
  const attempts = await db.query<LastAttemptRow>(listLastAttempts(endpointId, eventIds));
  const lastAttempts = new Map(
    attempts.map(({ event_id, attempted_at: at, status, error }) => [event_id, { at, status, error }]),
  );
  return rows.map((row) => ({
    eventId: row.event_id,
    type: row.type,
    occurredAt: row.occurred_at,
    state: row.state,
    attempts: row.attempts,
    dueAt: row.state === 'PENDING' ? row.due_at : null,
    lastAttempt: lastAttempts.get(row.event_id) ?? null,
  }));
}

/** Lists every attempt to deliver an event to an endpoint, oldest first. */
export async function listAttempts(
  db: Queries,
  endpointId: number,
  eventId: string,
): Promise<AttemptRecord[]> {
  const rows = await db.query<AttemptRow>(listAttemptRows(endpointId, eventId));
  return rows.map(({ number, attempted_at, duration_ms, status, error }) => ({
    number,
    at: attempted_at,
    durationMs: duration_ms,
    status,
    error,
  }));
}

/** The number of deliveries that one transaction sends again. */
const RESEND_PART = 5_000;

/**
 * Sends one event again, or all events that failed since a time, with all their attempts.
 * @returns how many
 */
export async function resend(
  operator: Operator,
  endpointId: number,
  what: { readonly eventId: string } | { readonly failedSince: Date },
): Promise<number> {
  const { db, clock } = operator.service;
  const now = clock();
  const part = async (tx: Queries): Promise<number> => {
    if ('eventId' in what) return (await tx.query(resendOne(endpointId, what.eventId, now))).length;
    const { failedSince } = what;
    const statement = resendFailed(endpointId, failedSince, idFloor(failedSince), RESEND_PART, now);
    const [row] = await tx.query<{ count: number }>(statement);
    return row?.count ?? 0;
  };
  for (let total = 0; ; ) {
    const count = await db.transaction(async (tx) => {
      const sent = await part(tx);
      const subject = `webhook ${endpointId}`;
      if (sent > 0)
        await audit(tx, operator, { action: 'webhook.resend', subject, after: { ...what, count: sent } });
      return sent;
    });
    total += count;
    if ('eventId' in what || count < RESEND_PART) return total;
  }
}

/**
 * Sends a test to an endpoint once, directly from this process, even if the endpoint is disabled.
 * @returns the attempt; undefined if there is no such endpoint
 */
export async function sendTest(
  operator: Operator,
  sender: Sender,
  endpointId: number,
): Promise<Attempt | undefined> {
  const { service } = operator;
  const now = service.clock();
  const leaseUntil = new Date(now.getTime() + LEASE_MS);
  const eventId = newId(now);
  const delivery = await service.db.transaction(async (tx): Promise<Delivery | undefined> => {
    const [endpoint] = await tx.query<TestedEndpoint>(findForTest(endpointId, now));
    if (!endpoint) return undefined;
    const bucket = service.buckets.ofMerchant(endpoint.merchant_id);
    await tx.query(insertTest(bucket, endpointId, eventId, TEST_EVENT, now, leaseUntil));
    await audit(tx, operator, {
      action: 'webhook.test',
      subject: `webhook ${endpointId}`,
      after: { eventId },
      perMinute: TESTS_MAX,
    });
    const event = { event_id: eventId, type: TEST_EVENT, subject_id: null, data: {}, occurred_at: now };
    return { ...endpoint, ...event, bucket, endpoint_id: endpointId, leaseUntil, attempts: 0, tries: 0 };
  });
  if (!delivery) return undefined;
  const [body] = await makeBodies(service, [delivery], async () => undefined);
  if (typeof body !== 'string') throw body;
  const attempt = await sender.send(prepare(service, delivery, body));
  await recordAll(service, [{ delivery, attempt, final: true }]);
  return attempt;
}

type TestedEndpoint = Pick<
  Delivery,
  'merchant_id' | 'url' | 'full_vouchers' | 'secret' | 'previous_secret' | 'failing_since'
>;
