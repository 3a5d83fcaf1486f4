import type { Service } from '../context.ts';
import { isStampRefused, retrying } from '../db/errors.ts';
import type { Database, Transaction } from '../db/pool.ts';
import { enqueue, keepQueued, type Task } from '../jobs/enqueue.ts';
import { checkKeyRing, holdKeyRing } from '../keyring/store.ts';
import { estimateVouchers } from '../rotation/queries.ts';
import { type Batch, type BatchRow, toBatch } from './batch.ts';
import { settleFailure } from './fail.ts';
import { advance, prepare, produce, withoutTaken, write } from './produce.ts';
import { findBatchById, listStalled, lockBatch } from './queries.ts';
import type { MadeRows } from './rows.ts';

/**
 * Vouchers of one transaction: large enough that commits cost little, small enough that a crash loses a
 * blink of work.
 */
const CHUNK = 2_000;
/** Up to here vouchers are made in one small statement, without a thread. */
const FEW = 250;
/** Chunks of a process in the database at a time. */
const MOST_AT_ONCE = 2;
/** A large batch gives way to others after this long, and goes to the end of the queue. */
const TURN_MS = 1_000;
/**
 * From so many vouchers on, the codes of a chunk are looked up before it is written. Of ten million, one
 * chunk in fifty draws a code that exists, and is made again; of a billion, nine in ten would be.
 */
const LOOK_UP_FROM = 10_000_000;
/**
 * A batch without progress for this long has lost its worker: even on a busy machine a chunk takes well
 * below a second.
 */
const QUIET_SECONDS = 5;

/**
 * The job that produces a batch. Every chunk is a transaction of its own that holds the batch's row and
 * books its progress, so a crash anywhere, or two workers on one batch, end with exactly the quantity
 * ordered. A failure that does not pass cancels the batch.
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
  const [estimated] = await service.db.query<{ vouchers: bigint }>(estimateVouchers);
  const looksUp = (estimated?.vouchers ?? 0n) >= LOOK_UP_FROM;
  let batch = toBatch(row);
  for (let last = false; batch.status === 'PROCESSING' && !last; ) {
    last = Date.now() >= until || stopping();
    batch =
      batch.quantity - batch.produced <= FEW || isRotating(service)
        ? await bookFew(service, batchId)
        : await run(service, batch, looksUp, () => Date.now() >= until || stopping());
  }
  return batch.status !== 'PROCESSING';
}

/** While vouchers are looked up under two keys, a code is looked for under both, which COPY cannot. */
function isRotating({ keys }: Service): boolean {
  return keys.inUse.length > 1;
}

/**
 * Makes and books chunk after chunk until little is left, or it is to give way. Several things go on at a
 * time: two chunks are made, one is written, and one is committed, which is waiting for the disk above
 * all.
 */
async function run(
  service: Service,
  batch: Batch,
  looksUp: boolean,
  givesWay: () => boolean,
): Promise<Batch> {
  let claimed = batch.produced;
  let after = batch;
  const ahead = () => {
    const count = Math.min(CHUNK, batch.quantity - claimed);
    if (count <= FEW || after.status !== 'PROCESSING') return undefined;
    claimed += count;
    return quietly(prepare(service, batch, count));
  };
  let booked: Promise<Batch> | undefined;
  const made = [ahead(), ahead()];
  for (let next = made.shift(); next; next = made.shift()) {
    const rows = await orBothEnd(next, booked);
    // What is made already is booked in any case.
    if (!givesWay()) made.push(ahead());
    const before = booked;
    booked = quietly(book(service, batch.id, rows, looksUp));
    if (before) after = await orBothEnd(before, booked);
  }
  return (await booked) ?? after;
}

/** Whoever awaits it gets its error; where nobody does any more, it must not end the process. */
function quietly<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/**
 * Waits for one of two. Where it fails, that is told once the other has ended too: nothing of a turn goes
 * on behind it.
 */
function orBothEnd<T>(one: Promise<T>, other: Promise<unknown> | undefined): Promise<T> {
  return one.catch(async (error: unknown) => {
    await other?.catch(() => {});
    throw error;
  });
}

/**
 * What was made ahead is not wanted as it is: the batch has ended, or lacks fewer, or another key seals
 * by now.
 */
class Surplus extends Error {}

/**
 * Books a chunk that was made ahead in one transaction. The batch's row is held at its end only, so that
 * a second chunk can be written meanwhile, and a cancel waits for neither. What turns out to be too much
 * is rolled back.
 */
async function book(service: Service, batchId: number, chunk: MadeRows, looksUp: boolean): Promise<Batch> {
  try {
    return await inTransaction(service, async (tx) => {
      await holdKeyRing(tx, service.keys);
      if (chunk.keyId !== service.keys.current || isRotating(service)) throw new Surplus();
      const made = looksUp ? await withoutTaken(tx, chunk) : chunk;
      await write(tx, made);
      const batch = await lock(tx, batchId);
      if (batch.status !== 'PROCESSING' || batch.quantity - batch.produced < made.count) throw new Surplus();
      return advance(service, tx, batch, made.count, service.clock());
    });
  } catch (error) {
    // Too much, too old, or a code that exists already: what is missing is made anew, in the way that
    // leaves such a code out.
    if (error instanceof Surplus || isCodeTaken(error) || isStampRefused(error))
      return bookFew(service, batchId);
    throw error;
  }
}

/** Makes and books a few vouchers under the batch's lock, or finds that it has ended. */
function bookFew(service: Service, batchId: number): Promise<Batch> {
  return inTransaction(service, async (tx) => {
    // In the same order as a chunk that was made ahead: the key ring, then the batch.
    await holdKeyRing(tx, service.keys);
    const batch = await lock(tx, batchId);
    if (batch.status !== 'PROCESSING') return batch;
    return produce(service, tx, batch, Math.min(FEW, batch.quantity - batch.produced));
  });
}

function inTransaction(service: Service, work: (tx: Transaction) => Promise<Batch>): Promise<Batch> {
  return retrying(() => inTurn(service.db, () => service.db.transaction(work)));
}

async function lock(tx: Transaction, batchId: number): Promise<Batch> {
  const [row] = await tx.query<BatchRow>(lockBatch(batchId));
  return toBatch(row as BatchRow);
}

function isCodeTaken(error: unknown): boolean {
  const { constraint } = (error ?? {}) as { constraint?: string };
  return constraint?.startsWith('vouchers_code_unique') ?? false;
}

type Gate = { inside: number; readonly waiting: (() => void)[] };

const gates = new WeakMap<Database, Gate>();

/**
 * Lets chunks into the database in the order of asking: two at a time, and one while the tills are busy.
 * So batches share the work chunk by chunk, and the tills share the database with one of them, not with
 * all.
 */
async function inTurn<T>(db: Database, work: () => Promise<T>): Promise<T> {
  const gate = gates.get(db) ?? { inside: 0, waiting: [] };
  gates.set(db, gate);
  const room = () => gate.inside < (db.isBusy() ? 1 : MOST_AT_ONCE);
  if (gate.waiting.length > 0 || !room()) await new Promise<void>((resolve) => gate.waiting.push(resolve));
  else gate.inside++;
  try {
    return await work();
  } finally {
    gate.inside--;
    while (gate.waiting.length > 0 && room()) {
      gate.inside++;
      gate.waiting.shift()?.();
    }
  }
}

/** Puts batches back into the queue whose worker died without a word. Harmless for those that merely wait. */
export async function resumeStalled(service: Service): Promise<void> {
  const stalled = await service.db.query<{ id: number; task: Task }>(listStalled(QUIET_SECONDS));
  for (const { id, task } of stalled) await keepQueued(service.db, task, id);
}
