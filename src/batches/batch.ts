import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { newId } from '../ledger/id.ts';
import { type Money, toNumber } from '../money.ts';
import { enqueueEvent } from '../webhooks/outbox.ts';

export function findBatchByTransactionId(transactionId: string): Sql {
  return sql`select * from batches where transaction_id = ${transactionId}`;
}

export function findBatchById(id: number): Sql {
  return sql`select * from batches where id = ${id}`;
}

/** Finds a batch by merchant and reference. The batch stores the reference in addition to its claim. */
export function findBatchByReference(merchantId: number, reference: string): Sql {
  return sql`select * from batches where merchant_id = ${merchantId} and reference = ${reference}`;
}

export type BatchFilter = { readonly merchantId: number | null; readonly status: string | null };

/** Lists a page of batches, newest first, before an id. Each filter has an index (sql/019-operator.sql). */
export const listBatchRows = (
  { merchantId, status }: BatchFilter,
  before: number | null,
  limit: number,
) => sql`
select * from batches where (${before}::int is null or id < ${before}::int)
  ${merchantId === null ? sql`` : sql`and merchant_id = ${merchantId}`}
  ${status === null ? sql`` : sql`and status = ${status}::batch_status`}
order by id desc limit ${limit}`;

/** A batch of vouchers (docs/reference/interface.md, "Voucher batch"). */
export type Batch = {
  readonly id: number;
  readonly transactionId: string;
  readonly merchantId: number;
  readonly reference: string;
  readonly status: 'PROCESSING' | 'COMPLETED' | 'CANCELED';
  readonly quantity: number;
  /** The number of vouchers that exist now. */
  readonly produced: number;
  /** The value of each voucher; null if it is given at activation. */
  readonly value: Money | null;
  readonly currency: string;
  readonly expiresAt: Date;
  readonly acceptedAt: Date;
  /** Whether its vouchers are active from the start, paid from its reserve. */
  readonly immediate: boolean;
};

export type BatchRow = {
  id: number;
  transaction_id: string;
  merchant_id: number;
  reference: string;
  status: Batch['status'];
  quantity: number;
  produced: number;
  value_minor: bigint | null;
  decimals: number;
  currency: string;
  expires_at: Date;
  accepted_at: Date;
  activation: 'immediate' | 'on-activation';
};

export function toBatch(row: BatchRow): Batch {
  return {
    id: row.id,
    transactionId: row.transaction_id,
    merchantId: row.merchant_id,
    reference: row.reference,
    status: row.status,
    quantity: row.quantity,
    produced: row.produced,
    value: row.value_minor === null ? null : { minor: row.value_minor, decimals: row.decimals },
    currency: row.currency,
    expiresAt: row.expires_at,
    acceptedAt: row.accepted_at,
    immediate: row.activation === 'immediate' && row.value_minor !== null,
  };
}

/**
 * Renders a batch for answers and webhooks, without its vouchers (docs/reference/interface.md, "Voucher
 * batch").
 */
export function batchData({ reference, transactionId, status, expiresAt, value }: Batch) {
  return {
    reference,
    transactionId,
    status,
    expiryDate: expiresAt.toISOString(),
    value: value && toNumber(value),
  };
}

/**
 * Adds the event of a `COMPLETED` or `CANCELED` batch to the outbox, in the transaction that changed its
 * status.
 */
export async function enqueueBatchEvent(tx: Queries, batch: Batch, now: Date): Promise<void> {
  await enqueueEvent(tx, {
    merchantId: batch.merchantId,
    type: batch.status === 'COMPLETED' ? 'voucher.batch.completed' : 'voucher.batch.canceled',
    eventId: newId(now),
    subjectId: batch.transactionId,
    data: { ...batchData(batch), quantity: batch.quantity },
    now,
  });
}

/** The data of a batch that only the operator sees. */
export type BatchDetails = {
  readonly product: string;
  readonly failure: string | null;
  readonly endedAt: Date | null;
  /** Vouchers that are neither canceled nor replaced. */
  readonly open: number;
  /** Activated vouchers; a replaced one counts once, with its successor. */
  readonly activated: number;
  /** The total balance of its vouchers, in minor units. */
  readonly balanceMinor: bigint;
  readonly decimals: number;
};

type DetailsRow = {
  product: string;
  failure: string | null;
  ended_at: Date | null;
  open: bigint;
  activated: bigint;
  balance_minor: bigint;
  decimals: number;
};

/** Returns a page of batches, newest first, before an id. */
export async function pageOfBatches(
  db: Queries,
  filter: BatchFilter,
  before: number | null,
  limit: number,
): Promise<Batch[]> {
  return (await db.query<BatchRow>(listBatchRows(filter, before, limit))).map(toBatch);
}

/** Finds a batch by its transaction id, with details for the operator; undefined if there is none. */
export async function findBatchForOperator(
  { readDb }: Service,
  transactionId: string,
): Promise<{ batch: Batch; details: BatchDetails } | undefined> {
  const [row] = await readDb.query<BatchRow>(findBatchByTransactionId(transactionId));
  if (!row) return undefined;
  const [details] = await readDb.transaction(async (tx) => {
    // Reading five million vouchers takes longer than a request may.
    await tx.query(sql`set local statement_timeout = '2min'`);
    // The details of a batch for the operator. It reads all its vouchers.
    return tx.query<DetailsRow>(sql`
select p.code as product, b.failure, b.ended_at, b.decimals, v.open, v.activated, v.balance_minor
from batches b
join products p on p.id = b.product_id
cross join (
  select count(*) filter (where closed is null) as open,
    count(*) filter (where activated_at is not null and closed is distinct from 'REPLACED') as activated,
    coalesce(sum(balance_minor), 0)::bigint as balance_minor
  from vouchers where batch_id = ${row.id}
) v
where b.id = ${row.id}`);
  }, 'repeatable read');
  if (!details) throw new Error('a batch has no product');
  return {
    batch: toBatch(row),
    details: {
      product: details.product,
      failure: details.failure,
      endedAt: details.ended_at,
      open: Number(details.open),
      activated: Number(details.activated),
      balanceMinor: details.balance_minor,
      decimals: details.decimals,
    },
  };
}

/**
 * Reads the current state of a batch, and the failure that canceled it, if any. Cheap enough to be polled.
 */
export async function findProgress(
  db: Queries,
  transactionId: string,
): Promise<{ batch: Batch; failure: string | null } | undefined> {
  const [row] = await db.query<BatchRow & { failure: string | null }>(
    findBatchByTransactionId(transactionId),
  );
  return row && { batch: toBatch(row), failure: row.failure };
}

/** Returns the produced share of a batch in whole percent: 100 only if it is complete. */
export function percentOf({ produced, quantity }: Pick<Batch, 'produced' | 'quantity'>): number {
  return Math.floor((100 * produced) / quantity);
}
