import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Batch, type BatchRow, toBatch } from './batch.ts';
import {
  allowLongDetails,
  type BatchFilter,
  findBatchByTransactionId,
  findBatchDetails,
  listBatchRows,
} from './queries.ts';

/** What the operator sees of a batch, in addition to what its merchant sees. */
export type BatchDetails = {
  readonly product: string;
  readonly failure: string | null;
  readonly endedAt: Date | null;
  /** Vouchers that are neither canceled nor replaced. */
  readonly open: number;
  /** Activated vouchers; a replaced one counts once, with its successor. */
  readonly activated: number;
  /** What its vouchers carry together, in minor units. */
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

/** A page of batches, newest first, before an id. */
export async function pageOfBatches(
  db: Queries,
  filter: BatchFilter,
  before: number | null,
  limit: number,
): Promise<Batch[]> {
  return (await db.query<BatchRow>(listBatchRows(filter, before, limit))).map(toBatch);
}

/** A batch by its transaction id, with details for the operator; undefined if there is none. */
export async function findBatchForOperator(
  { readDb }: Service,
  transactionId: string,
): Promise<{ batch: Batch; details: BatchDetails } | undefined> {
  const [row] = await readDb.query<BatchRow>(findBatchByTransactionId(transactionId));
  if (!row) return undefined;
  const [details] = await readDb.transaction(async (tx) => {
    await tx.query(allowLongDetails);
    return tx.query<DetailsRow>(findBatchDetails(row.id));
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

/** A batch as it is now, and its failure if one canceled it. Cheap enough to be polled. */
export async function findProgress(
  db: Queries,
  transactionId: string,
): Promise<{ batch: Batch; failure: string | null } | undefined> {
  const [row] = await db.query<BatchRow & { failure: string | null }>(
    findBatchByTransactionId(transactionId),
  );
  return row && { batch: toBatch(row), failure: row.failure };
}

/** How much of a batch exists, in whole percent: 100 only if it is complete. */
export function percentOf({ produced, quantity }: Pick<Batch, 'produced' | 'quantity'>): number {
  return Math.floor((100 * produced) / quantity);
}
