import Type from 'typebox';
import { findBatch } from '../../batches/download.ts';
import { generate } from '../../batches/generate.ts';
import { transactionData, updateData } from '../../ledger/transaction-data.ts';
import { findTransaction, listTransactions, type RedemptionUpdate } from '../../ledger/transactions.ts';
import { redeem } from '../../redemptions/redeem.ts';
import { findUpdate, updateRedemption } from '../../redemptions/update.ts';
import { Refusal } from '../../refusal.ts';
import { activate } from '../../vouchers/activate.ts';
import { balance } from '../../vouchers/balance.ts';
import { BatchData, batchAnswer } from '../batch.ts';
import { type Dialect, endpoint } from '../endpoint.ts';
import { EXAMPLES } from './examples.ts';
import { renderBalance } from './render.ts';
import {
  Activate,
  BalanceData,
  CheckBalance,
  Generate,
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
    'Generates a batch of vouchers of a product and debits your balance by quantity × amount at once. Up to 10 vouchers are in the answer (`COMPLETED`); more are produced in the background (`PROCESSING`): download them by the reference.',
  method: 'POST',
  path: '/vouchers',
  body: Generate,
  data: BatchData,
  refusals: ['18', '16', '13', '03', '15', '61', '94', '50'],
  examples: EXAMPLES.generate,
  async run(context, { reference, productCode, quantity, amount }) {
    const { batch, replayed } = await generate(context, { reference, productCode, quantity, value: amount });
    return batchAnswer(context, batch, replayed);
  },
});

const downloadVouchers = endpoint({
  operationId: 'downloadVouchers',
  summary: 'Download vouchers',
  description: 'The batch that was generated under a reference of yours, with its vouchers once it is `COMPLETED`.',
  method: 'GET',
  path: '/vouchers/:reference',
  data: BatchData,
  notFound: 'Vouchers not found',
  refusals: ['18', '60'],
  examples: EXAMPLES.download,
  async run(context, _body, reference) {
    return batchAnswer(context, await findBatch(context, reference), false);
  },
});

const activateVoucher = endpoint({
  operationId: 'activateVoucher',
  summary: 'Activate a voucher',
  description: 'Gives a voucher its value: that of its batch, else 5000.',
  method: 'POST',
  path: '/activate',
  body: Activate,
  data: Transaction,
  carriesPin: true,
  refusals: ['18', '03', '61', '94', '14', '75', '55', '44', '43', '54', '41', '47', '42', '50'],
  examples: EXAMPLES.activate,
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
  description: 'What is left on a voucher, what of it can be redeemed now, and the transactions behind it.',
  method: 'POST',
  path: '/balance',
  body: CheckBalance,
  data: BalanceData,
  carriesPin: true,
  refusals: ['03', '14', '75', '55'],
  examples: EXAMPLES.balance,
  async run(context, { code, pin }) {
    return { data: renderBalance(await balance(context, { code, pin }), code) };
  },
});

const redeemVoucher = endpoint({
  operationId: 'redeemVoucher',
  summary: 'Redeem a voucher',
  description: 'Takes an amount from a voucher, in part or in full: the whole amount or nothing.',
  method: 'POST',
  path: '/redeem',
  body: Redeem,
  data: Transaction,
  carriesPin: true,
  refusals: ['18', '13', '03', '94', '14', '75', '55', '44', '43', '54', '40', '47', '42', '51'],
  examples: EXAMPLES.redeem,
  async run(context, { code, pin, amount, reference }) {
    const { transaction, replayed } = await redeem(context, { code, pin, amount, reference: reference ?? undefined });
    return { data: transactionData(transaction), replayed };
  },
});

const updateRedemptionOnce = endpoint({
  operationId: 'updateRedemption',
  summary: 'Update a redemption',
  description:
    'Changes the amount of a redemption of yours, or reverses it fully: once. The original is canceled, a reversal gives its amount back, and a new redemption takes the new amount; all of it in one step, or not at all. Needs the permission `update-redemption`.',
  method: 'POST',
  path: '/redemptions/update',
  body: UpdateRedemption,
  otherMediaTypes: ['application/json-patch+json', 'application/merge-patch+json'],
  data: UpdateData,
  notFound: 'Redemption not found',
  refusals: ['18', '13', '03', '44', '43', '54', '58', '51', '60'],
  examples: EXAMPLES.update,
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
  description: 'What the update of a redemption came to, by the reference of the redemption.',
  method: 'GET',
  path: '/redemptions/update/:reference',
  data: UpdateData,
  notFound: 'Redemption update not found',
  refusals: ['18', '60'],
  examples: EXAMPLES.details,
  async run(context, _body, reference) {
    return { data: updateData(await findUpdate(context, reference)) };
  },
});

const getTransaction = endpoint({
  operationId: 'getTransaction',
  summary: 'Get a transaction by its reference',
  description:
    'The active transaction of a reference of yours: the redemption, or what an update put in its place, else the activation. After a full reversal there is none.',
  method: 'GET',
  path: '/transactions/:reference',
  data: Transaction,
  notFound: 'Transaction not found',
  refusals: ['18', '60'],
  examples: EXAMPLES.lookup,
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
  data: Type.Array(Transaction),
  refusals: [],
  examples: EXAMPLES.list,
  async run(context) {
    return { data: (await listTransactions(context, { inForceOnly: false })).map(transactionData) };
  },
});

export const VARIANT_A: Dialect = {
  name: 'variant-a',
  title: 'Scrip: variant A',
  description: 'Failures are told by `statusCode` and by the HTTP status as well.',
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
