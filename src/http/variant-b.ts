import Type from 'typebox';
import { generate } from '../batches/generate.ts';
import { type Transaction as LedgerTransaction, transactionData } from '../ledger/transaction.ts';
import { findTransaction, listTransactions } from '../ledger/transactions.ts';
import { redeem } from '../redemptions/redeem.ts';
import type { FieldError } from '../refusal.ts';
import { Nullable } from '../schema.ts';
import { parseDateTime } from '../time.ts';
import { activate } from '../vouchers/activate.ts';
import { balance } from '../vouchers/balance.ts';
import { renderBalance, renderBatch } from './answer.ts';
import { type Dialect, endpoint } from './endpoint.ts';
import { Amount, BatchData, balanceFields, Pin, Quantity, Reference, transactionFields } from './fields.ts';
import { BOTH, downloadVouchers, RedeemedAmount, STATUSES_OF_TRANSPORT } from './variants.ts';

/** Variant B's answer to a look-up that finds nothing. It is not a refusal, and only this call uses it. */
export const NO_TRANSACTION = { statusCode: '99', message: 'Transaction not found' } as const;

export const Generate = Type.Object({
  quantity: Quantity(
    'How many vouchers: a whole number from 1 to the limit of your product, 100,000 unless set (`16` ' +
      'otherwise). Up to 10 are in the answer. More are produced in the background and downloaded by the ' +
      'reference.',
  ),
  reference: Reference,
  value: Type.Optional(
    Nullable(
      Amount(
        'The value of each voucher, %. Within the limits of your product, 0.01 to 100,000.00 unless set ' +
          '(`61` otherwise). The vouchers are active at once. Null or left out: they get their value when ' +
          'they are activated.',
        25,
      ),
    ),
  ),
  expiryDate: Type.Optional(
    Nullable(
      Type.String({
        format: 'date-time',
        description:
          'When the vouchers expire: an ISO 8601 date-time, at least one day from now (`17` otherwise). ' +
          'Without an offset it is UTC. Null or left out: after the validity of your product, 365 days ' +
          'unless set.',
        examples: ['2030-12-31T23:59:59Z'],
      }),
    ),
  ),
});

export const Activate = Type.Object({
  serialNumber: Type.Integer({
    minimum: 1,
    maximum: 999_999_999_999_999,
    description: 'The serial number of a voucher that you generated.',
    examples: [10000000042],
  }),
  value: Type.Optional(
    Nullable(
      Amount(
        'The value of the voucher, %. Null or left out: the value of its batch, else 5000. A voucher of a ' +
          'batch with a value takes no other (`13`).',
        50,
      ),
    ),
  ),
  reference: Reference,
});

const VoucherCode = Type.String({
  pattern: '^([0-9]{12}|[0-9]{16})$',
  minLength: 12,
  maxLength: 16,
  description: 'The voucher code, 12 digits, with `pin`; or code and PIN in one, 16 digits, without `pin`.',
  examples: ['482913057641'],
});

const VoucherPin = Type.Optional(
  Nullable(Pin, {
    description: 'The PIN, 4 digits, for a voucher code of 12 digits. Null or left out for one of 16.',
  }),
);

export const CheckBalance = Type.Object({ voucherCode: VoucherCode, pin: VoucherPin });

export const Redeem = Type.Object({
  voucherCode: VoucherCode,
  pin: VoucherPin,
  amount: RedeemedAmount,
  reference: Reference,
});

const AnsweredCode = Type.String({
  pattern: '^([0-9]{4}\\*{4}[0-9]{4}|[0-9]{12}|[0-9]{16})$',
  description:
    'The voucher code, masked: the first and the last four digits. In the answer to a redemption: as you ' +
    'sent it.',
});

export const Transaction = Type.Object(transactionFields(['ACTIVATION', 'REDEMPTION'], AnsweredCode), {
  title: 'TransactionB',
});

const RecentTransactions = Type.Array(Transaction, { maxItems: 50 });

export const BalanceData = Type.Object(balanceFields, { title: 'Balance' });

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
  ...BOTH.generate,
  description:
    'Generates a batch of vouchers of your default product. With a value they are active at once, and your ' +
    'float is debited by quantity × value. Without one your float is debited when they are activated. Up ' +
    'to 10 vouchers are in the answer (`COMPLETED`). More are produced in the background (`PROCESSING`): ' +
    'download them by the reference. Needs the permission `generate`.',
  body: Generate,
  data: BatchData,
  refusals: ['18', '16', '13', '03', '94', '17', '15', '61', '50'],
  async run(context, { reference, quantity, value, expiryDate }) {
    const expires = typeof expiryDate === 'string' ? parseDateTime(expiryDate) : undefined;
    const order = { reference, quantity, value: value ?? undefined, expiryDate: expires };
    return renderBatch(context, await generate(context, order));
  },
});

const activateVoucher = endpoint({
  ...BOTH.activate,
  description:
    'Gives a voucher that you generated its value, by its serial number. Needs the permission `activate`.',
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
  ...BOTH.balance,
  body: CheckBalance,
  check: checkVoucherCode,
  data: BalanceData,
  async run(context, body) {
    return { data: renderBalance(await balance(context, codeAndPin(body)), body.voucherCode) };
  },
});

const redeemVoucher = endpoint({
  ...BOTH.redeem,
  body: Redeem,
  check: checkVoucherCode,
  data: Transaction,
  async run(context, body) {
    const { amount, reference, voucherCode } = body;
    const { transaction, replayed } = await redeem(context, { ...codeAndPin(body), amount, reference });
    return { data: { ...renderTransaction(transaction), voucherCode }, replayed };
  },
});

const getTransaction = endpoint({
  ...BOTH.transaction,
  description:
    'The active transaction of a reference of yours: the redemption, or the one that an update put in its ' +
    'place, else the activation. Where there is none, `data` is null and `statusCode` is `99`.',
  data: Transaction,
  refusals: ['18'],
  async run(context, _body, reference) {
    const transaction = await findTransaction(context, reference);
    return transaction ? { data: renderTransaction(transaction) } : { data: null, outcome: NO_TRANSACTION };
  },
});

const listRecentTransactions = endpoint({
  ...BOTH.transactions,
  description:
    'Your 50 most recent activations and redemptions in force, newest first: no reversals, and no ' +
    'redemptions that an update has replaced.',
  data: RecentTransactions,
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
  statuses: STATUSES_OF_TRANSPORT,
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
