import { randomBytes } from 'node:crypto';
import { audit, type Change } from '../audit/audit.ts';
import type { Context, Operator } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { enqueue } from '../jobs/queue.ts';
import { checkReference, claimIn } from '../ledger/claims.ts';
import { checkStamp } from '../ledger/functions.ts';
import { newId } from '../ledger/id.ts';
import { permitAmount } from '../merchants/merchants.ts';
import { MINOR_MAX, toPositiveUnits, toSum, toText, unitOf } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { DAY_MS } from '../time.ts';
import {
  type Batch,
  type BatchRow,
  findBatchByReference,
  findBatchByTransactionId,
  toBatch,
} from './batch.ts';
import { produce } from './fill.ts';

type NewBatch = {
  readonly transactionId: string;
  readonly merchantId: number;
  readonly reference: string;
  readonly productId: number;
  readonly quantity: number;
  readonly valueMinor: bigint | null;
  readonly expiresAt: Date;
  readonly currency: string;
  readonly decimals: number;
  readonly activation: string;
  readonly scope: string;
  readonly expiryPolicy: string;
  readonly now: Date;
};

/**
 * Finds a product by its code, or the default one. `default_expires_at` is the end of a day in the zone of
 * the books, as cards show it.
 */
function findProduct(code: string | undefined, defaultId: number, now: Date): Sql {
  return sql`
select p.id, p.currency, p.decimals, p.activation, p.scope, p.min_value_minor, p.max_value_minor,
  p.max_quantity, p.expiry_policy, p.on_sale, p.merchant_id,
  ((((${now}::timestamptz + p.validity_days * interval '24 hours') at time zone k.zone)::date + 1)::timestamp
    at time zone k.zone) - interval '1 millisecond' as default_expires_at
from products p, books k
where case when ${code ?? null}::text is null then p.id = ${defaultId} else p.code = ${code ?? null} end`;
}

export type Generate = {
  readonly reference: string;
  /** By default, the merchant's default product. */
  readonly productCode?: string | undefined;
  readonly quantity: number;
  /** The value of each voucher, in major units. Without it, the value is given at activation. */
  readonly value?: number | undefined;
  readonly expiryDate?: Date | undefined;
};

type Product = {
  id: number;
  currency: string;
  decimals: number;
  activation: string;
  scope: string;
  expiry_policy: string;
  min_value_minor: bigint;
  max_value_minor: bigint;
  max_quantity: number;
  default_expires_at: Date;
  on_sale: boolean;
  merchant_id: number | null;
};

/** Up to this quantity, the answer includes the vouchers. Larger batches are produced in the background. */
const IMMEDIATE_MAX = 10;
/** The end of the fingerprint of an order without a product. */
const BY_DEFAULT = ' by default';
/**
 * The allowed transit time of a request: an expiry in exactly one day is accepted, one a second earlier is
 * not.
 */
const TRAVEL_MS = 900;

/**
 * Generates a batch of vouchers and debits the merchant's float by quantity × value, in one transaction. The
 * same request again under its reference is a replay and is answered like a download, even if something has
 * changed since: the expiry date has come near, the product is off sale, or limits were lowered.
 * @param operator orders for the merchant, for the audit; undefined if the merchant itself orders
 * @throws Refusal `18`, `16`, `13`, `03`, `94`, `17`, `15`, `61`, `50`
 */
export async function generate(
  context: Context,
  request: Generate,
  operator?: Operator,
): Promise<{ batch: Batch; replayed: boolean }> {
  checkReference(request.reference);
  if (!Number.isInteger(request.quantity) || request.quantity < 1) throw new Refusal('16');
  const valueUnits = request.value === undefined ? null : toPositiveUnits(request.value);
  const { service, now } = context;
  const product = await productOf(context, request.productCode);
  // A value that the product's currency cannot represent is declined first.
  if (product && valueUnits !== null && !(await isExact(context, request, valueUnits, product)))
    throw new Refusal('13');
  await permitAmount(context, 'generate', valueUnits);
  const order = { ...request, valueUnits, id: newId(now) };
  const made = await retrying(() =>
    service.db.transaction(async (tx) => {
      const id = await claimOrder(context, tx, order, product);
      if (id !== order.id) return { batch: await getBatch(tx, id), replayed: true };
      const batch = await accept(context, tx, toNewBatch(context, order, product));
      if (operator) await audit(tx, operator, ordered(batch));
      return { batch, replayed: false };
    }),
  );
  service.jobs.emit('added');
  return made;
}

type Order = Generate & { readonly valueUnits: bigint | null; readonly id: string };

/**
 * Finds the product of an order; undefined for an unknown code. PostgreSQL accepts no NUL in a text, so no
 * product has such a code.
 */
async function productOf(
  { service, merchant, now }: Context,
  code: string | undefined,
): Promise<Product | undefined> {
  if (code?.includes('\0')) return undefined;
  const [product] = await service.db.query<Product>(findProduct(code, merchant.defaultProductId, now));
  return product;
}

/**
 * Whether the currency of an order can represent its value. It is that of the product. Under a used reference
 * without a product, it may also be that of the batch: the merchant's default product may have changed since.
 */
async function isExact(
  { service, merchant }: Context,
  { reference, productCode }: Generate,
  valueUnits: bigint,
  product: Product,
): Promise<boolean> {
  const fits = ({ decimals }: { decimals: number }) => valueUnits % unitOf(decimals) === 0n;
  if (fits(product)) return true;
  if (productCode !== undefined) return false;
  const [batch] = await service.db.query<BatchRow>(findBatchByReference(merchant.id, reference));
  return batch !== undefined && fits(batch);
}

/**
 * Claims the reference. Orders are the same if quantity, value, requested expiry and product are the same. An
 * order without a product uses the merchant's default product of that time, so its retry is the same order
 * even if the default has changed.
 * @returns the transaction id of the batch under the reference
 * @throws Refusal `94`
 */
async function claimOrder(
  { service, merchant }: Context,
  tx: Queries,
  { reference, productCode, quantity, valueUnits, expiryDate, id }: Order,
  product: Product | undefined,
): Promise<string> {
  const terms = `${quantity} ${valueUnits ?? 'none'} ${expiryDate?.toISOString() ?? 'default'} `;
  const named = `${terms}${product?.id ?? 'unknown'}`;
  const byDefault = `${named}${BY_DEFAULT}`;
  const isByDefault = productCode === undefined;
  const fingerprint = isByDefault ? byDefault : named;
  const claim = await claimIn(tx, service, {
    merchantId: merchant.id,
    operation: 'generate',
    reference,
    id,
    fingerprint,
  });
  const { fingerprint: claimed } = claim;
  const isRetry = isByDefault && claimed.startsWith(terms) && claimed.endsWith(BY_DEFAULT);
  if (!isRetry && claimed !== named && claimed !== byDefault) throw new Refusal('94');
  return claim.id;
}

async function getBatch(tx: Queries, transactionId: string): Promise<Batch> {
  const [row] = await tx.query<BatchRow>(findBatchByTransactionId(transactionId));
  if (!row) throw new Error('an order was claimed, and there is no batch');
  return toBatch(row);
}

function valueLimits({ min_value_minor, max_value_minor, decimals, currency }: Product): string {
  const text = (minor: bigint) => toText({ minor, decimals });
  return `${text(min_value_minor)} to ${text(max_value_minor)} ${currency}`;
}

/** Checks an order against everything that can change over time. @throws Refusal `17`, `15`, `61`, `16` */
function toNewBatch({ merchant, now }: Context, order: Order, product: Product | undefined): NewBatch {
  const { reference, quantity, valueUnits, expiryDate, id } = order;
  if (expiryDate && !(expiryDate.getTime() >= now.getTime() + DAY_MS - TRAVEL_MS)) throw new Refusal('17');
  if (!product?.on_sale || (product.merchant_id !== null && product.merchant_id !== merchant.id))
    throw new Refusal('15');
  const valueMinor = valueUnits === null ? null : valueUnits / unitOf(product.decimals);
  if (valueMinor !== null && (valueMinor < product.min_value_minor || valueMinor > product.max_value_minor))
    throw new Refusal('61', { limit: valueLimits(product) });
  if (quantity > product.max_quantity) throw new Refusal('16', { limit: `1 to ${product.max_quantity}` });
  return {
    transactionId: id,
    merchantId: merchant.id,
    reference,
    productId: product.id,
    quantity,
    valueMinor,
    expiresAt: expiryDate ?? product.default_expires_at,
    currency: product.currency,
    decimals: product.decimals,
    activation: product.activation,
    scope: product.scope,
    expiryPolicy: product.expiry_policy,
    now,
  };
}

/** Returns the data of an order for the audit. */
function ordered({ transactionId, merchantId, reference, quantity, value, currency }: Batch): Change {
  const after = { merchantId, reference, quantity, value: value && toSum(currency, value) };
  return { action: 'batch.generate', subject: `batch ${transactionId}`, after };
}

/**
 * Writes, in one transaction, the batch, the float's debit, and the vouchers or the job that creates them.
 */
async function accept({ service }: Context, tx: Queries, wanted: NewBatch): Promise<Batch> {
  const { quantity } = wanted;
  // The close of a day freezes the terms of the batches that were accepted on it.
  await tx.query(checkStamp(wanted.now));
  const [row] = await tx.query<BatchRow>(sql`
insert into batches (transaction_id, merchant_id, reference, product_id, quantity, value_minor, expires_at,
  currency, decimals, activation, scope, expiry_policy, accepted_at, progressed_at)
values (${wanted.transactionId}, ${wanted.merchantId}, ${wanted.reference}, ${wanted.productId},
  ${wanted.quantity}, ${wanted.valueMinor}, ${wanted.expiresAt}, ${wanted.currency}, ${wanted.decimals},
  ${wanted.activation}::product_activation, ${wanted.scope}::product_scope,
  ${wanted.expiryPolicy}::expiry_policy, ${wanted.now}, now())
returning *`);
  const batch = toBatch(row as BatchRow);
  await reserve(tx, batch, wanted.now);
  if (quantity <= IMMEDIATE_MAX) return produce(service, tx, batch, quantity);
  await enqueue(tx, 'fill-batch', batch.id);
  return batch;
}

/** Moves the price of a batch from the float to its reserve. @throws Refusal `50` */
async function reserve(tx: Queries, { id, quantity, value }: Batch, now: Date): Promise<void> {
  if (!value) return;
  // No float can hold this amount, and the database might not be able to compare it with a balance.
  if (value.minor * BigInt(quantity) > MINOR_MAX) throw new Refusal('50');
  // `done` is false if the float is too low.
  const [reserved] = await tx.query<{ done: boolean }>(
    sql`select reserve_batch(${id}, ${newId(now)}, ${newId(now)}, ${now}) as done`,
  );
  if (!reserved?.done) throw new Refusal('50');
}

/** Returns a unique reference without a look-up: an order of a person is never sent without a reference. */
export function newReference(): string {
  return `order-${new Date().toISOString().slice(0, 10)}-${randomBytes(4).toString('hex')}`;
}
