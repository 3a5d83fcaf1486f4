import { type Sql, sql } from '../db/sql.ts';
import type { Batch } from './batch.ts';

export function findProduct(code: string | undefined, defaultId: number): Sql {
  return sql`
select p.id, p.currency, p.decimals, p.activation, p.scope, p.min_value_minor, p.max_value_minor, p.max_quantity,
  p.validity_days, p.on_sale, p.merchant_id
from products p where case when ${code ?? null}::text is null then p.id = ${defaultId} else p.code = ${code ?? null} end`;
}

export function findBatchByReference(merchantId: number, reference: string): Sql {
  return sql`select * from batches where merchant_id = ${merchantId} and reference = ${reference}`;
}

export function findBatchById(id: number): Sql {
  return sql`select * from batches where id = ${id}`;
}

export function lockBatch(id: number): Sql {
  return sql`select * from batches where id = ${id} for update`;
}

export function lockBatchByTransactionId(transactionId: string): Sql {
  return sql`select * from batches where transaction_id = ${transactionId} for update`;
}

export function insertReserve(merchantId: number, currency: string, decimals: number): Sql {
  return sql`
insert into accounts (kind, merchant_id, currency, decimals)
values ('RESERVE', ${merchantId}, ${currency}, ${decimals}) returning id`;
}

export type NewBatch = {
  readonly transactionId: string;
  readonly merchantId: number;
  readonly reference: string;
  readonly productId: number;
  readonly quantity: number;
  readonly valueMinor: bigint | null;
  readonly requestedExpiry: Date | null;
  readonly expiresAt: Date;
  readonly currency: string;
  readonly decimals: number;
  readonly activation: string;
  readonly scope: string;
  readonly reserveAccount: bigint | null;
  readonly now: Date;
};

/** Nothing comes back where the reference is used: then the batch that uses it answers. */
export function insertBatch(batch: NewBatch): Sql {
  return sql`
insert into batches (transaction_id, merchant_id, reference, product_id, quantity, value_minor, requested_expiry, expires_at,
  currency, decimals, activation, scope, reserve_account, accepted_at, progressed_at)
values (${batch.transactionId}, ${batch.merchantId}, ${batch.reference}, ${batch.productId}, ${batch.quantity},
  ${batch.valueMinor}, ${batch.requestedExpiry}, ${batch.expiresAt}, ${batch.currency}, ${batch.decimals},
  ${batch.activation}::product_activation, ${batch.scope}::product_scope, ${batch.reserveAccount}, ${batch.now}, now())
on conflict on constraint batches_reference_once do nothing
returning *`;
}

/** Takes an amount from the merchant's float, or nothing (no row) where it is not there. */
export function debitFloat(merchantId: number, currency: string, amountMinor: bigint): Sql {
  return sql`
update accounts set balance_minor = balance_minor - ${amountMinor}
where coalesce(merchant_id, 0) = ${merchantId} and kind = 'FLOAT' and currency = ${currency} and balance_minor >= ${amountMinor}
returning id, balance_minor, coalesce(low_minor, topped_up_minor / 10) as threshold_minor`;
}

export function creditFloat(merchantId: number, currency: string, amountMinor: bigint): Sql {
  return sql`
update accounts set balance_minor = balance_minor + ${amountMinor}
where coalesce(merchant_id, 0) = ${merchantId} and kind = 'FLOAT' and currency = ${currency}
returning id`;
}

export type BatchEntry = {
  readonly id: string;
  readonly kind: 'RESERVATION' | 'RELEASE';
  readonly debit: bigint;
  readonly credit: bigint;
  readonly amountMinor: bigint;
  readonly now: Date;
};

export function insertBatchEntry(batch: Batch, entry: BatchEntry): Sql {
  return sql`
insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, batch_id, occurred_at)
values (${entry.id}, ${entry.kind}::entry_kind, ${entry.debit}, ${entry.credit}, ${entry.amountMinor}, ${batch.currency},
  ${batch.merchantId}, ${batch.id}, ${entry.now})`;
}

/** Which of these keys of codes are taken. */
export function findCodeKeys(codeKeys: string): Sql {
  return sql`select code_key from vouchers where code_key = any (${codeKeys}::uuid[])`;
}

export function reserveSerials(count: number): Sql {
  return sql`select array_agg(nextval('voucher_serials')::text) as serials from generate_series(1, ${count}::int)`;
}

/**
 * Inserts vouchers and, where they carry their value from the start, their activations. A code that exists already is left
 * out; the number that came to be is returned. Parameters are columns of equal length.
 */
export function insertVouchers(
  batch: Batch,
  columns: { serials: string; codeKeys: string; pinKeys: string; sealed: string; entryIds: string },
): Sql {
  const value = batch.immediate ? (batch.value?.minor ?? null) : null;
  return sql`
with made as (
  insert into vouchers (serial_number, batch_id, code_key, pin_key, sealed, expires_at, value_minor, balance_minor, activated_at)
  select n.serial_number, ${batch.id}, n.code_key, n.pin_key, n.sealed, ${batch.expiresAt}, ${value}::bigint,
    coalesce(${value}::bigint, 0), case when ${value}::bigint is not null then ${batch.acceptedAt}::timestamptz end
  from unnest(${columns.serials}::bigint[], ${columns.codeKeys}::uuid[], ${columns.pinKeys}::uuid[], ${columns.sealed}::bytea[])
    as n (serial_number, code_key, pin_key, sealed)
  on conflict on constraint vouchers_code_unique do nothing
  returning serial_number
), activated as (
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, batch_id, occurred_at)
  select n.id, 'ACTIVATION', ${batch.reserveAccount}::bigint, n.serial_number, ${value}::bigint, ${batch.currency},
    ${batch.merchantId}, n.serial_number, ${batch.id}, ${batch.acceptedAt}
  from unnest(${columns.serials}::bigint[], ${columns.entryIds}::uuid[]) as n (serial_number, id)
  join made on made.serial_number = n.serial_number
  where ${value}::bigint is not null
)
select count(*)::int as made from made`;
}

/** Rows in the binary form, made by rows.ts: the order of the columns is the order of its fields. */
export const copyVouchers = sql`
copy vouchers (serial_number, batch_id, code_key, pin_key, sealed, expires_at, value_minor, balance_minor, activated_at)
from stdin (format binary)`;

export const copyEntries = sql`
copy journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, batch_id, occurred_at)
from stdin (format binary)`;

/** Books progress in the transaction that made it; the last voucher completes the batch. */
export function advanceBatch(id: number, made: number, now: Date): Sql {
  return sql`
update batches set produced = produced + ${made}, progressed_at = now(), failures = 0, failing_since = null,
  status = case when produced + ${made} = quantity then 'COMPLETED' else status end,
  ended_at = case when produced + ${made} = quantity then ${now}::timestamptz end
where id = ${id}
returning *`;
}

export function cancelBatchRow(id: number, now: Date, failure: string | null): Sql {
  return sql`
update batches set status = 'CANCELED', ended_at = ${now}, failure = ${failure} where id = ${id} returning *`;
}

/** A page of a batch's vouchers behind a serial number. */
export function listVouchers(batchId: number, after: bigint, count: number): Sql {
  return sql`
select serial_number, sealed from vouchers
where batch_id = ${batchId} and serial_number > ${after} and closed is null
order by serial_number limit ${count}`;
}

/**
 * Takes back up to `count` vouchers of a canceled batch behind a serial number: each is closed, and what it carried goes back to the reserve,
 * from where the merchant's float has been repaid already.
 */
export function voidVouchers(batch: Batch, after: bigint, entryIds: string, count: number, now: Date): Sql {
  return sql`
with due as materialized (
  select serial_number, balance_minor, row_number() over (order by serial_number) as n from (
    select serial_number, balance_minor from vouchers
    where batch_id = ${batch.id} and serial_number > ${after} and closed is null order by serial_number limit ${count} for update
  ) d
), voided as (
  insert into journal (id, kind, debit_account, credit_account, amount_minor, currency, merchant_id, serial_number, batch_id, occurred_at)
  select i.id, 'VOID', d.serial_number, ${batch.reserveAccount}::bigint, d.balance_minor, ${batch.currency}, ${batch.merchantId},
    d.serial_number, ${batch.id}, ${now}
  from due d join unnest(${entryIds}::uuid[]) with ordinality as i (id, n) on i.n = d.n
  where d.balance_minor > 0
), closed as (
  update vouchers v set closed = 'CANCELED', balance_minor = 0, version = v.version + 1
  from due d where v.serial_number = d.serial_number
)
select count(*)::int as voided, max(serial_number) as last from due`;
}

/** Counts a failure of a batch that is still being produced. */
export function countFailure(id: number, more: number, now: Date): Sql {
  return sql`
update batches set failures = least(failures + ${more}::int, 32767), failing_since = coalesce(failing_since, ${now})
where id = ${id} and status = 'PROCESSING' returning transaction_id, failures, failing_since`;
}

/** Batches that nobody has worked on for a while: their worker is gone. */
export function listStalled(quietSeconds: number): Sql {
  return sql`
select id from batches
where status = 'PROCESSING' and progressed_at < now() - make_interval(secs => ${quietSeconds})
order by progressed_at limit 1000`;
}
