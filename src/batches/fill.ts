import { kept, type Service } from '../context.ts';
import { isStampRefused, retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, type Sql, sql } from '../db/sql.ts';
import { Turns } from '../db/turns.ts';
import type { Group } from '../jobs/queue.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { checkKeyRing, holdKeyRing } from '../keyring/store.ts';
import { type Batch, COLUMNS, enqueueBatchEvent, findBatchBy } from './batch.ts';
import { recordFailure, voidBatch } from './cancel.ts';
import { drawCodes, type MadeRows, makeRows } from './rows.ts';
import { makeRowsAside } from './rows.worker.ts';

/** Returns what belongs to the codes that vouchers have already. @param byKey by the keys of the codes */
export async function findTaken<Owner>(db: Queries, byKey: ReadonlyMap<string, Owner>): Promise<Owner[]> {
  const keys = plainArray([...byKey.keys()]);
  const taken = await db.query<{ key: string }>(
    sql`select code_key as key from find_code_keys(${keys}::uuid[])`,
  );
  return taken.flatMap(({ key }) => byKey.get(key.replaceAll('-', '')) ?? []);
}

/** Draws numbers for vouchers, ascending and unique. */
export function drawNumbers(count: number): Sql {
  return sql`
    select array_agg(nextval('voucher_numbers')::text) as numbers from generate_series(1, ${count}::int)`;
}

export async function takeNumbers(tx: Queries, count: number): Promise<bigint[]> {
  const [drawn] = await tx.query<{ numbers: string[] }>(drawNumbers(count));
  return (drawn?.numbers ?? []).map(BigInt);
}

/**
 * Creates `count` vouchers of a batch and records the progress, in the caller's transaction. The caller holds
 * the batch's row, so two workers on one batch take turns.
 */
export async function produce(service: Service, tx: Queries, batch: Batch, count: number): Promise<Batch> {
  const { keys, buckets } = service;
  const now = service.clock();
  await holdKeyRing(tx, keys);
  let newestId: string | undefined;
  // An existing code is skipped, and a new one is drawn.
  for (let missing = count; missing > 0; ) {
    const numbers = await takeNumbers(tx, missing);
    const codes = [...(await drawFreeCodes(tx, keys, missing))];
    const rows = makeRows(keys, { numbers, codes, buckets: buckets.all, now });
    missing -= await write(tx, batch.id, rows);
    newestId = rows.newestId;
  }
  return advance(tx, batch, { count, newestId, now });
}

/** Prepares vouchers of a batch before their transaction. Unused numbers are lost. */
async function prepare(service: Service, count: number): Promise<MadeRows> {
  const { db, buckets, clock } = service;
  const numbers = await takeNumbers(db, count);
  return makeRowsAside(service, { numbers, buckets: buckets.all, now: clock() });
}

/**
 * Writes prepared vouchers in the caller's transaction, which holds the key ring. `advance` records them.
 * @returns how many were written: a voucher whose code exists is skipped
 */
async function write(tx: Queries, batchId: number, rows: MadeRows): Promise<number> {
  const { buckets, serials, codeKeys, pinKeys, sealed, entryIds, at } = rows;
  const [result] = await tx.query<{ made: number }>(sql`
select create_vouchers(${batchId}, ${buckets}::int[], ${serials}::bigint[], ${codeKeys}::uuid[],
  ${pinKeys}::uuid[], ${sealed}::bytea[], ${entryIds}::uuid[], ${at}) as made`);
  return result?.made ?? 0;
}

/** Vouchers that were written, and the greatest id that an activation of them can have. */
type Progress = { readonly count: number; readonly newestId: string | undefined; readonly now: Date };

/**
 * Records the progress of a batch, whose row the caller's transaction holds. The last voucher completes it.
 */
async function advance(tx: Queries, batch: Batch, { count, newestId, now }: Progress): Promise<Batch> {
  const [after] = (await tx.query<Batch>(sql`
update batches set
  produced = produced + ${count}, progressed_at = now(), failures = 0, failing_since = null,
  newest_activation = case
    when value_minor is not null and activation = 'immediate'
      then greatest(newest_activation, ${newestId ?? null}::uuid)
  end,
  status = case when produced + ${count} = quantity then 'COMPLETED' else status end,
  ended_at = case when produced + ${count} = quantity then ${now}::timestamptz end
where id = ${batch.id}
returning ${COLUMNS}`)) as [Batch];
  if (after.status === 'COMPLETED') await enqueueBatchEvent(tx, after, now);
  return after;
}

/**
 * Draws codes that no voucher has under an older key. Under the newest key, the unique index decides. If a
 * voucher is sealed again between the two checks, one of them finds it, since vouchers only move to the
 * newest key.
 */
async function drawFreeCodes(tx: Queries, keys: KeyRing, count: number): Promise<Set<string>> {
  const codes = drawCodes(count);
  if (keys.inUse.length === 1) return codes;
  const byKey = new Map(
    [...codes].flatMap((code) => keys.olderCodeKeys(code).map((key) => [key, code] as const)),
  );
  for (const code of await findTaken(tx, byKey)) codes.delete(code);
  return codes;
}

/**
 * The number of vouchers in a transaction: enough that commits cost little, few enough that a crash loses
 * little work.
 */
const CHUNK = 2_000;
/** Up to this number, vouchers are created in one statement, without a thread. */
const SMALL_CHUNK = 250;
/** The most chunks of a process that are written to the database at a time. */
const CHUNKS_MAX = 2;
/** After this time a large batch goes to the end of the queue. */
const TURN_MS = 1_000;

/**
 * Produces a batch as a job. Every chunk is a transaction that holds the batch's row and records its
 * progress. After a crash, or with two workers on one batch, the result still has exactly the ordered
 * quantity. A permanent failure cancels the batch.
 * @returns 0 if the batch has had its turn and goes to the end of the queue; undefined if it is done
 */
export async function fillBatch(
  service: Service,
  batchId: number,
  stopping: () => boolean,
): Promise<0 | undefined> {
  try {
    return (await takeTurn(service, batchId, stopping)) ? undefined : 0;
  } catch (error) {
    await recordFailure(service, batchId, error);
    return undefined;
  }
}

/** Works on a batch for a turn. @returns whether nothing is left to do */
async function takeTurn(service: Service, batchId: number, stopping: () => boolean): Promise<boolean> {
  const until = Date.now() + TURN_MS;
  const found = await findBatchBy(service.db, sql`id = ${batchId}`);
  if (found?.status !== 'PROCESSING') return true;
  await checkKeyRing(service.db, service.keys);
  let batch: Batch = found;
  for (let last = false; batch.status === 'PROCESSING' && !last; ) {
    last = Date.now() >= until || stopping();
    batch =
      batch.quantity - batch.produced <= SMALL_CHUNK || isRotating(service)
        ? await bookFew(service, batchId)
        : await run(service, batch, () => Date.now() >= until || stopping());
  }
  return batch.status !== 'PROCESSING';
}

/** Whether vouchers are looked up under two keys. New codes are then compared with both, a few at a time. */
function isRotating({ keys }: Service): boolean {
  return keys.inUse.length > 1;
}

/**
 * Creates chunk after chunk until few vouchers are missing, or the turn has ended. Two chunks are prepared,
 * one is written and one is committed at the same time; a commit mostly waits for the disk.
 */
async function run(service: Service, batch: Batch, givesWay: () => boolean): Promise<Batch> {
  let claimed = batch.produced;
  let after = batch;
  const ahead = () => {
    const count = Math.min(CHUNK, batch.quantity - claimed);
    if (count <= SMALL_CHUNK || after.status !== 'PROCESSING') return undefined;
    claimed += count;
    return quietly(prepare(service, count));
  };
  let booked: Promise<Batch> | undefined;
  const made = [ahead(), ahead()];
  for (let next = made.shift(); next; next = made.shift()) {
    const rows = await orBothEnd(next, booked);
    // A prepared chunk is always written.
    if (!givesWay()) made.push(ahead());
    const before = booked;
    booked = quietly(book(service, batch.id, rows));
    if (before) after = await orBothEnd(before, booked);
  }
  return (await booked) ?? after;
}

/** Marks a promise as handled: awaiting it reports its error, which must not end the process earlier. */
function quietly<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/**
 * Waits for one of two promises. If it fails, the error is reported after the other has ended too, so that no
 * work of a turn continues after it.
 */
function orBothEnd<T>(one: Promise<T>, other: Promise<unknown> | undefined): Promise<T> {
  return one.catch(async (error: unknown) => {
    await other?.catch(() => {});
    throw error;
  });
}

/**
 * A prepared chunk that no longer fits: the batch has ended, needs fewer vouchers, or another key seals now.
 */
class Surplus extends Error {}

/**
 * Writes a prepared chunk in one transaction. It locks the batch's row only at its end, so that a second
 * chunk can be written meanwhile, and a cancellation waits for neither. Surplus vouchers are rolled back.
 */
async function book(service: Service, batchId: number, chunk: MadeRows): Promise<Batch> {
  try {
    return await inTransaction(service, async (tx) => {
      await holdKeyRing(tx, service.keys);
      if (chunk.keyId !== service.keys.current || isRotating(service)) throw new Surplus();
      const made = await write(tx, batchId, chunk);
      const batch = await lock(tx, batchId);
      if (batch.status !== 'PROCESSING' || batch.quantity - batch.produced < made) throw new Surplus();
      return advance(tx, batch, { count: made, newestId: chunk.newestId, now: service.clock() });
    });
  } catch (error) {
    if (error instanceof Surplus || isStampRefused(error)) return bookFew(service, batchId);
    throw error;
  }
}

/** Creates a few vouchers under the batch's lock, or finds that the batch has ended. */
function bookFew(service: Service, batchId: number): Promise<Batch> {
  return inTransaction(service, async (tx) => {
    // The same order as for a prepared chunk: the key ring, then the batch.
    await holdKeyRing(tx, service.keys);
    const batch = await lock(tx, batchId);
    if (batch.status !== 'PROCESSING') return batch;
    return produce(service, tx, batch, Math.min(SMALL_CHUNK, batch.quantity - batch.produced));
  });
}

function inTransaction(service: Service, work: (tx: Queries) => Promise<Batch>): Promise<Batch> {
  return retrying(() => turnsOf(service).run(() => service.db.transaction(work)));
}

async function lock(tx: Queries, batchId: number): Promise<Batch> {
  return (await findBatchBy(tx, sql`id = ${batchId} for update`)) as Batch;
}

/**
 * Chunks take turns: two at a time, and one while tills are busy. Batches therefore share the work chunk by
 * chunk, and tills compete with at most one chunk.
 */
const turnsOf = kept(({ db }) => new Turns(db, { atOnce: CHUNKS_MAX }));

/** The background work of batches. Each job of a process takes a core, so more at a time would be slower. */
export const BATCH_JOBS: Group = {
  atOnce: 4,
  tasks: {
    'fill-batch': (service, { subject }, stopping) => fillBatch(service, Number(subject), stopping),
    async 'void-batch'(service, { subject }) {
      await voidBatch(service, Number(subject));
      return undefined;
    },
  },
};
