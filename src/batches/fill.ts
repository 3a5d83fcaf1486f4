import type { Service } from '../context.ts';
import { retrying } from '../db/retry.ts';
import { enqueue } from '../jobs/enqueue.ts';
import { type BatchRow, toBatch } from './batch.ts';
import { produce } from './produce.ts';
import { listStalled, lockBatch } from './queries.ts';

/** Vouchers of one transaction: large enough that commits cost little, small enough that a crash loses a blink of work. */
const CHUNK = 2_000;
/** A large batch gives way to others after this long, and goes to the end of the queue. */
const TURN_MS = 1_000;
/** A batch without progress for this long has lost its worker: even on a busy machine a chunk takes well below a second. */
const QUIET_SECONDS = 5;

/**
 * The job that produces a batch. Every chunk is a transaction of its own that holds the batch's row and books its progress,
 * so a crash anywhere, or two workers on one batch, end with exactly the quantity ordered.
 */
export async function fillBatch(service: Service, batchId: number, stopping: () => boolean): Promise<void> {
  const until = Date.now() + TURN_MS;
  for (;;) {
    const done = await retrying(() => fillChunk(service, batchId));
    if (done) return;
    if (Date.now() >= until || stopping()) break;
  }
  await enqueue(service.db, 'fill-batch', batchId);
}

async function fillChunk(service: Service, batchId: number): Promise<boolean> {
  return service.db.transaction(async (tx) => {
    const [row] = await tx.query<BatchRow>(lockBatch(batchId));
    if (row?.status !== 'PROCESSING') return true;
    const batch = toBatch(row);
    const after = await produce(service, tx, batch, Math.min(CHUNK, batch.quantity - batch.produced));
    return after.status !== 'PROCESSING';
  });
}

/** Puts batches back into the queue whose worker died without a word. Harmless for those that merely wait. */
export async function resumeStalled(service: Service): Promise<void> {
  const stalled = await service.db.query<{ id: number }>(listStalled(QUIET_SECONDS));
  for (const { id } of stalled) await enqueue(service.db, 'fill-batch', id);
}
