import Type, { type Static } from 'typebox';
import { toEnd } from '../ledger/zone.ts';
import { actFor, findMerchant, requireMerchant } from '../merchants/merchants.ts';
import { toNumber, toText } from '../money.ts';
import { alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MANAGE, SEE_VOUCHERS } from '../principal.ts';
import { notFound, Problem } from '../problem.ts';
import { findProduct, type Product, ProductCode, QUANTITY_MAX } from '../products/products.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import {
  Count,
  End,
  Input,
  Line,
  Major,
  MerchantId,
  Nullable,
  NullableText,
  NullableTime,
  Reason,
  Text,
  Time,
  TransactionId,
  toId,
  Word,
} from '../schema.ts';
import {
  type Batch as BatchInfo,
  findBatchForOperator,
  findProgress,
  pageOfBatches,
  percentOf,
} from './batch.ts';
import { cancelBatch } from './cancel.ts';
import { countExports, listExports } from './export.ts';
import { generate, newReference } from './generate.ts';

const STATUSES = ['PROCESSING', 'COMPLETED', 'CANCELED'] as const;

const BatchSchema = Type.Object({
  transactionId: TransactionId,
  merchantId: MerchantId,
  reference: Text,
  status: Word(STATUSES),
  quantity: Count,
  produced: Count,
  value: Nullable(Major()),
  currency: Text,
  acceptedAt: Time,
});

const Ordered = Type.Object({
  ...BatchSchema.properties,
  percent: Count,
  expiryDate: Time,
  replayed: Type.Boolean(),
});

const BatchWithDetails = Type.Object({
  ...BatchSchema.properties,
  percent: Count,
  product: Text,
  expiryDate: Time,
  endedAt: NullableTime,
  failure: Nullable(Type.String({ description: 'The reason why it was canceled, if a failure ended it.' })),
  open: Type.Integer({ description: 'Vouchers that are neither canceled nor replaced.' }),
  activated: Count,
  balance: Major('The total balance of its vouchers.'),
  exports: Count,
  lastExport: NullableTime,
});

const ExportSchema = Type.Object({
  id: Text,
  serialNumber: NullableText,
  format: Word(['csv', 'pdf'] as const),
  by: Text,
  reason: NullableText,
  vouchers: Count,
  begunAt: Time,
  endedAt: NullableTime,
  state: Word(['begun', 'complete', 'aborted'] as const),
});

export type Batch = Static<typeof BatchSchema>;
export type OrderedBatch = Static<typeof Ordered>;
export type BatchExport = Static<typeof ExportSchema>;

function toJson(batch: BatchInfo): Batch {
  const { transactionId, reference, status, quantity, produced, value, currency, acceptedAt } = batch;
  return {
    transactionId,
    merchantId: String(batch.merchantId),
    reference,
    status,
    quantity,
    produced,
    value: value && toNumber(value),
    currency,
    acceptedAt,
  };
}

const generateBatch = changing({
  name: 'batch.generate',
  summary: 'Order a batch for a merchant, with its permissions and from its float; the answer shows no codes',
  method: 'POST',
  path: '/batches',
  command: 'batch generate',
  input: Input({
    merchantId: MerchantId,
    quantity: Type.Integer({ minimum: 1, maximum: QUANTITY_MAX, examples: [3] }),
    product: Type.Optional(ProductCode),
    value: Type.Optional(
      Nullable(
        Type.Number({ exclusiveMinimum: 0, description: 'Of each voucher; null: given at activation.' }),
      ),
    ),
    expiryDate: Type.Optional(End("When the vouchers expire; left out: the product's validity.")),
    reference: Type.Optional(
      Line(100, "The merchant's reference: a repetition is the same order.", 'order-10071'),
    ),
    reason: Reason,
  }),
  output: Ordered,
  roles: MANAGE,
  approval: alone(
    "The float of the merchant pays, within the merchant's permissions. The codes stay inside: two people let them out.",
  ),
  risk: 'step-up',
  status: 201,
  async run(caller, input) {
    const { service } = caller;
    const { id } = await requireMerchant(caller, input.merchantId, 'merchantId');
    const { reference = newReference(), quantity, product: productCode } = input;
    const value = input.value ?? undefined;
    const { expiryDate: end } = input;
    const expiryDate = end === undefined ? undefined : await toEnd(caller, end, 'expiryDate');
    try {
      const context = await actFor(service, id);
      if (!context) throw notFound(`merchant ${id}`);
      const { batch, replayed } = await generate(
        context,
        { reference, quantity, value, productCode, expiryDate },
        caller,
      );
      return {
        ...toJson(batch),
        percent: percentOf(batch),
        expiryDate: batch.expiresAt,
        replayed,
      };
    } catch (error) {
      if (error instanceof Refusal) throw await explained(error, caller, id, productCode);
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

const listBatches = reading({
  name: 'batch.list',
  summary: 'List batches, newest first',
  method: 'GET',
  path: '/batches',
  command: 'batch list',
  input: Input({ ...PAGE, merchantId: Type.Optional(MerchantId), status: Type.Optional(Word(STATUSES)) }),
  output: Page(BatchSchema),
  columns: ['transactionId', 'merchantId', 'reference', 'status', 'quantity', 'produced'],
  roles: SEE_VOUCHERS,
  async run({ service }, { cursor, limit = 50, merchantId, status }) {
    const filters = { merchantId, status };
    const [before = null] = readCursor('batches', filters, cursor) ?? [];
    const merchant = merchantId === undefined ? null : toId(merchantId, 'merchantId');
    const position = before === null ? null : Number(before);
    const rows = await pageOfBatches(
      service.readDb,
      { merchantId: merchant, status: status ?? null },
      position,
      limit + 1,
    );
    const { items, nextCursor } = pageOf('batches', filters, rows, limit, ({ id }) => [id]);
    return { items: items.map(toJson), nextCursor };
  },
});

const showBatch = reading({
  name: 'batch.show',
  summary: 'Get a batch, and the states of its vouchers',
  method: 'GET',
  path: '/batches/:transactionId',
  command: 'batch show',
  input: Input({ transactionId: TransactionId }),
  output: BatchWithDetails,
  roles: SEE_VOUCHERS,
  async run({ service }, { transactionId }) {
    const found = await findBatchForOperator(service, transactionId);
    if (!found) throw notFound(`batch ${transactionId}`);
    const { batch, details } = found;
    return {
      ...toJson(batch),
      percent: percentOf(batch),
      product: details.product,
      expiryDate: batch.expiresAt,
      endedAt: details.endedAt,
      failure: details.failure,
      open: details.open,
      activated: details.activated,
      balance: toNumber({ minor: details.balanceMinor, decimals: details.decimals }),
      ...(await countExports(service.readDb, batch.id)),
    };
  },
});

const cancelOne = changing({
  name: 'batch.cancel',
  summary:
    'Cancel a batch that is being produced: none of its vouchers can be used, and its price goes back to the float',
  method: 'POST',
  path: '/batches/:transactionId/cancel',
  command: 'batch cancel',
  input: Input({ transactionId: TransactionId, reason: Reason }),
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
    return toJson(batch);
  },
});

const listBatchExports = reading({
  name: 'batch.exports',
  summary: "List the exports of a batch's codes, newest first",
  method: 'GET',
  path: '/batches/:transactionId/exports',
  command: 'batch exports',
  input: Input({ transactionId: TransactionId }),
  output: Page(ExportSchema),
  roles: MANAGE,
  async run({ service: { readDb } }, { transactionId }) {
    const found = await findProgress(readDb, transactionId);
    if (!found) throw notFound(`batch ${transactionId}`);
    const items = (await listExports(readDb, found.batch.id)).map((each) => ({
      ...each,
      id: String(each.id),
      serialNumber: each.serialNumber === null ? null : String(each.serialNumber),
    }));
    return { items, nextCursor: null };
  },
});

export const batches = {
  generate: generateBatch,
  list: listBatches,
  show: showBatch,
  cancel: cancelOne,
  exports: listBatchExports,
};

export const BATCHES = tableOf(...Object.values(batches));
