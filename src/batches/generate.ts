import { randomBytes } from 'node:crypto';
import { checkLimits, countIssued, type Issued, noted, RefusedOrder } from '../api-keys/daily-limits.ts';
import { audit, type Change } from '../audit/audit.ts';
import type { Context, Operator } from '../context.ts';
import { retrying } from '../db/errors.ts';
import type { Queries } from '../db/pool.ts';
import { insertInto, sql } from '../db/sql.ts';
import { enqueue } from '../jobs/queue.ts';
import { askedBy } from '../ledger/booking.ts';
import { checkReference, claimIn } from '../ledger/claims.ts';
import { newId } from '../ledger/id.ts';
import { checkStamp } from '../ledger/journal.ts';
import { permitAmount } from '../merchants/merchants.ts';
import { MINOR_MAX, toPositiveUnits, toSum, toText, unitOf } from '../money.ts';
import { type Product, ProductRow } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import { columnsOf } from '../row.ts';
import { DAY_MS } from '../time.ts';
import { type Batch, COLUMNS, findBatchBy, findBatchOf } from './batch.ts';
import { produce } from './fill.ts';

export type Generate = {
  readonly reference: string;
  /** By default, the merchant's default product. */
  readonly productCode?: string | undefined;
  readonly quantity: number;
  /** The value of each voucher, in major units. Without it, the value is given at activation. */
  readonly value?: number | undefined;
  readonly expiryDate?: Date | undefined;
};

type Generated = { readonly batch: Batch; readonly replayed: boolean };

/** A product with the end of the vouchers that are ordered now, if the order names none. */
type Offer = Product & { readonly expiresAt: Date };

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
 * @throws Refusal `18`, `16`, `13`, `03`, `94`, `17`, `15`, `61`, `50`
 */
export function generate(context: Context, request: Generate): Promise<Generated> {
  return noted(context.service.db, generateWithin(context, request));
}

/**
 * The same in the transaction of its caller, who notes a refusal by a limit (`noted`).
 * @param operator orders for the merchant, for the audit
 */
export async function generateWithin(
  context: Context,
  request: Generate,
  operator?: Operator,
): Promise<Generated> {
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
  const price = product && valueUnits !== null ? priceOf(context, order, product) : undefined;
  const made = await retrying(() =>
    service.db.transaction(async (tx) => {
      const id = await claimOrder(context, tx, order, product);
      if (id !== order.id) return { batch: (await findBatchOf(tx, id)) as Batch, replayed: true };
      if (price) await checkLimits(tx, price);
      const offer = check(context, order, product);
      await boundOutstanding(context, tx, order, offer);
      const batch = await accept(context, tx, order, offer);
      if (price) await countIssued(tx, price, 'ok');
      if (operator) await audit(tx, operator, ordered(batch));
      return { batch, replayed: false };
    }),
  );
  service.jobs.emit('added');
  return made;
}

type Order = Generate & { readonly valueUnits: bigint | null; readonly id: string };

/**
 * Finds the product of an order by its code, or the merchant's default one; undefined for an unknown code.
 * PostgreSQL accepts no NUL in a text, so no product has such a code. Vouchers end with a day or a year in
 * the zone of the books, as cards show it.
 */
async function productOf(
  { service, merchant, now }: Context,
  code: string | undefined,
): Promise<Offer | undefined> {
  if (code?.includes('\0')) return undefined;
  const [product] = await service.db.query<Offer>(sql`
select ${columnsOf(ProductRow, 'p')},
  (coalesce(
    date_trunc('year', ${now}::timestamptz at time zone k.zone)
      + make_interval(years => split_part(p.validity, 'y', 1)::int + 1),
    date_trunc('day', (${now}::timestamptz + p.validity_days * interval '24 hours') at time zone k.zone)
      + interval '1 day'
  ) at time zone k.zone) - interval '1 millisecond' as "expiresAt"
from products p, books k
where ${code === undefined ? sql`p.id = ${merchant.defaultProductId}` : sql`p.code = ${code}`}`);
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
  product: Offer,
): Promise<boolean> {
  const fits = ({ decimals }: { decimals: number }) => valueUnits % unitOf(decimals) === 0n;
  if (fits(product)) return true;
  if (productCode !== undefined) return false;
  const batch = await findBatchBy(service.db, sql`merchant_id = ${merchant.id} and reference = ${reference}`);
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
  product: Offer | undefined,
): Promise<string> {
  const terms = `${quantity} ${valueUnits ?? 'none'} ${expiryDate?.toISOString() ?? 'default'} `;
  const named = `${terms}${product?.id ?? 'unknown'}`;
  const byDefault = `${named}${BY_DEFAULT}`;
  const isByDefault = productCode === undefined;
  const fingerprint = isByDefault ? byDefault : named;
  const wanted = { merchantId: merchant.id, operation: 'generate', reference, id, fingerprint } as const;
  const claim = await claimIn(tx, service, wanted);
  const { fingerprint: claimed } = claim;
  const isRetry = isByDefault && claimed.startsWith(terms) && claimed.endsWith(BY_DEFAULT);
  if (!isRetry && claimed !== named && claimed !== byDefault) throw new Refusal('94');
  return claim.id;
}

/** Returns the price of an order that a daily limit bounds; undefined without one. */
function priceOf(context: Context, order: Order, product: Product): Issued | undefined {
  if (!context.merchant.isLimited) return undefined;
  return { context, currency: product.currency, amountMinor: amountOf(order, product) };
}

function amountOf({ quantity, valueUnits }: Order, product: Product): bigint {
  const price = (valueIn(product, valueUnits) ?? 0n) * BigInt(quantity);
  // No float covers more, nor does a column hold it.
  return price > MINOR_MAX ? MINOR_MAX : price;
}

/**
 * Adds the price of an order to what the vouchers of its product hold, if the product bounds that
 * (sql/028-outstanding.sql).
 * @throws RefusedOrder
 */
async function boundOutstanding(
  { merchant, now }: Context,
  tx: Queries,
  order: Order,
  product: Offer,
): Promise<void> {
  const amount = amountOf(order, product);
  if (product.outstandingMax === null || amount === 0n) return;
  const lock = sql`select lock_held(${product.id}, ${amount}, ${now})`;
  await tx.query(lock);
  const [held] = await tx.query<{ fits: boolean }>(sql`select hold(${product.id}, ${amount}) as fits`);
  if (held?.fits) return;
  throw new RefusedOrder('product-outstanding', async (db) => {
    await db.query(lock);
    await db.query(sql`select note_full(${product.id}, ${merchant.id}, ${newId(now)}, ${now})`);
  });
}

/** Checks an order against everything that can change over time. @throws Refusal `17`, `15`, `61`, `16` */
function check({ merchant, now }: Context, order: Order, product: Offer | undefined): Offer {
  const { quantity, valueUnits, expiryDate } = order;
  if (expiryDate && !(expiryDate.getTime() >= now.getTime() + DAY_MS - TRAVEL_MS)) throw new Refusal('17');
  if (!product?.onSale || ![null, String(merchant.id)].includes(product.merchantId)) throw new Refusal('15');
  const { minValue, maxValue, maxQuantity, decimals, currency } = product;
  const value = valueIn(product, valueUnits);
  const text = (minor: bigint) => toText({ minor, decimals });
  if (value !== null && (value < minValue || value > maxValue))
    throw new Refusal('61', { limit: `${text(minValue)} to ${text(maxValue)} ${currency}` });
  if (quantity > maxQuantity) throw new Refusal('16', { limit: `1 to ${maxQuantity}` });
  return product;
}

const valueIn = ({ decimals }: Product, units: bigint | null) => units && units / unitOf(decimals);

/** Returns the data of an order for the audit. */
function ordered({ transactionId, merchantId, reference, quantity, value, currency }: Batch): Change {
  const sum = value === null ? null : toSum(currency, value);
  const after = { merchantId: Number(merchantId), reference, quantity, value: sum };
  return { action: 'batch.generate', subject: `batch ${transactionId}`, after };
}

/**
 * Writes, in one transaction, the batch, the float's debit, and the vouchers or the job that creates them.
 */
async function accept(
  context: Context,
  tx: Queries,
  { id, reference, quantity, valueUnits, expiryDate }: Order,
  product: Offer,
): Promise<Batch> {
  const { service, merchant, now } = context;
  // The close of a day freezes the terms of the batches that were accepted on it.
  await tx.query(checkStamp(now));
  const { currency, decimals, activation, scope } = product;
  const [batch] = (await tx.query<Batch>(sql`
${insertInto('batches', {
  transaction_id: id,
  merchant_id: merchant.id,
  reference,
  key_id: askedBy(context),
  product_id: product.id,
  quantity,
  value_minor: valueIn(product, valueUnits),
  expires_at: expiryDate ?? product.expiresAt,
  currency,
  decimals,
  activation,
  scope,
  expiry_policy: product.expiryPolicy,
  accepted_at: now,
  progressed_at: sql`now()`,
})} returning ${COLUMNS}`)) as [Batch];
  await reserve(tx, batch, now);
  if (quantity <= IMMEDIATE_MAX) return produce(service, tx, batch, quantity);
  await enqueue(tx, 'fill-batch', batch.id);
  return batch;
}

/** Moves the price of a batch from the float to its reserve. @throws Refusal `50` */
async function reserve(tx: Queries, { id, quantity, value }: Batch, now: Date): Promise<void> {
  if (value === null) return;
  // No float can hold this amount, and the database might not be able to compare it with a balance.
  if (value * BigInt(quantity) > MINOR_MAX) throw new Refusal('50');
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
