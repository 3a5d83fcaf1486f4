import Type from 'typebox';
import { generate } from '../batches/generate.ts';
import {
  type Transaction as LedgerTransaction,
  type RedemptionUpdate,
  transactionData,
  updateData,
} from '../ledger/transaction.ts';
import { findTransaction, listTransactions } from '../ledger/transactions.ts';
import { toNumber } from '../money.ts';
import { redeem } from '../redemptions/redeem.ts';
import { findUpdate, updateRedemption } from '../redemptions/update.ts';
import { type FieldError, Refusal } from '../refusal.ts';
import { Nullable } from '../schema.ts';
import { activate } from '../vouchers/activate.ts';
import { balance } from '../vouchers/balance.ts';
import { renderBalance, renderBatch } from './answer.ts';
import { type Dialect, endpoint } from './endpoint.ts';
import {
  Amount,
  AmountUsed,
  BatchData,
  balanceFields,
  Code,
  OptionalReference,
  Pin,
  ProductCode,
  Quantity,
  RedeemedReference,
  Reference,
  transactionFields,
} from './fields.ts';
import { BOTH, downloadVouchers, RedeemedAmount, STATUSES } from './variants.ts';

export const Generate = Type.Object({
  reference: Reference,
  productCode: ProductCode,
  quantity: Quantity(
    'How many vouchers: a whole number from 1 to the limit of the product, 100,000 unless set (`16` ' +
      'otherwise).',
  ),
  amount: Amount(
    'The value of each voucher, %. Within the limits of the product, 0.01 to 100,000.00 unless set (`61` ' +
      'otherwise).',
    25,
  ),
});

export const Activate = Type.Object({ pin: Pin, code: Code, reference: OptionalReference });

export const CheckBalance = Type.Object({ pin: Pin, code: Code });

export const Redeem = Type.Object({
  pin: Pin,
  code: Code,
  amount: RedeemedAmount,
  reference: OptionalReference,
});

export const UpdateRedemption = Type.Object({
  reference: RedeemedReference,
  amountUsed: Type.Optional(AmountUsed),
});

const MaskedCode = Type.String({
  pattern: '^[0-9]{4}\\*{4}[0-9]{4}$',
  description: 'The voucher code, masked: the first and the last four digits.',
});

export const Transaction = Type.Object(
  {
    ...transactionFields(['ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL'], MaskedCode),
    refundStatus: Nullable(Type.String(), {
      enum: ['CANCELLED', 'NEW', null],
      description: '`CANCELLED`: undone by an update. `NEW`: put in its place by the update. Null: neither.',
    }),
    note: Nullable(Type.String(), { description: 'What an update did; null for all other transactions.' }),
  },
  { title: 'Transaction' },
);

const RecentTransactions = Type.Array(Transaction, { maxItems: 50 });

const { transactions, ...amounts } = balanceFields;

export const BalanceData = Type.Object(
  {
    ...amounts,
    value: Nullable(Type.Number(), { description: 'The value at activation; null before it.' }),
    transactions,
  },
  { title: 'Balance' },
);

export const UpdateData = Type.Object(
  {
    originalTransaction: Transaction,
    cancellationTransaction: Transaction,
    newTransaction: Nullable(Transaction, {
      description: 'The redemption in force now; null after a full reversal.',
    }),
    transactions: Type.Array(Transaction, {
      minItems: 2,
      maxItems: 3,
      description:
        'The same transactions in the order original, cancellation, new. After a full reversal there are two ' +
        'of them.',
    }),
    summary: Type.Object({
      originalAmount: Type.Number({ description: 'The amount of the original redemption.' }),
      newAmount: Type.Number({ minimum: 0, description: 'The new amount; 0 after a full reversal.' }),
      reference: Type.String({ description: 'The reference of the redemption, as it was sent.' }),
    }),
  },
  { title: 'RedemptionUpdate' },
);

type Booked = { readonly transaction: LedgerTransaction; readonly replayed: boolean };

const booked = ({ transaction, replayed }: Booked) => ({ data: transactionData(transaction), replayed });

const generateVouchers = endpoint({
  ...BOTH.generate,
  description:
    'Generates a batch of vouchers of a product and debits your float by quantity × amount at once. Up to ' +
    '10 vouchers are in the answer (`COMPLETED`). More are produced in the background (`PROCESSING`): ' +
    'download them by the reference. Needs the permission `generate`.',
  body: Generate,
  data: BatchData,
  refusals: ['18', '16', '13', '03', '94', '15', '61', '50'],
  async run(context, { reference, productCode, quantity, amount }) {
    return renderBatch(context, await generate(context, { reference, productCode, quantity, value: amount }));
  },
});

const activateVoucher = endpoint({
  ...BOTH.activate,
  description:
    'Gives a voucher its value: the value of its batch, else 5000. Needs the permission `activate`.',
  body: Activate,
  data: Transaction,
  carriesPin: true,
  refusals: ['18', '03', '94', '61', '14', '75', '55', '44', '43', '54', '41', '47', '50'],
  async run(context, { code, pin, reference }) {
    return booked(await activate(context, { voucher: { code, pin }, reference: reference ?? undefined }));
  },
});

const checkBalance = endpoint({
  ...BOTH.balance,
  body: CheckBalance,
  data: BalanceData,
  async run(context, { code, pin }) {
    const found = await balance(context, { code, pin });
    return { data: { ...renderBalance(found, code), value: found.value && toNumber(found.value) } };
  },
});

const redeemVoucher = endpoint({
  ...BOTH.redeem,
  body: Redeem,
  data: Transaction,
  async run(context, { code, pin, amount, reference }) {
    return booked(await redeem(context, { code, pin, amount, reference: reference ?? undefined }));
  },
});

/**
 * Matches names of fields as people write them. Other text may be a secret in the wrong place, and is not
 * repeated.
 */
const FIELD_NAME = /^[A-Za-z_]{1,40}$/;
const UNKNOWN_FIELDS_MAX = 10;

/**
 * Refuses unknown fields in an update without `amountUsed`. A misspelled `amountUsed` would reverse the
 * redemption in full, and an update cannot be repeated.
 */
function checkUnknownFields(body: unknown): FieldError[] {
  if (typeof body !== 'object' || body === null || Array.isArray(body) || 'amountUsed' in body) return [];
  return Object.keys(body)
    .filter((name) => name !== 'reference')
    .slice(0, UNKNOWN_FIELDS_MAX)
    .map((name) => ({
      field: FIELD_NAME.test(name) ? name : 'body',
      rule: 'unknown',
      message: 'is unknown here: the new amount is amountUsed, and without it only a reference may be sent',
    }));
}

const updateRedemptionOnce = endpoint({
  operationId: 'updateRedemption',
  summary: 'Update a redemption',
  description:
    'Changes the amount of a redemption of yours, or reverses it fully: once. The original is canceled, a ' +
    'reversal gives its amount back, and a new redemption takes the new amount, all of it in one step or ' +
    'not at all. Without `amountUsed` the body may contain no field but `reference` (`30` otherwise): a ' +
    'misspelled field must not reverse a payment. Needs the permission `update-redemption`.',
  method: 'POST',
  path: '/redemptions/update',
  body: UpdateRedemption,
  otherMediaTypes: ['application/json-patch+json', 'application/merge-patch+json'],
  check: checkUnknownFields,
  data: UpdateData,
  notFound: 'Redemption not found',
  refusals: ['18', '13', '03', '60', '44', '43', '54', '58', '51'],
  async run(context, { reference, amountUsed = 0 }) {
    try {
      return { data: updateData(await updateRedemption(context, { reference, amountUsed })) };
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== '58' || error.data === undefined) throw error;
      throw new Refusal('58', { data: updateData(error.data as RedemptionUpdate) });
    }
  },
});

const getRedemptionUpdate = endpoint({
  operationId: 'getRedemptionUpdate',
  summary: 'Get the update of a redemption',
  description: 'The result of the update of a redemption, by the reference of the redemption.',
  method: 'GET',
  path: '/redemptions/update/:reference',
  data: UpdateData,
  notFound: 'Redemption update not found',
  refusals: ['18', '60'],
  async run(context, _body, reference) {
    return { data: updateData(await findUpdate(context, reference)) };
  },
});

const getTransaction = endpoint({
  ...BOTH.transaction,
  description:
    'The active transaction of a reference of yours: the redemption, or the one that an update put in its ' +
    'place, else the activation. After a full reversal there is none.',
  data: Transaction,
  notFound: 'Transaction not found',
  refusals: ['18', '60'],
  async run(context, _body, reference) {
    const transaction = await findTransaction(context, reference);
    if (!transaction) throw new Refusal('60');
    return { data: transactionData(transaction) };
  },
});

const listRecentTransactions = endpoint({
  ...BOTH.transactions,
  description: 'Your 50 most recent transactions of every kind, newest first.',
  data: RecentTransactions,
  async run(context) {
    return { data: (await listTransactions(context, { inForceOnly: false })).map(transactionData) };
  },
});

export const VARIANT_A: Dialect = {
  name: 'variant-a',
  title: 'Scrip API, variant A',
  description: 'Failures are reported by `statusCode`, and by the HTTP status as well.',
  prefix: '/merchant-client/v2',
  statuses: STATUSES,
  endpoints: [
    generateVouchers,
    downloadVouchers,
    activateVoucher,
    checkBalance,
    redeemVoucher,
    updateRedemptionOnce,
    getRedemptionUpdate,
    getTransaction,
    listRecentTransactions,
  ],
};
