import { type Sql, sql } from '../db/sql.ts';

/** Batches that have expired, and whose vouchers the sweep has not all seen, the earliest expiry first. */
export function listExpiredBatches(now: Date, count: number): Sql {
  return sql`
select id from batches where status = 'COMPLETED' and swept_at is null and expires_at <= ${now}
order by expires_at limit ${count}`;
}

/** Locks a batch for a sweep; nothing where another sweep has it. */
export function lockExpiredBatch(id: number): Sql {
  return sql`
select swept_to from batches where id = ${id} and swept_at is null for update skip locked`;
}

/** The next vouchers of a batch behind a serial number. */
export function listBatchSerials(id: number, after: bigint, count: number): Sql {
  return sql`
select serial_number, bucket, balance_minor > 0 or expires_at > b.batch_expires_at as counts
from vouchers, (select expires_at as batch_expires_at from batches where id = ${id}) b
where batch_id = ${id} and serial_number > ${after} order by serial_number limit ${count}`;
}

export function setSwept(id: number, sweptTo: bigint, sweptAt: Date | null): Sql {
  return sql`update batches set swept_to = ${sweptTo}, swept_at = ${sweptAt} where id = ${id}`;
}

/** Vouchers that are due by themselves, behind the last one of a page. */
export function listDueVouchers(now: Date, after: { due: Date | null; serial: bigint }, count: number): Sql {
  return sql`
select serial_number, bucket, due_at from voucher_expiries
where due_at <= ${now} and (${after.due}::timestamptz is null
  or (due_at, serial_number) > (${after.due}, ${after.serial}))
order by due_at, serial_number limit ${count}`;
}

/** Sweeps vouchers of one bucket (sql/015-booking.sql). */
export function sweepVouchers(bucket: number, serials: string, ids: string, now: Date): Sql {
  return sql`select sweep_vouchers(${bucket}, ${serials}::bigint[], ${ids}::uuid[], ${now}) as swept`;
}

/** Whether anything that expired before a time was not swept. (Citus takes no subquery without a column.) */
export function findUnswept(before: Date): Sql {
  return sql`
select exists (
    select 1 from batches where status = 'COMPLETED' and swept_at is null and expires_at < ${before}
  )
  or exists (select 1 from voucher_expiries where due_at < ${before}) as found`;
}
