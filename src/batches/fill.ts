import type { Service } from '../context.ts';
import { checkKeyRing } from '../db/key-ring.ts';
import type { Database } from '../db/pool.ts';
import { retrying } from '../db/retry.ts';
import { enqueue, keepQueued } from '../jobs/enqueue.ts';
import { type Batch, type BatchRow, toBatch } from './batch.ts';
import { settleFailure } from './fail.ts';
import { prepare, produce, produceFrom } from './produce.ts';
import { findBatchById, listStalled, lockBatch } from './queries.ts';
import type { MadeRows } from './rows.ts';

/** Vouchers of one transaction: large enough that commits cost little, small enough that a crash loses a blink of work. */
const CHUNK = 4_000;
/** Up to here vouchers are made in one small statement, without a thread. */
const FEW = 250;
/** A large batch gives way to others after this long, and goes to the end of the queue. */
const TURN_MS = 1_000;
/** A batch without progress for this long has lost its worker: even on a busy machine a chunk takes well below a second. */
const QUIET_SECONDS = 5;

/**
 * The job that produces a batch. Every chunk is a transaction of its own that holds the batch's row and books its progress,
 * so a crash anywhere, or two workers on one batch, end with exactly the quantity ordered. While the database takes one
 * chunk, the next is made. A failure that does not pass cancels the batch.
 */
export async function fillBatch(service: Service, batchId: number, stopping: () => boolean): Promise<void> {
  try {
    if (await takeTurn(service, batchId, stopping)) return;
    await enqueue(service.db, 'fill-batch', batchId);
  } catch (error) {
    await settleFailure(service, batchId, error);
  }
}

/** Works on a batch for a turn; returns whether there is nothing left to do. */
async function takeTurn(service: Service, batchId: number, stopping: () => boolean): Promise<boolean> {
  const until = Date.now() + TURN_MS;
  const [row] = await service.db.query<BatchRow>(findBatchById(batchId));
  if (row?.status !== 'PROCESSING') return true;
  await checkKeyRing(service.db, service.keys);
  let batch = toBatch(row);
  let next = ahead(service, batch, batch.produced);
  for (;;) {
    const made = await next;
    const last = Date.now() >= until || stopping();
    next = last ? undefined : ahead(service, batch, batch.produced + (made?.count ?? 0));
    batch = await book(service, batch, made);
    if (batch.status !== 'PROCESSING') return true;
    if (last) return false;
  }
}

/** Begins to make the chunk behind what is made already; nothing where too little is left to be worth a thread. */
function ahead(service: Service, batch: Batch, made: number): Promise<MadeRows> | undefined {
  const count = Math.min(CHUNK, batch.quantity - made);
  if (count <= FEW) return undefined;
  const rows = prepare(service, batch, count);
  // Who waits for it gets its error; whoever no longer does must not be ended by it.
  rows.catch(() => {});
  return rows;
}

/** Books a chunk in one transaction: what was made ahead, else a few vouchers that are made within it. */
async function book(service: Service, { id }: Batch, made: MadeRows | undefined): Promise<Batch> {
  const chunk = (rows: MadeRows | undefined) =>
    retrying(() =>
      inTurn(service.db, () =>
        service.db.transaction(async (tx) => {
          const [row] = await tx.query<BatchRow>(lockBatch(id));
          const batch = toBatch(row as BatchRow);
          if (batch.status !== 'PROCESSING') return batch;
          if (rows) return produceFrom(service, tx, batch, rows);
          return produce(service, tx, batch, Math.min(CHUNK, batch.quantity - batch.produced));
        }),
      ),
    );
  return chunk(made).catch((error: unknown) => {
    // A code that exists already: this chunk is made again in the way that leaves such a code out.
    if (made && isCodeTaken(error)) return chunk(undefined);
    throw error;
  });
}

function isCodeTaken(error: unknown): boolean {
  return (error as { constraint?: unknown } | undefined)?.constraint === 'vouchers_code_unique';
}

const turns = new WeakMap<Database, Promise<unknown>>();

/**
 * One chunk of a process is in the database at a time, in the order of asking: batches share the work chunk by chunk, and
 * the tills share the database with one of them, not with all.
 */
function inTurn<T>(db: Database, run: () => Promise<T>): Promise<T> {
  const turn = (turns.get(db) ?? Promise.resolve()).then(run);
  turns.set(
    db,
    turn.catch(() => {}),
  );
  return turn;
}

/** Puts batches back into the queue whose worker died without a word. Harmless for those that merely wait. */
export async function resumeStalled(service: Service): Promise<void> {
  const stalled = await service.db.query<{ id: number }>(listStalled(QUIET_SECONDS));
  for (const { id } of stalled) await keepQueued(service.db, 'fill-batch', id);
}
