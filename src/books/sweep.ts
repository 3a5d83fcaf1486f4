import type { Service } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray, sql } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';

/** The number of vouchers in one transaction. It is small, so that a till never waits long. */
const CHUNK = 500;
/** The number of batches that are listed at a time. */
const BATCHES = 100;

type Voucher = { readonly serial: bigint; readonly bucket: number };

/**
 * Books what has expired: an EXPIRY for each voucher with a balance, and one RELEASE for all vouchers of a
 * batch that were not activated. It can be interrupted, and can run in several processes at once.
 * @returns the number of swept vouchers
 */
export async function sweepExpired(service: Service, stopping: () => boolean = () => false): Promise<number> {
  let swept = 0;
  for (;;) {
    // Expired batches whose sweep has not finished, earliest expiry first.
    const batches = await service.db.query<{ id: number }>(sql`
select id from batches where status = 'COMPLETED' and swept_at is null and expires_at <= ${service.clock()}
order by expires_at limit ${BATCHES}`);
    let seen = 0;
    for (const { id } of batches) {
      for (let more = true; more && !stopping(); ) {
        const chunk = await sweepBatch(service, id);
        swept += chunk.swept;
        seen += chunk.seen ? 1 : 0;
        more = chunk.more;
      }
    }
    // The loop does not wait for a batch that another sweep has locked.
    if (batches.length < BATCHES || seen === 0 || stopping()) break;
  }
  return swept + (await sweepSingle(service, stopping));
}

/** Sweeps the next vouchers of a batch. */
function sweepBatch(
  service: Service,
  batchId: number,
): Promise<{ swept: number; seen: boolean; more: boolean }> {
  const { db, clock } = service;
  return retrying(() =>
    db.transaction(async (tx) => {
      // There is no row if another sweep has the batch.
      const [batch] = await tx.query<{ sweptTo: bigint }>(sql`
select swept_to as "sweptTo" from batches where id = ${batchId} and swept_at is null for update skip locked`);
      if (!batch) return { swept: 0, seen: false, more: false };
      const now = clock();
      // The next vouchers of a batch after a serial number.
      const found = await tx.query<Voucher & { counts: boolean }>(
        sql`
select serial_number as serial, bucket,
  closed is null and (is_funded(balance_minor, activated_at, payer_id) or expires_at > b.batch_expires_at)
    as counts
from vouchers, (select expires_at as batch_expires_at from batches where id = ${batchId}) b
where batch_id = ${batchId} and serial_number > ${batch.sweptTo} order by serial_number limit ${CHUNK}`,
      );
      const counted = found.filter(({ counts }) => counts);
      const { swept, lapsed } = await sweep(service, tx, counted, batchId, now);
      const last = found.at(-1)?.serial ?? batch.sweptTo;
      const more = found.length === CHUNK;
      // Records the progress of a sweep. @param lapsed how many more vouchers were found inactive
      await tx.query(sql`
update batches set swept_to = ${last}, lapsed = lapsed + ${lapsed}, swept_at = ${more ? null : now}
where id = ${batchId}`);
      // It gives back the price of the vouchers that the sweep found inactive (sql/015-booking.sql).
      if (!more) await tx.query(sql`select release_lapsed(${batchId}, ${newId(now)}, ${now})`);
      return { swept, seen: true, more };
    }),
  );
}

/**
 * Sweeps vouchers that expire separately from their batch. It makes one pass, since a locked voucher stays in
 * the list.
 */
async function sweepSingle(service: Service, stopping: () => boolean): Promise<number> {
  const { db, clock } = service;
  let swept = 0;
  let after: { due: Date | null; serial: bigint } = { due: null, serial: 0n };
  const until = clock();
  for (let more = true; more && !stopping(); ) {
    const page = after;
    more = await retrying(() =>
      db.transaction(async (tx) => {
        // Vouchers that have expired separately from their batch, after the last one of a page.
        const found = await tx.query<Voucher & { due: Date }>(sql`
select serial_number as serial, bucket, due_at as due from voucher_expiries
where due_at <= ${until}
  and (${page.due}::timestamptz is null or (due_at, serial_number) > (${page.due}, ${page.serial}))
order by due_at, serial_number limit ${CHUNK}`);
        swept += (await sweep(service, tx, found, null, clock())).swept;
        const last = found.at(-1);
        if (last) after = last;
        return found.length === CHUNK;
      }),
    );
  }
  return swept;
}

type Swept = { readonly swept: number; readonly lapsed: number };

/** @param batchId the batch whose sweep this is; null for vouchers that expire by themselves */
async function sweep(
  { buckets }: Service,
  tx: Queries,
  vouchers: readonly Voucher[],
  batchId: number | null,
  now: Date,
): Promise<Swept> {
  const sum = { swept: 0, lapsed: 0 };
  for (const bucket of buckets.all) {
    const serials = vouchers.filter((each) => each.bucket === bucket).map((each) => each.serial);
    if (serials.length === 0) continue;
    const ids = serials.map(() => newId(now));
    // Sweeps vouchers of one bucket (sql/015-booking.sql).
    const [row] = await tx.query<Swept>(
      sql`
select swept, lapsed
from sweep_vouchers(${bucket}, ${plainArray(serials)}::bigint[], ${plainArray(ids)}::uuid[], ${batchId},
  ${now})`,
    );
    sum.swept += row?.swept ?? 0;
    sum.lapsed += row?.lapsed ?? 0;
  }
  return sum;
}
