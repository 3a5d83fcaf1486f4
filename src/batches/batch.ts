import Type, { type Static } from 'typebox';
import type { Database, Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { balance, SETTING } from '../figure.ts';
import { newId } from '../ledger/id.ts';
import { toNumber } from '../money.ts';
import { notFound } from '../problem.ts';
import { columnsOf } from '../row.ts';
import {
  Count,
  MerchantId,
  Money,
  Nullable,
  NullableTime,
  Text,
  Time,
  Titled,
  TransactionId,
  Word,
} from '../schema.ts';
import { enqueueEvent } from '../webhooks/outbox.ts';

/** The row of a batch of vouchers (docs/reference/interface.md, "Voucher batch"). */

export const BATCH_STATUSES = ['PROCESSING', 'COMPLETED', 'CANCELED'] as const;
export const BatchStatus = Word(BATCH_STATUSES, {
  'x-labels': { PROCESSING: 'In production' },
});

export const BatchSchema = Type.Object({
  transactionId: TransactionId,
  merchantId: MerchantId,
  reference: Text,
  status: BatchStatus,
  quantity: Count,
  /** The number of vouchers that exist now. */
  produced: Count,
  /** The value of each voucher; null if it is given at activation. */
  value: Nullable(Money(SETTING)),
  currency: Text,
  acceptedAt: Titled('Ordered', Time),
});

export const BatchProgress = Type.Object({ ...BatchSchema.properties, percent: Count });

const BatchRow = Type.Object({
  id: Type.Integer(),
  decimals: Type.Integer(),
  ...BatchSchema.properties,
});

/** A batch. Its value is in minor units. */
export type Batch = Static<typeof BatchRow> & {
  /** The produced share in whole percent: 100 only if it is complete. */
  readonly percent: number;
  readonly expiryDate: Date;
  /** The reason why it was canceled, if a failure ended it. */
  readonly failure: string | null;
};

const PROGRESS = sql`${columnsOf(BatchRow, 'batches')}, 100 * batches.produced / batches.quantity as percent`;
const EXPIRY = sql`batches.expires_at as "expiryDate"`;

export const COLUMNS = sql`${PROGRESS}, ${EXPIRY}, batches.failure`;

/** Finds a batch by a condition. It can end with a lock. */
export async function findBatchBy(db: Queries, condition: Sql): Promise<Batch | undefined> {
  const [batch] = await db.query<Batch>(sql`select ${COLUMNS} from batches where ${condition}`);
  return batch;
}

/** Finds a batch by its transaction id. Cheap enough to be polled. */
export async function findBatchOf(db: Queries, transactionId: string): Promise<Batch | undefined> {
  return findBatchBy(db, sql`transaction_id = ${transactionId}`);
}

/** @throws Problem if there is no such batch */
export async function getBatch(db: Queries, transactionId: string): Promise<Batch> {
  return (await findBatchOf(db, transactionId)) ?? Promise.reject(notFound(`batch ${transactionId}`));
}

/**
 * Renders a batch for answers and webhooks, without its vouchers (docs/reference/interface.md, "Voucher
 * batch").
 */
export function batchData({ reference, transactionId, status, expiryDate, value, decimals }: Batch) {
  return {
    reference,
    transactionId,
    status,
    expiryDate: expiryDate.toISOString(),
    value: value === null ? null : toNumber({ minor: value, decimals }),
  };
}

/**
 * Adds the event of a `COMPLETED` or `CANCELED` batch to the outbox, in the transaction that changed its
 * status.
 */
export async function enqueueBatchEvent(tx: Queries, batch: Batch, now: Date): Promise<void> {
  await enqueueEvent(tx, {
    merchantId: Number(batch.merchantId),
    type: batch.status === 'COMPLETED' ? 'voucher.batch.completed' : 'voucher.batch.canceled',
    eventId: newId(now),
    subjectId: batch.transactionId,
    data: { ...batchData(batch), quantity: batch.quantity },
    now,
  });
}

/** What only the operator sees of a batch. */
export const BatchWithVouchers = Type.Object({
  ...BatchProgress.properties,
  keyId: Nullable(Text, {
    description: 'The API key that ordered it; null: the operator, or a person of the merchant.',
  }),
  product: Text,
  expiryDate: Titled('Expires', Time),
  endedAt: NullableTime,
  failure: Nullable(Type.String({ description: 'The reason why it was canceled, if a failure ended it.' })),
  open: { ...Count, description: 'Vouchers that are neither canceled nor replaced.' },
  /** A replaced one counts once, with its successor. */
  activated: Count,
  balance: Money(
    balance({ account: 'VOUCHER', batch: '{transactionId}' }),
    'The total balance of its vouchers.',
  ),
});

export type BatchWithVouchers = Batch & Static<typeof BatchWithVouchers>;

/** Returns a batch with what its vouchers are now. @throws Problem */
export async function requireBatch(db: Database, transactionId: string): Promise<BatchWithVouchers> {
  const found = await getBatch(db, transactionId);
  const [batch] = await db.transaction(async (tx) => {
    // Reading five million vouchers takes longer than a request may.
    await tx.query(sql`set local statement_timeout = '2min'`);
    // The details of a batch for the operator. It reads all its vouchers.
    return tx.query<BatchWithVouchers>(sql`
select ${PROGRESS}, key_id as "keyId", p.code as product, ${EXPIRY}, ended_at as "endedAt", failure,
  v.open, v.activated, v.balance
from batches
join products p on p.id = product_id
cross join (
  select count(*) filter (where closed is null)::int as open,
    count(*) filter (where activated_at is not null and closed is distinct from 'REPLACED')::int as activated,
    coalesce(sum(balance_minor), 0)::bigint as balance
  from vouchers where batch_id = ${found.id}
) v
where batches.id = ${found.id}`);
  }, 'repeatable read');
  if (!batch) throw new Error('a batch has no product');
  return batch;
}
