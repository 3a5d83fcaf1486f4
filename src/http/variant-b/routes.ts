import Type from 'typebox';
import { findBatch } from '../../batches/download.ts';
import { generate } from '../../batches/generate.ts';
import { findTransaction, listTransactions } from '../../ledger/transactions.ts';
import { redeem } from '../../redemptions/redeem.ts';
import type { FieldError } from '../../refusal.ts';
import { activate } from '../../vouchers/activate.ts';
import { balance } from '../../vouchers/balance.ts';
import { BatchData, batchAnswer } from '../batch.ts';
import { parseDateTime } from '../date-time.ts';
import { type Dialect, endpoint } from '../endpoint.ts';
import { EXAMPLES } from './examples.ts';
import { renderBalance, renderTransaction } from './render.ts';
import { Activate, BalanceData, CheckBalance, Generate, Redeem, Transaction } from './schemas.ts';
import { NO_TRANSACTION, STATUSES } from './status.ts';

/** Whether code and PIN come apart or in one: what a schema of single fields cannot say. */
function checkVoucherCode(body: unknown): FieldError[] {
  const { voucherCode, pin } = (body ?? {}) as { voucherCode?: unknown; pin?: unknown };
  const length = typeof voucherCode === 'string' && /^\d+$/.test(voucherCode) ? voucherCode.length : 0;
  const hasPin = pin !== undefined && pin !== null;
  if (length === 12 && !hasPin)
    return [{ field: 'pin', rule: 'required', message: 'is required with a voucherCode of 12 digits' }];
  if (length === 16 && hasPin)
    return [{ field: 'pin', rule: 'null', message: 'must be null or left out with a voucherCode of 16 digits' }];
  return [];
}

/** The code and PIN of a checked request, whichever way it spells them. */
function codeAndPin({ voucherCode, pin }: { voucherCode: string; pin?: string | null }): { code: string; pin: string } {
  return { code: voucherCode.slice(0, 12), pin: pin ?? voucherCode.slice(12) };
}

const generateVouchers = endpoint({
  operationId: 'generateVouchers',
  summary: 'Generate vouchers',
  description:
    'Generates a batch of vouchers of your default product. With a value they are active at once, and your balance is debited by quantity × value; without one they are debited when they are activated. Up to 10 vouchers are in the answer (`COMPLETED`); more are produced in the background (`PROCESSING`): download them by the reference.',
  method: 'POST',
  path: '/vouchers',
  body: Generate,
  data: BatchData,
  refusals: ['18', '16', '13', '17', '03', '15', '61', '94', '50'],
  examples: EXAMPLES.generate,
  async run(context, { reference, quantity, value, expiryDate }) {
    const { batch, replayed } = await generate(context, {
      reference,
      quantity,
      value: value ?? undefined,
      expiryDate: typeof expiryDate === 'string' ? parseDateTime(expiryDate) : undefined,
    });
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
  description: 'Gives a voucher that you generated its value, by its serial number.',
  method: 'POST',
  path: '/activate',
  body: Activate,
  data: Transaction,
  refusals: ['18', '13', '03', '61', '94', '14', '44', '43', '54', '41', '47', '42', '50'],
  examples: EXAMPLES.activate,
  async run(context, { serialNumber, value, reference }) {
    const { transaction, replayed } = await activate(context, {
      voucher: { serialNumber },
      value: value ?? undefined,
      reference,
    });
    return { data: renderTransaction(transaction), replayed };
  },
});

const checkBalance = endpoint({
  operationId: 'checkBalance',
  summary: 'Check the balance of a voucher',
  description: 'What is left on a voucher, what of it can be redeemed now, and the transactions behind it.',
  method: 'POST',
  path: '/balance',
  body: CheckBalance,
  check: checkVoucherCode,
  data: BalanceData,
  carriesPin: true,
  refusals: ['03', '14', '75', '55'],
  examples: EXAMPLES.balance,
  async run(context, body) {
    return { data: renderBalance(await balance(context, codeAndPin(body)), body.voucherCode) };
  },
});

const redeemVoucher = endpoint({
  operationId: 'redeemVoucher',
  summary: 'Redeem a voucher',
  description: 'Takes an amount from a voucher, in part or in full: the whole amount or nothing.',
  method: 'POST',
  path: '/redeem',
  body: Redeem,
  check: checkVoucherCode,
  data: Transaction,
  carriesPin: true,
  refusals: ['18', '13', '03', '94', '14', '75', '55', '44', '43', '54', '40', '47', '42', '51'],
  examples: EXAMPLES.redeem,
  async run(context, body) {
    const { amount, reference } = body;
    const { transaction, replayed } = await redeem(context, { ...codeAndPin(body), amount, reference });
    return { data: renderTransaction(transaction, body.voucherCode), replayed };
  },
});

const getTransaction = endpoint({
  operationId: 'getTransaction',
  summary: 'Get a transaction by its reference',
  description:
    'The active transaction of a reference of yours: the redemption, or what an update put in its place, else the activation. Where there is none, `data` is null and `statusCode` is `99`.',
  method: 'GET',
  path: '/transactions/:reference',
  data: Transaction,
  refusals: ['18'],
  examples: EXAMPLES.lookup,
  async run(context, _body, reference) {
    const transaction = await findTransaction(context, reference);
    return transaction ? { data: renderTransaction(transaction) } : { data: null, outcome: NO_TRANSACTION };
  },
});

const listRecentTransactions = endpoint({
  operationId: 'listTransactions',
  summary: 'List recent transactions',
  description:
    'Your 50 most recent activations and redemptions in force, newest first: no reversals, and no redemptions that an update replaced.',
  method: 'GET',
  path: '/transactions',
  data: Type.Array(Transaction),
  refusals: [],
  examples: EXAMPLES.list,
  async run(context) {
    const transactions = await listTransactions(context, { inForceOnly: true });
    return { data: transactions.map((transaction) => renderTransaction(transaction)) };
  },
});

export const VARIANT_B: Dialect = {
  name: 'variant-b',
  title: 'Scrip: variant B',
  description:
    'The HTTP status is 200 whenever a request is valid at transport level: `statusCode` tells what came of it, and `00` is success.',
  prefix: '/api/v2',
  statuses: STATUSES,
  endpoints: [
    generateVouchers,
    downloadVouchers,
    activateVoucher,
    checkBalance,
    redeemVoucher,
    getTransaction,
    listRecentTransactions,
  ],
};
