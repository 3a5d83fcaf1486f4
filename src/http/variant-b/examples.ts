import type { Endpoint, Example } from '../endpoint.ts';
import { NO_TRANSACTION } from './status.ts';

const SUCCESS = { statusCode: '00', message: 'Success' } as const;

const common = { voucherCode: '4829****7641', serialNumber: '10000000042' };

const activation = {
  transactionId: '019830a1-6f02-7a10-8c35-0b9d4e7f2a11',
  transactionType: 'ACTIVATION',
  amount: 50,
  timestamp: '2026-03-02T09:15:04.117Z',
  reference: 'activation-552',
  ...common,
};

const redemption = {
  transactionId: '019830a2-11c9-7e3b-b0a4-5d6e8f9a0b22',
  transactionType: 'REDEMPTION',
  amount: 10.5,
  timestamp: '2026-03-02T11:40:51.302Z',
  reference: 'order-10071',
  ...common,
};

const batch = {
  reference: 'batch-2026-03-02',
  transactionId: '019830a1-5b1e-7c44-9d0f-3f2a6c1b7e01',
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
const inactive = success('Without a value: to be activated', { ...batch, value: null, vouchers });
const processing = success('More than 10 vouchers: still in process', { ...batch, status: 'PROCESSING' });

const codeAndPin = { voucherCode: '482913057641', pin: '0731' };
const inOne = { voucherCode: '4829130576410731', pin: null };

/** The examples of the documentation, by operation. A test holds each of them against its schema. */
export const EXAMPLES = {
  generate: {
    request: {
      active: {
        summary: 'Two vouchers of 25, active at once',
        value: { quantity: 2, reference: 'batch-2026-03-02', value: 25, expiryDate: '2027-03-02T09:00:00Z' },
      },
      inactive: {
        summary: 'Two vouchers to be activated later',
        value: { quantity: 2, reference: 'batch-2026-03-02', value: null },
      },
    },
    response: { completed, inactive, processing },
  },
  download: {
    response: { completed, inactive, processing, canceled: success('Canceled', { ...batch, status: 'CANCELED' }) },
  },
  activate: {
    request: {
      value: {
        summary: 'With a value of 50',
        value: { serialNumber: 10000000042, value: 50, reference: 'activation-552' },
      },
      plain: { summary: 'With the default value', value: { serialNumber: 10000000042, reference: 'activation-552' } },
    },
    response: { activated: success('Activated', activation) },
  },
  balance: {
    request: {
      apart: { summary: 'Code and PIN apart', value: codeAndPin },
      inOne: { summary: 'Code and PIN in one', value: inOne },
    },
    response: {
      balance: success('Partly redeemed', {
        serialNumber: 10000000042,
        voucherCode: '482913057641',
        balance: 39.5,
        usableAmount: 39.5,
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
      apart: { summary: 'Code and PIN apart', value: { ...codeAndPin, amount: 10.5, reference: 'order-10071' } },
      inOne: { summary: 'Code and PIN in one', value: { ...inOne, amount: 10.5, reference: 'order-10071' } },
    },
    response: {
      redeemed: success('Redeemed; the code is repeated as it was sent', {
        ...redemption,
        voucherCode: '482913057641',
      }),
    },
  },
  lookup: {
    response: {
      redemption: success('A redemption', redemption),
      none: { summary: 'Nothing under this reference', value: { ...NO_TRANSACTION, data: null } },
    },
  },
  list: { response: { transactions: success('Newest first', [redemption, activation]) } },
} satisfies Readonly<Record<string, Endpoint['examples']>>;
