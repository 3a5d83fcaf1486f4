import type { Endpoint, Example } from '../endpoint.ts';

const SUCCESS = { statusCode: '00', message: 'Success' } as const;

const voucher = { pin: '0731', code: '482913057641' };

const ids = {
  batch: '019830a1-5b1e-7c44-9d0f-3f2a6c1b7e01',
  activation: '019830a1-6f02-7a10-8c35-0b9d4e7f2a11',
  redemption: '019830a2-11c9-7e3b-b0a4-5d6e8f9a0b22',
  reversal: '019830a4-90d7-7f58-a1c2-7e8f90a1b233',
  update: '019830a4-90d8-7011-92b3-8f90a1b2c344',
};

const common = { voucherCode: '4829****7641', serialNumber: '10000000042' };

const activation = {
  transactionId: ids.activation,
  transactionType: 'ACTIVATION',
  amount: 25,
  timestamp: '2026-03-02T09:15:04.117Z',
  reference: 'activation-552',
  ...common,
  refundStatus: null,
  note: null,
};

const redemption = {
  transactionId: ids.redemption,
  transactionType: 'REDEMPTION',
  amount: 10.5,
  timestamp: '2026-03-02T11:40:51.302Z',
  reference: 'order-10071',
  ...common,
  refundStatus: null,
  note: null,
};

const original = { ...redemption, refundStatus: 'CANCELLED', note: 'Canceled by an update of the redemption' };

const cancellation = {
  transactionId: ids.reversal,
  transactionType: 'REDEMPTION_REVERSAL',
  amount: -10.5,
  timestamp: '2026-03-02T12:05:13.940Z',
  reference: 'CANCEL-order-10071',
  ...common,
  refundStatus: null,
  note: `Reversal of redemption ${ids.redemption}`,
};

const replacement = {
  transactionId: ids.update,
  transactionType: 'REDEMPTION',
  amount: 7.5,
  timestamp: '2026-03-02T12:05:13.940Z',
  reference: 'NEW-order-10071',
  ...common,
  refundStatus: 'NEW',
  note: `Created by an update of redemption ${ids.redemption}`,
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
  transactionId: ids.batch,
  status: 'COMPLETED',
  expiryDate: '2027-03-02T09:00:00.000Z',
  value: 25,
};

const vouchers = [
  { serialNumber: 10000000042, code: '482913057641', pin: '0731' },
  { serialNumber: 10000000043, code: '730164928850', pin: '5518' },
];

const success = (summary: string, data: unknown): Example => ({ summary, value: { ...SUCCESS, data } });

const completed = success('Completed, with its vouchers', { ...batch, vouchers });
const processing = success('More than 10 vouchers: still in process', { ...batch, status: 'PROCESSING' });
const update = success('Another amount: three transactions', updated);
const reversal = success('A full reversal: two transactions', reversed);

/** The examples of the documentation, by operation. A test holds each of them against its schema. */
export const EXAMPLES = {
  generate: {
    request: {
      few: {
        summary: 'Two vouchers of 25',
        value: { reference: 'batch-2026-03-02', productCode: 'DEFAULT', quantity: 2, amount: 25 },
      },
    },
    response: { completed, processing },
  },
  download: {
    response: { completed, processing, canceled: success('Canceled', { ...batch, status: 'CANCELED' }) },
  },
  activate: {
    request: {
      plain: { summary: 'By code and PIN', value: voucher },
      reference: { summary: 'With a reference: retries are safe', value: { ...voucher, reference: 'activation-552' } },
    },
    response: { activated: success('Activated', activation) },
  },
  balance: {
    request: { plain: { summary: 'By code and PIN', value: voucher } },
    response: {
      balance: success('Partly redeemed', {
        serialNumber: 10000000042,
        voucherCode: '482913057641',
        balance: 14.5,
        usableAmount: 14.5,
        value: 25,
        transactions: [activation, redemption].map(
          ({ transactionId, transactionType, amount, timestamp, reference }) => ({
            transactionId,
            transactionType,
            amount,
            timestamp,
            reference,
          }),
        ),
      }),
    },
  },
  redeem: {
    request: {
      plain: { summary: 'By code and PIN', value: { ...voucher, amount: 10.5 } },
      reference: {
        summary: 'With a reference: retries are safe',
        value: { ...voucher, amount: 10.5, reference: 'order-10071' },
      },
    },
    response: { redeemed: success('Redeemed', redemption) },
  },
  update: {
    request: {
      change: { summary: 'Another amount', value: { reference: 'order-10071', amountUsed: 7.5 } },
      reverse: { summary: 'A full reversal', value: { reference: 'order-10071', amountUsed: 0 } },
    },
    response: { update, reversal },
    refusals: {
      '58': {
        summary: 'Updated before: what that update came to',
        value: { statusCode: '58', message: 'Redemption already updated', data: updated },
      },
    },
  },
  details: { response: { update, reversal } },
  lookup: {
    response: {
      redemption: success('A redemption', redemption),
      updated: success('After an update: what it put in place', replacement),
    },
  },
  list: {
    response: { transactions: success('Newest first', [replacement, cancellation, original, activation]) },
  },
} satisfies Readonly<Record<string, Endpoint['examples']>>;
