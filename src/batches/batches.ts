import Type, { type Static } from 'typebox';
import type { Context } from '../context.ts';
import { sql } from '../db/sql.ts';
import { listing, listingAll } from '../listing.ts';
import { actFor, findMerchant, requireMerchant } from '../merchants/merchants.ts';
import { toText } from '../money.ts';
import { alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { MANAGE, SEE_VOUCHERS } from '../principal.ts';
import { notFound, Problem } from '../problem.ts';
import { findProduct, type Product, ProductCode, QUANTITY_MAX } from '../products/products.ts';
import { OverLimit, Refusal, type RefusalCode } from '../refusal.ts';
import {
  Count,
  End,
  Line,
  MerchantId,
  Nullable,
  NullableTime,
  Time,
  TransactionId,
  toId,
} from '../schema.ts';
import { toEnd } from '../zone.ts';
import {
  type Batch,
  BatchProgress,
  BatchSchema,
  BatchStatus,
  BatchWithVouchers,
  COLUMNS,
  getBatch,
  requireBatch,
} from './batch.ts';
import { cancelBatch } from './cancel.ts';
import { countExports, ExportSchema, listExports, SHEETS_MAX } from './export.ts';
import { generateWithin, newReference } from './generate.ts';

const Ordered = Type.Object({ ...BatchProgress.properties, expiryDate: Time, replayed: Type.Boolean() });
const Shown = Type.Object({
  ...BatchWithVouchers.properties,
  exports: Count,
  lastExport: NullableTime,
  sheetsMax: { ...Count, description: 'The most vouchers that printed sheets hold.' },
});

export type OrderedBatch = Static<typeof Ordered>;

const order = changing({
  name: 'batch.generate',
  title: 'Order vouchers',
  summary: 'Order a batch for a merchant, with its permissions and from its float; the answer shows no codes',
  path: '/batches',
  input: {
    merchantId: MerchantId,
    quantity: Type.Integer({
      minimum: 1,
      maximum: QUANTITY_MAX,
      description: 'How many vouchers.',
      examples: [3],
    }),
    product: Type.Optional({
      ...ProductCode,
      description: "The product. Left out: the merchant's default.",
    }),
    value: Type.Optional(
      Nullable(
        Type.Number({ exclusiveMinimum: 0, description: 'Of each voucher; null: given at activation.' }),
      ),
    ),
    expiryDate: Type.Optional({
      ...End("When the vouchers expire; left out: the product's validity."),
      option: 'expiry',
    }),
    reference: Type.Optional(
      Line(100, "The merchant's reference: a repetition is the same order.", 'order-10071'),
    ),
  },
  output: Ordered,
  roles: MANAGE,
  approval: alone(
    "The float of the merchant pays, within the merchant's permissions. The codes stay inside: two people let them out.",
  ),
  risk: 'step-up',
  status: 201,
  async run(caller, input) {
    const { id } = await requireMerchant(caller, input.merchantId, 'merchantId');
    const { reference = newReference(), quantity, product: productCode, value, expiryDate: end } = input;
    const expiryDate = end === undefined ? undefined : await toEnd(caller, end, 'expiryDate');
    const order = { reference, quantity, value: value ?? undefined, productCode, expiryDate };
    try {
      const context = (await actFor(caller.service, id)) as Context;
      const { batch, replayed } = await generateWithin(context, order, caller);
      return { ...batch, replayed };
    } catch (error) {
      if (error instanceof Refusal && !(error instanceof OverLimit))
        throw await explained(error, caller, id, productCode);
      throw error;
    }
  },
});

const REASONS: Partial<Record<RefusalCode, string>> = {
  '03': 'the merchant may not generate: give it the permission first',
  '04': 'the merchant is suspended: resume it first',
  '13': 'a value is above zero and has no more decimals than the currency',
  '15': 'the product is unknown, off sale, or belongs to another merchant',
  '17': 'it must be at least one day from now',
  '18': 'a reference has 1 to 100 characters, no control characters, and does not begin with CANCEL- or NEW-',
  '50': 'the float is less than quantity × value: top it up first',
  '94': 'the merchant has used it for another order',
};

/** Adds to a refusal of an order what the operator can do about it. */
async function explained(
  { code, message }: Refusal,
  { service: { db } }: Caller,
  merchantId: number,
  productCode?: string,
) {
  let reason = REASONS[code];
  if (code === '16' || code === '61') {
    const named = productCode ?? (await findMerchant(db, merchantId))?.product;
    const product = named === undefined ? undefined : await findProduct(db, named);
    if (product) reason = boundsOf(product)[code];
  }
  return new Refusal(code, { message: `${message} (${code})${reason === undefined ? '' : `: ${reason}`}` });
}

function boundsOf({ code, currency, decimals, maxQuantity, minValue, maxValue }: Product) {
  const text = (minor: bigint) => toText({ minor, decimals });
  return {
    '16': `a batch of ${code} has up to ${maxQuantity} vouchers`,
    '61': `vouchers of ${code} have values from ${text(minValue)} to ${text(maxValue)} ${currency}`,
  };
}

const list = listing({
  name: 'batch.list',
  summary: 'List batches, newest first',
  path: '/batches',
  filters: {
    merchantId: Type.Optional(MerchantId),
    product: Type.Optional(ProductCode),
    status: Type.Optional(BatchStatus),
  },
  item: BatchSchema,
  columns: ['transactionId', 'merchantId', 'reference', 'status', 'quantity', 'produced'],
  roles: SEE_VOUCHERS,
  // Each filter has an index (sql/001-core.sql, sql/019-operator.sql).
  sorts: { id: sql`id`, isNewestFirst: true, keys: { acceptedAt: null } },
  rows: ({ service }, { merchantId, product, status }, _after, count, order) =>
    service.readDb.query<Batch>(sql`
select ${COLUMNS} from batches where ${order.after}
  ${merchantId === undefined ? sql`` : sql`and merchant_id = ${toId(merchantId, 'merchantId')}`}
  ${product === undefined ? sql`` : sql`and product_id = (select id from products where code = ${product})`}
  ${status === undefined ? sql`` : sql`and status = ${status}::batch_status`}
order by ${order.by} limit ${count}`),
});

const show = reading({
  name: 'batch.show',
  summary: 'Get a batch, and the states of its vouchers',
  path: '/batches/:transactionId',
  input: { transactionId: TransactionId },
  output: Shown,
  roles: SEE_VOUCHERS,
  async run({ service: { readDb } }, { transactionId }) {
    const batch = await requireBatch(readDb, transactionId);
    return { ...batch, ...(await countExports(readDb, batch.id)), sheetsMax: SHEETS_MAX };
  },
});

const cancel = changing({
  name: 'batch.cancel',
  title: 'Cancel the batch',
  summary:
    'Cancel a batch that is being produced: none of its vouchers can be used, and its price goes back to the float',
  path: '/batches/:transactionId/cancel',
  input: { transactionId: TransactionId },
  output: BatchSchema,
  roles: MANAGE,
  approval: alone('The price goes back to the float that paid it, and none of the vouchers has left.'),
  risk: 'step-up',
  async run(caller, { transactionId }) {
    const batch = await cancelBatch(caller, transactionId);
    if (!batch) throw notFound(`batch ${transactionId}`);
    if (batch.status !== 'CANCELED') {
      const rule = 'only a batch that is being produced can be canceled';
      throw new Problem('conflict', `batch ${transactionId} is ${batch.status}: ${rule}`);
    }
    return batch;
  },
});

const exports = listingAll({
  name: 'batch.exports',
  summary: "List the exports of a batch's codes, newest first",
  path: '/batches/:transactionId/exports',
  input: { transactionId: TransactionId },
  item: ExportSchema,
  roles: MANAGE,
  async rows({ service: { readDb } }, { transactionId }) {
    const { id } = await getBatch(readDb, transactionId);
    return listExports(readDb, id);
  },
});

export const batches = { generate: order, list, show, cancel, exports };

export const OPERATIONS = tableOf(...Object.values(batches));
