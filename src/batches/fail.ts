import type { Service } from '../context.ts';
import { isUnavailable, sqlState } from '../db/errors.ts';
import { cancelBatch } from './cancel.ts';
import { countFailure } from './queries.ts';

/**
 * Failures in a row, some two seconds apart, before a batch is canceled. A coincidence has passed by
 * then.
 */
const FAILURES_MAX = 5;
/** How long a disk may stay full: time for the operator to make room. */
const DISK_FULL_MS = 600_000;
const DISK_FULL = '53100';

/**
 * What a failed chunk means for its batch. A database that is away, overloaded or lost a race says
 * nothing about the batch: it waits. A full disk gets some minutes, any other failure a few tries. Then
 * the batch is canceled, the whole price is back on the float, and the cause is kept for the operator.
 * @throws the error itself, unless it ended the batch: the job is then tried again
 */
export async function recordFailure(service: Service, batchId: number, error: unknown): Promise<void> {
  const isFull = sqlState(error) === DISK_FULL;
  if (isUnavailable(error) && !isFull) throw error;
  const now = service.clock();
  const [counted] = await service.db.query<{ transaction_id: string; failures: number; failing_since: Date }>(
    countFailure(batchId, isFull ? 0 : 1, now),
  );
  if (!counted) throw error;
  const { transaction_id: transactionId, failures, failing_since: since } = counted;
  service.log.warn({ part: 'batches', transactionId, failures, err: error }, 'a batch could not go on');
  if (isFull ? now.getTime() - since.getTime() < DISK_FULL_MS : failures < FAILURES_MAX) throw error;
  const failure = causeOf(error);
  const actor = {
    kind: 'service',
    id: null,
    name: 'scrip',
    origin: 'background work',
    requestId: null,
    reason: failure,
  } as const;
  const batch = await cancelBatch({ service, actor }, transactionId, failure);
  if (batch?.status === 'CANCELED') {
    service.log.error(
      { part: 'batches', transactionId, failure },
      'a batch was canceled: its failure did not pass',
    );
  }
}

/** The cause for the operator. It never quotes a row, and has no digits that could be a code or a PIN. */
function causeOf(error: unknown): string {
  const state = sqlState(error);
  if (state === DISK_FULL) return `the disk of the database is full (${state})`;
  if (state) {
    const { constraint } = error as { constraint?: string };
    return `the database refused it (${constraint === undefined ? state : `${state}, ${constraint}`})`;
  }
  const message = error instanceof Error ? error.message : 'unknown error';
  return `vouchers could not be made: ${message.replace(/\d{4,}/g, '…')}`;
}
