import { generate } from '../../batches/generate.ts';
import {
  findTransaction,
  listTransactions,
  type RedemptionUpdate,
  transactionData,
  updateData,
} from '../../ledger/transactions.ts';
import { toNumber } from '../../money.ts';
import { redeem } from '../../redemptions/redeem.ts';
import { findUpdate, updateRedemption } from '../../redemptions/update.ts';
import { type FieldError, Refusal } from '../../refusal.ts';
import { activate } from '../../vouchers/activate.ts';
import { balance } from '../../vouchers/balance.ts';
import { renderBalance, renderBatch } from '../answer.ts';
import { downloadVouchers } from '../download.ts';
import { type Dialect, endpoint } from '../endpoint.ts';
import { BatchData } from '../fields.ts';
import {
  Activate,
  BalanceData,
  CheckBalance,
  Generate,
  RecentTransactions,
  Redeem,
  Transaction,
  UpdateData,
  UpdateRedemption,
} from './schemas.ts';
import { STATUSES } from './status.ts';

const generateVouchers = endpoint({
  operationId: 'generateVouchers',
  summary: 'Generate vouchers',
  description:
    'Generates a batch of vouchers of a product and debits your float by quantity × amount at once. Up to ' +
    '10 vouchers are in the answer (`COMPLETED`). More are produced in the background (`PROCESSING`): ' +
    'download them by the reference. Needs the permission `generate`.',
  method: 'POST',
  path: '/vouchers',
  body: Generate,
  data: BatchData,
  refusals: ['18', '16', '13', '03', '94', '15', '61', '50'],
  async run(context, { reference, productCode, quantity, amount }) {
    const { batch, replayed } = await generate(context, { reference, productCode, quantity, value: amount });
    return renderBatch(context, batch, replayed);
  },
});

const activateVoucher = endpoint({
  operationId: 'activateVoucher',
  summary: 'Activate a voucher',
  description:
    'Gives a voucher its value: the value of its batch, else 5000. Needs the permission `activate`.',
  method: 'POST',
  path: '/activate',
  body: Activate,
  data: Transaction,
  carriesPin: true,
  refusals: ['18', '03', '94', '61', '14', '75', '55', '44', '43', '54', '41', '47', '50'],
  async run(context, { code, pin, reference }) {
    const { transaction, replayed } = await activate(context, {
      voucher: { code, pin },
      reference: reference ?? undefined,
    });
    return { data: transactionData(transaction), replayed };
  },
});

const checkBalance = endpoint({
  operationId: 'checkBalance',
  summary: 'Check the balance of a voucher',
  description:
    'What is left on a voucher, how much of it can be redeemed now, and its transactions. Needs the ' +
    'permission `balance`.',
  method: 'POST',
  path: '/balance',
  body: CheckBalance,
  data: BalanceData,
  carriesPin: true,
  refusals: ['03', '14', '75', '55'],
  async run(context, { code, pin }) {
    const found = await balance(context, { code, pin });
    return { data: { ...renderBalance(found, code), value: found.value && toNumber(found.value) } };
  },
});

const redeemVoucher = endpoint({
  operationId: 'redeemVoucher',
  summary: 'Redeem a voucher',
  description:
    'Takes an amount from a voucher, in part or in full: the whole amount or nothing. Needs the permission ' +
    '`redeem`.',
  method: 'POST',
  path: '/redeem',
  body: Redeem,
  data: Transaction,
  carriesPin: true,
  refusals: ['18', '13', '03', '94', '14', '75', '55', '44', '43', '54', '40', '47', '42', '51'],
  async run(context, { code, pin, amount, reference }) {
    const { transaction, replayed } = await redeem(context, {
      code,
      pin,
      amount,
      reference: reference ?? undefined,
    });
    return { data: transactionData(transaction), replayed };
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
  operationId: 'getTransaction',
  summary: 'Get a transaction by its reference',
  description:
    'The active transaction of a reference of yours: the redemption, or the one that an update put in its ' +
    'place, else the activation. After a full reversal there is none.',
  method: 'GET',
  path: '/transactions/:reference',
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
  operationId: 'listTransactions',
  summary: 'List recent transactions',
  description: 'Your 50 most recent transactions of every kind, newest first.',
  method: 'GET',
  path: '/transactions',
  data: RecentTransactions,
  refusals: [],
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
