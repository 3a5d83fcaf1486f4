import { audit, type Change } from '../audit/audit.ts';
import type { Context, Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { retrying } from '../db/retry.ts';
import { enqueue } from '../jobs/enqueue.ts';
import { newId } from '../ledger/id.ts';
import { checkReference } from '../ledger/reference.ts';
import { announceLow, type DebitedFloat } from '../merchants/low-float.ts';
import { permit } from '../merchants/permit.ts';
import { MOST_DECIMALS, MOST_MINOR, toPositiveMinor, toText } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { type Batch, type BatchRow, toBatch } from './batch.ts';
import { produce } from './produce.ts';
import {
  debitFloat,
  findBatchByReference,
  findProduct,
  insertBatch,
  insertBatchEntry,
  insertReserve,
  type NewBatch,
} from './queries.ts';

export type Generate = {
  readonly reference: string;
  /** Left out: the merchant's default product. */
  readonly productCode?: string | undefined;
  readonly quantity: number;
  /** Of each voucher, in major units. Left out: given at activation. */
  readonly value?: number | undefined;
  readonly expiryDate?: Date | undefined;
};

type Product = {
  id: number;
  currency: string;
  decimals: number;
  activation: string;
  scope: string;
  min_value_minor: bigint;
  max_value_minor: bigint;
  max_quantity: number;
  validity_days: number;
  on_sale: boolean;
  merchant_id: number | null;
};

/** Up to here a batch is answered with its vouchers; above, it is produced in the background. */
const MOST_AT_ONCE = 10;
/** The most that any product can be set to. */
const MOST_QUANTITY = 5_000_000;
const DAY_MS = 86_400_000;
/** How long a request may have been under way: who asks for exactly one day gets it, and for a second less does not. */
const TRAVEL_MS = 900;

/**
 * Generates a batch of vouchers and debits the merchant's float by quantity × value, in one step. The same request under its
 * reference again is a replay, and answers what a download would.
 * @param operator who orders on the merchant's behalf, for the audit; left out where the merchant does so itself
 * @throws Refusal `18`, `16`, `13`, `17`, `03`, `15`, `61`, `94`, `50`
 */
export async function generate(
  context: Context,
  request: Generate,
  operator?: Operator,
): Promise<{ batch: Batch; replayed: boolean }> {
  checkReference(request.reference);
  const { service, merchant, now } = context;
  // PostgreSQL takes no NUL in a text: no product can have such a code.
  const isCode = !request.productCode?.includes('\0');
  const [product] = isCode
    ? await service.db.query<Product>(findProduct(request.productCode, merchant.defaultProductId))
    : [];
  const valueMinor = checkValues(request, product, now);
  permit(context, 'generate');
  if (!product?.on_sale || (product.merchant_id !== null && product.merchant_id !== merchant.id))
    throw new Refusal('15');
  if (valueMinor !== null && (valueMinor < product.min_value_minor || valueMinor > product.max_value_minor))
    throw new Refusal('61');

  const wanted: Omit<NewBatch, 'reserveAccount'> = {
    transactionId: newId(now),
    merchantId: merchant.id,
    reference: request.reference,
    productId: product.id,
    quantity: request.quantity,
    valueMinor,
    requestedExpiry: request.expiryDate ?? null,
    expiresAt: request.expiryDate ?? new Date(now.getTime() + product.validity_days * DAY_MS),
    currency: product.currency,
    decimals: product.decimals,
    activation: product.activation,
    scope: product.scope,
    now,
  };
  const prior = await findPrior(service.db, wanted);
  if (prior) return { batch: prior, replayed: true };
  const batch = await retrying(() =>
    service.db.transaction(async (tx) => {
      const accepted = await accept(context, tx, wanted);
      if (operator) await audit(tx, operator, ordered(accepted));
      return accepted;
    }),
  ).catch((error: unknown) => {
    if (error instanceof ReferenceTaken) return undefined;
    throw error;
  });
  if (batch) return { batch, replayed: false };
  // Another copy of the request was faster; its batch is there now.
  return { batch: (await findPrior(service.db, wanted)) as Batch, replayed: true };
}

/** Checks quantity, value and expiry in this order; returns the value in minor units, or null. */
function checkValues(
  { quantity, value, expiryDate }: Generate,
  product: Product | undefined,
  now: Date,
): bigint | null {
  const most = product?.max_quantity ?? MOST_QUANTITY;
  if (!Number.isInteger(quantity) || quantity < 1 || quantity > most) throw new Refusal('16');
  const valueMinor = value === undefined ? null : toPositiveMinor(value, product?.decimals ?? MOST_DECIMALS);
  if (expiryDate && !(expiryDate.getTime() >= now.getTime() + DAY_MS - TRAVEL_MS)) throw new Refusal('17');
  return valueMinor;
}

async function findPrior(db: Queries, wanted: Omit<NewBatch, 'reserveAccount'>): Promise<Batch | undefined> {
  const [row] = await db.query<BatchRow>(findBatchByReference(wanted.merchantId, wanted.reference));
  if (!row) return undefined;
  const same =
    row.product_id === wanted.productId &&
    row.quantity === wanted.quantity &&
    row.value_minor === wanted.valueMinor &&
    row.requested_expiry?.getTime() === wanted.requestedExpiry?.getTime();
  if (!same) throw new Refusal('94');
  return toBatch(row);
}

/** Another copy of the request has its batch: this one's transaction is rolled back as if it had never been. */
class ReferenceTaken extends Error {}

/** What the audit tells of an order. */
function ordered({ transactionId, merchantId, reference, quantity, value, currency }: Batch): Change {
  const after = { merchantId, reference, quantity, value: value && toText(value), currency };
  return { action: 'batch.generate', subject: `batch ${transactionId}`, after };
}

/** In one transaction: the batch, the float's debit, and the vouchers or the job that makes them. */
async function accept(context: Context, tx: Queries, wanted: Omit<NewBatch, 'reserveAccount'>): Promise<Batch> {
  const { merchantId, currency, decimals, valueMinor, quantity, now } = wanted;
  let reserveAccount: bigint | null = null;
  if (valueMinor !== null) {
    const [reserve] = await tx.query<{ id: bigint }>(insertReserve(merchantId, currency, decimals));
    reserveAccount = reserve?.id ?? null;
  }
  const [row] = await tx.query<BatchRow>(insertBatch({ ...wanted, reserveAccount }));
  if (!row) throw new ReferenceTaken();
  const batch = toBatch(row);
  if (valueMinor !== null && reserveAccount !== null) {
    const amountMinor = valueMinor * BigInt(quantity);
    // What no float can hold may be more than the database can compare a balance with.
    const [float] =
      amountMinor > MOST_MINOR ? [] : await tx.query<DebitedFloat>(debitFloat(merchantId, currency, amountMinor));
    if (!float) throw new Refusal('50');
    await announceLow(tx, { merchantId, currency, decimals, float, amountMinor, now });
    const entry = {
      id: newId(now),
      kind: 'RESERVATION',
      debit: float.id,
      credit: reserveAccount,
      amountMinor,
      now,
    } as const;
    await tx.query(insertBatchEntry(batch, entry));
  }
  if (quantity <= MOST_AT_ONCE) return produce(context.service, tx, batch, quantity);
  await enqueue(tx, 'fill-batch', batch.id);
  return batch;
}
