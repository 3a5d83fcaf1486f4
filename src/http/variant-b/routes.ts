import { generate } from '../../batches/generate.ts';
import {
  findTransaction,
  type Transaction as LedgerTransaction,
  listTransactions,
  transactionData,
} from '../../ledger/transactions.ts';
import { redeem } from '../../redemptions/redeem.ts';
import type { FieldError } from '../../refusal.ts';
import { activate } from '../../vouchers/activate.ts';
import { balance } from '../../vouchers/balance.ts';
import { renderBalance, renderBatch } from '../answer.ts';
import { downloadVouchers } from '../download.ts';
import { type Dialect, endpoint } from '../endpoint.ts';
import { BatchData } from '../fields.ts';
import { parseDateTime } from '../wire.ts';
import {
  Activate,
  BalanceData,
  CheckBalance,
  Generate,
  RecentTransactions,
  Redeem,
  Transaction,
} from './schemas.ts';
import { NO_TRANSACTION, STATUSES } from './status.ts';

/**
 * Checks that code and PIN are sent either separately or together, which a schema of single fields cannot.
 */
function checkVoucherCode(body: unknown): FieldError[] {
  const { voucherCode, pin } = (body ?? {}) as { voucherCode?: unknown; pin?: unknown };
  const length = typeof voucherCode === 'string' && /^\d+$/.test(voucherCode) ? voucherCode.length : 0;
  const hasPin = pin !== undefined && pin !== null;
  if (length === 12 && !hasPin) {
    return [{ field: 'pin', rule: 'required', message: 'is required with a voucherCode of 12 digits' }];
  }
  if (length === 16 && hasPin) {
    return [
      { field: 'pin', rule: 'null', message: 'must be null or left out with a voucherCode of 16 digits' },
    ];
  }
  return [];
}

type VoucherCode = { readonly voucherCode: string; readonly pin?: string | null };

/** Returns the code and the PIN of a checked request, whether they were sent separately or together. */
function codeAndPin({ voucherCode, pin }: VoucherCode): { code: string; pin: string } {
  return { code: voucherCode.slice(0, 12), pin: pin ?? voucherCode.slice(12) };
}

/** Renders a transaction. Variant B has only activations and redemptions; the core returns no others here. */
function renderTransaction(transaction: LedgerTransaction) {
  const transactionType = transaction.type === 'ACTIVATION' ? 'ACTIVATION' : 'REDEMPTION';
  return { ...transactionData(transaction), transactionType } as const;
}

const generateVouchers = endpoint({
  operationId: 'generateVouchers',
  summary: 'Generate vouchers',
  description:
    'Generates a batch of vouchers of your default product. With a value they are active at once, and your ' +
    'float is debited by quantity × value. Without one your float is debited when they are activated. Up ' +
    'to 10 vouchers are in the answer (`COMPLETED`). More are produced in the background (`PROCESSING`): ' +
    'download them by the reference. Needs the permission `generate`.',
  method: 'POST',
  path: '/vouchers',
  body: Generate,
  data: BatchData,
  refusals: ['18', '16', '13', '03', '94', '17', '15', '61', '50'],
  async run(context, { reference, quantity, value, expiryDate }) {
    const { batch, replayed } = await generate(context, {
      reference,
      quantity,
      value: value ?? undefined,
      expiryDate: typeof expiryDate === 'string' ? parseDateTime(expiryDate) : undefined,
    });
    return renderBatch(context, batch, replayed);
  },
});

const activateVoucher = endpoint({
  operationId: 'activateVoucher',
  summary: 'Activate a voucher',
  description:
    'Gives a voucher that you generated its value, by its serial number. Needs the permission `activate`.',
  method: 'POST',
  path: '/activate',
  body: Activate,
  data: Transaction,
  refusals: ['18', '13', '03', '94', '61', '14', '44', '43', '54', '41', '50'],
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
  description:
    'What is left on a voucher, how much of it can be redeemed now, and its transactions. Needs the ' +
    'permission `balance`.',
  method: 'POST',
  path: '/balance',
  body: CheckBalance,
  check: checkVoucherCode,
  data: BalanceData,
  carriesPin: true,
  refusals: ['03', '14', '75', '55'],
  async run(context, body) {
    return { data: renderBalance(await balance(context, codeAndPin(body)), body.voucherCode) };
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
  check: checkVoucherCode,
  data: Transaction,
  carriesPin: true,
  refusals: ['18', '13', '03', '94', '14', '75', '55', '44', '43', '54', '40', '47', '42', '51'],
  async run(context, body) {
    const { amount, reference, voucherCode } = body;
    const { transaction, replayed } = await redeem(context, { ...codeAndPin(body), amount, reference });
    return { data: { ...renderTransaction(transaction), voucherCode }, replayed };
  },
});

const getTransaction = endpoint({
  operationId: 'getTransaction',
  summary: 'Get a transaction by its reference',
  description:
    'The active transaction of a reference of yours: the redemption, or the one that an update put in its ' +
    'place, else the activation. Where there is none, `data` is null and `statusCode` is `99`.',
  method: 'GET',
  path: '/transactions/:reference',
  data: Transaction,
  refusals: ['18'],
  async run(context, _body, reference) {
    const transaction = await findTransaction(context, reference);
    return transaction ? { data: renderTransaction(transaction) } : { data: null, outcome: NO_TRANSACTION };
  },
});

const listRecentTransactions = endpoint({
  operationId: 'listTransactions',
  summary: 'List recent transactions',
  description:
    'Your 50 most recent activations and redemptions in force, newest first: no reversals, and no ' +
    'redemptions that an update has replaced.',
  method: 'GET',
  path: '/transactions',
  data: RecentTransactions,
  refusals: [],
  async run(context) {
    return { data: (await listTransactions(context, { inForceOnly: true })).map(renderTransaction) };
  },
});

export const VARIANT_B: Dialect = {
  name: 'variant-b',
  title: 'Scrip API, variant B',
  description:
    'The HTTP status is 200 whenever a request is valid at transport level. The outcome is in ' +
    '`statusCode`, and `00` is success.',
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
