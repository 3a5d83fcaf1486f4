import { audit, canAudit } from '../audit/audit.ts';
import { byService, type Operator, type Service } from '../context.ts';
import { isUnavailable, retrying, sqlState } from '../db/errors.ts';
import { plainArray, sql } from '../db/sql.ts';
import { enqueue } from '../jobs/queue.ts';
import { newId } from '../ledger/id.ts';
import { type Batch, COLUMNS, enqueueBatchEvent, findBatchBy } from './batch.ts';

/** The number of vouchers that one transaction takes back. */
const CHUNK = 5_000;

/**
 * Cancels a batch that is being produced. From this transaction on, none of its vouchers can be seen or
 * spent, and the whole price is back on the float. The vouchers made so far are voided in the background.
 * @param failure the cause, if a failure ended the batch rather than the operator
 * @returns the batch as it is now, canceled only if it was still `PROCESSING`; undefined for an unknown
 *   transaction id
 */
export async function cancelBatch(
  operator: Operator,
  transactionId: string,
  failure: string | null = null,
): Promise<Batch | undefined> {
  const { service } = operator;
  const now = service.clock();
  return retrying(() =>
    service.db.transaction(async (tx) => {
      const batch = await findBatchBy(tx, sql`transaction_id = ${transactionId} for update`);
      if (batch?.status !== 'PROCESSING') return batch;
      // Moves the price of a batch that is being canceled from its reserve to the float.
      if (batch.value !== null) await tx.query(sql`select release_batch(${batch.id}, ${newId(now)}, ${now})`);
      const [after] = (await tx.query<Batch>(sql`
update batches set status = 'CANCELED', ended_at = ${now}, failure = ${failure} where id = ${batch.id}
returning ${COLUMNS}`)) as [Batch];
      await enqueue(tx, 'void-batch', batch.id);
      await enqueueBatchEvent(tx, after, now);
      const { status, produced, quantity } = batch;
      // The failure may be a missing key, without which the audit cannot be sealed. The money is returned
      // anyway.
      if (failure !== null && !(await canAudit(tx, service))) return after;
      await audit(tx, operator, {
        action: 'batch.cancel',
        subject: `batch ${transactionId}`,
        before: { status, produced, quantity },
        after: { status: after.status, failure },
      });
      return after;
    }),
  );
}

/** Voids the vouchers of a canceled batch as a job, bucket by bucket, a chunk in each transaction. */
export async function voidBatch(service: Service, batchId: number): Promise<void> {
  const batch = await findBatchBy(service.db, sql`id = ${batchId}`);
  if (batch?.status !== 'CANCELED') return;
  for (const bucket of service.buckets.all) await voidBucket(service, bucket, batchId);
  await service.db.query(
    sql`update batches set voided_at = ${service.clock()} where id = ${batchId} and voided_at is null`,
  );
}

async function voidBucket({ db, clock }: Service, bucket: number, batchId: number): Promise<void> {
  // Each chunk begins after the previous one, so that no voucher is read twice.
  for (let after = 0n; ; ) {
    const now = clock();
    const ids = plainArray(Array.from({ length: CHUNK }, () => newId(now)));
    // Voids vouchers of a canceled batch in one bucket, after a serial number (sql/012-vouchers.sql): as
    // many as there are ids. `last` is null if none was left.
    const [page] = await retrying(() =>
      db.query<{ last: bigint | null }>(
        sql`select void_vouchers(${bucket}, ${batchId}, ${after}, ${ids}::uuid[], ${now}) as last`,
      ),
    );
    if (page?.last == null) return;
    after = page.last;
  }
}

/**
 * The number of consecutive failures, about two seconds apart, that cancel a batch. A temporary fault has
 * ended by then.
 */
const FAILURES_MAX = 5;
/** How long a disk may be full, so that the operator can free space. */
const DISK_FULL_MS = 600_000;
const DISK_FULL = '53100';

/**
 * Decides what a failed chunk means for its batch. If the database is away, overloaded or lost a race, the
 * batch waits. A full disk is tolerated for some minutes, any other failure a few times. Then the batch is
 * canceled, the whole price is back on the float, and the cause is stored for the operator.
 * @throws the error itself, unless it ended the batch: the job is then tried again
 */
export async function recordFailure(service: Service, batchId: number, error: unknown): Promise<void> {
  const isFull = sqlState(error) === DISK_FULL;
  if (isUnavailable(error) && !isFull) throw error;
  const now = service.clock();
  // A failure of a batch that is still being produced.
  const [counted] = await service.db.query<{ transactionId: string; failures: number; since: Date }>(sql`
update batches set
  failures = least(failures + ${isFull ? 0 : 1}::int, 32767), failing_since = coalesce(failing_since, ${now})
where id = ${batchId} and status = 'PROCESSING'
returning transaction_id as "transactionId", failures, failing_since as since`);
  if (!counted) throw error;
  const { transactionId, failures, since } = counted;
  service.log.warn({ part: 'batches', transactionId, failures, err: error }, 'a batch could not go on');
  if (isFull ? now.getTime() - since.getTime() < DISK_FULL_MS : failures < FAILURES_MAX) throw error;
  const failure = causeOf(error);
  const actor = byService('background work', failure);
  const batch = await cancelBatch({ service, actor }, transactionId, failure);
  if (batch?.status === 'CANCELED') {
    service.log.error(
      { part: 'batches', transactionId, failure },
      'a batch was canceled: its failure did not pass',
    );
  }
}

/** Returns the cause for the operator. It quotes no row, and has no digits that could be a code or a PIN. */
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
