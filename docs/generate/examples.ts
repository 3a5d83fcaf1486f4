import { VARIANT_A } from '../../src/http/variant-a.ts';
import { NO_TRANSACTION, VARIANT_B } from '../../src/http/variant-b.ts';
import type { RefusalCode } from '../../src/refusal.ts';

/** The examples of the documentation. A test holds each of them against its schema. */

export type Example = { readonly summary: string; readonly value: unknown };
type Examples = Readonly<Record<string, Example>>;

/** The examples of one operation. */
type OperationExamples = {
  readonly request?: Examples;
  readonly response: Examples;
  /** Of refusals that carry data. */
  readonly refusals?: Readonly<Partial<Record<RefusalCode, Example>>>;
};

const success = (summary: string, data: unknown): Example => ({
  summary,
  value: { statusCode: '00', message: 'Success', data },
});
const request = (summary: string, value: unknown): Example => ({ summary, value });

const IDS = {
  batch: '019830a1-5b1e-7c44-9d0f-3f2a6c1b7e01',
  activation: '019830a1-6f02-7a10-8c35-0b9d4e7f2a11',
  redemption: '019830a2-11c9-7e3b-b0a4-5d6e8f9a0b22',
  reversal: '019830a4-90d7-7f58-a1c2-7e8f90a1b233',
  update: '019830a4-90d8-7011-92b3-8f90a1b2c344',
};
const CODE = '482913057641';
const PIN = '0731';
const SERIAL = 10000000042;

const voucher = { voucherCode: '4829****7641', serialNumber: String(SERIAL) };

const activation = {
  transactionId: IDS.activation,
  transactionType: 'ACTIVATION',
  amount: 25,
  timestamp: '2026-03-02T09:15:04.117Z',
  reference: 'activation-552',
  ...voucher,
};

const redemption = {
  transactionId: IDS.redemption,
  transactionType: 'REDEMPTION',
  amount: 10.5,
  timestamp: '2026-03-02T11:40:51.302Z',
  reference: 'order-10071',
  ...voucher,
};

const plain = { refundStatus: null, note: null };

const original = {
  ...redemption,
  refundStatus: 'CANCELLED',
  note: 'Canceled by an update of the redemption',
};

const cancellation = {
  transactionId: IDS.reversal,
  transactionType: 'REDEMPTION_REVERSAL',
  amount: -10.5,
  timestamp: '2026-03-02T12:05:13.940Z',
  reference: 'CANCEL-order-10071',
  ...voucher,
  refundStatus: null,
  note: `Reversal of redemption ${IDS.redemption}`,
};

const replacement = {
  transactionId: IDS.update,
  transactionType: 'REDEMPTION',
  amount: 7.5,
  timestamp: '2026-03-02T12:05:13.940Z',
  reference: 'NEW-order-10071',
  ...voucher,
  refundStatus: 'NEW',
  note: `Created by an update of redemption ${IDS.redemption}`,
};

const updated = {
  originalTransaction: original,
  cancellationTransaction: cancellation,
  newTransaction: replacement,
  transactions: [original, cancellation, replacement],
  summary: { originalAmount: 10.5, newAmount: 7.5, reference: 'order-10071' },
};

const reversed = {
  originalTransaction: original,
  cancellationTransaction: cancellation,
  newTransaction: null,
  transactions: [original, cancellation],
  summary: { originalAmount: 10.5, newAmount: 0, reference: 'order-10071' },
};

const batch = {
  reference: 'batch-2026-03-02',
  transactionId: IDS.batch,
  status: 'COMPLETED',
  expiryDate: '2027-03-02T09:00:00.000Z',
  value: 25,
};

const vouchers = [
  { serialNumber: SERIAL, code: CODE, pin: PIN },
  { serialNumber: SERIAL + 1, code: '730164928850', pin: '5518' },
];

const completed = success('Completed, with its vouchers', { ...batch, vouchers });
const inactive = success('Without a value: to be activated', { ...batch, value: null, vouchers });
const processing = success('More than 10 vouchers: still in process', { ...batch, status: 'PROCESSING' });
const canceled = success('Canceled', { ...batch, status: 'CANCELED' });

/** A transaction as it stands in a balance. */
function inBalance({ transactionId, transactionType, amount, timestamp, reference }: typeof redemption) {
  return { transactionId, transactionType, amount, timestamp, reference };
}

const balance = {
  serialNumber: SERIAL,
  voucherCode: CODE,
  balance: 14.5,
  usableAmount: 14.5,
  transactions: [activation, redemption].map(inBalance),
};

const update = success('Another amount: three transactions', updated);
const reversal = success('A full reversal: two transactions', reversed);

const byCode = { pin: PIN, code: CODE };

const EXAMPLES_A: Readonly<Record<string, OperationExamples>> = {
  generateVouchers: {
    request: {
      few: request('Two vouchers of 25', {
        reference: 'batch-2026-03-02',
        productCode: 'DEFAULT',
        quantity: 2,
        amount: 25,
      }),
    },
    response: { completed, processing },
  },
  downloadVouchers: { response: { completed, processing, canceled } },
  activateVoucher: {
    request: {
      plain: request('By code and PIN', byCode),
      reference: request('With a reference: retries are safe', { ...byCode, reference: 'activation-552' }),
    },
    response: { activated: success('Activated', { ...activation, ...plain }) },
  },
  checkBalance: {
    request: { plain: request('By code and PIN', byCode) },
    response: { balance: success('Partly redeemed', { ...balance, value: 25 }) },
  },
  redeemVoucher: {
    request: {
      plain: request('By code and PIN', { ...byCode, amount: 10.5 }),
      reference: request('With a reference: retries are safe', {
        ...byCode,
        amount: 10.5,
        reference: 'order-10071',
      }),
    },
    response: { redeemed: success('Redeemed', { ...redemption, ...plain }) },
  },
  updateRedemption: {
    request: {
      change: request('Another amount', { reference: 'order-10071', amountUsed: 7.5 }),
      reverse: request('A full reversal', { reference: 'order-10071', amountUsed: 0 }),
    },
    response: { update, reversal },
    refusals: {
      '58': {
        summary: 'Updated before: the result of that update',
        value: { statusCode: '58', message: 'Redemption already updated', data: updated },
      },
    },
  },
  getRedemptionUpdate: { response: { update, reversal } },
  getTransaction: {
    response: {
      redemption: success('A redemption', { ...redemption, ...plain }),
      updated: success('After an update: the new redemption', replacement),
    },
  },
  listTransactions: {
    response: {
      transactions: success('Newest first', [
        replacement,
        cancellation,
        original,
        { ...activation, ...plain },
      ]),
    },
  },
};

const codeAndPin = { voucherCode: CODE, pin: PIN };
const inOne = { voucherCode: `${CODE}${PIN}`, pin: null };

const EXAMPLES_B: Readonly<Record<string, OperationExamples>> = {
  generateVouchers: {
    request: {
      active: request('Two vouchers of 25, active at once', {
        quantity: 2,
        reference: 'batch-2026-03-02',
        value: 25,
        expiryDate: '2027-03-02T09:00:00Z',
      }),
      inactive: request('Two vouchers to be activated later', {
        quantity: 2,
        reference: 'batch-2026-03-02',
        value: null,
      }),
    },
    response: { completed, inactive, processing },
  },
  downloadVouchers: { response: { completed, inactive, processing, canceled } },
  activateVoucher: {
    request: {
      value: request('With a value of 25', { serialNumber: SERIAL, value: 25, reference: 'activation-552' }),
      plain: request('With the default value', { serialNumber: SERIAL, reference: 'activation-552' }),
    },
    response: { activated: success('Activated', activation) },
  },
  checkBalance: {
    request: {
      apart: request('Code and PIN apart', codeAndPin),
      inOne: request('Code and PIN in one', inOne),
    },
    response: { balance: success('Partly redeemed', balance) },
  },
  redeemVoucher: {
    request: {
      apart: request('Code and PIN apart', { ...codeAndPin, amount: 10.5, reference: 'order-10071' }),
      inOne: request('Code and PIN in one', { ...inOne, amount: 10.5, reference: 'order-10071' }),
    },
    response: {
      redeemed: success('Redeemed; the code is repeated as it was sent', {
        ...redemption,
        voucherCode: CODE,
      }),
    },
  },
  getTransaction: {
    response: {
      redemption: success('A redemption', redemption),
      none: { summary: 'Nothing under this reference', value: { ...NO_TRANSACTION, data: null } },
    },
  },
  listTransactions: { response: { transactions: success('Newest first', [redemption, activation]) } },
};

const EXAMPLES = { [VARIANT_A.name]: EXAMPLES_A, [VARIANT_B.name]: EXAMPLES_B };

/** The examples of an operation of a dialect. */
export function examplesOf(dialect: string, operationId: string): OperationExamples {
  const examples = EXAMPLES[dialect]?.[operationId];
  if (!examples) throw new Error(`${dialect} has no examples of ${operationId}`);
  return examples;
}

const settlement = {
  settlementId: '17',
  number: '5-2030-0001',
  firstDay: '2030-01-01',
  lastDay: '2030-01-31',
  currency: 'USD',
  payable: 1234.5,
  dueOn: '2030-02-05',
};
const named = { serialNumber: '10000000042' };
const expiry = { keyId: 'key_0a1B2c3D4e5F6g7H', expiresAt: '2030-02-07T00:00:00.000Z' };
const bank = { bankReference: 'RF18 5390 0754 7034', valueDate: '2030-02-05' };

/** The data of each webhook event. */
export const EVENT_DATA: Readonly<Record<string, unknown>> = {
  'voucher.batch.completed': { ...batch, quantity: 2 },
  'voucher.batch.canceled': { ...batch, status: 'CANCELED', quantity: 2 },
  'voucher.activated': { ...activation, ...plain },
  'voucher.redeemed': { ...redemption, ...plain },
  'redemption.updated': updated,
  'float.low': { currency: 'USD', balance: 412.5, threshold: 500 },
  'limit.reached': { flow: 'redeem', keyId: 'key_0a1B2c3D4e5F6g7H', currency: 'USD', limit: 2000 },
  'voucher.blocked': named,
  'voucher.unblocked': named,
  'voucher.expired': { ...named, amount: 12.5, currency: 'USD' },
  'voucher.canceled': { ...named, amount: 25, currency: 'USD' },
  'voucher.replaced': { ...named, replacedBy: '10000000106' },
  'api-key.expiring': expiry,
  'api-key.expired': expiry,
  'api-key.revoked': { keyId: expiry.keyId, revokedAt: '2030-01-31T12:00:00.000Z' },
  'webhook.disabled': { endpointId: '3', reason: 'it answered 410 Gone' },
  'day.closed': { day: '2030-01-31', hash: 'c0ffee'.padEnd(64, '0'), failed: [] },
  'settlement.approved': { ...settlement, state: 'APPROVED' },
  'settlement.paid': { ...settlement, state: 'PAID', ...bank },
  'settlement.returned': { ...settlement, state: 'RETURNED', ...bank },
  'webhook.test': {},
};
