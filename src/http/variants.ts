import { findBatch } from '../batches/export.ts';
import type { RefusalCode } from '../refusal.ts';
import { renderBatch } from './answer.ts';
import { type Dialect, type Endpoint, endpoint } from './endpoint.ts';
import { Amount, BatchData } from './fields.ts';

/** The endpoints of the merchants' API, as far as both variants have the same. */

type Declared = Pick<Endpoint, 'operationId' | 'summary' | 'method' | 'path'> & Partial<Endpoint>;

/** What both variants say of an endpoint. */
export const BOTH = {
  generate: {
    operationId: 'generateVouchers',
    summary: 'Generate vouchers',
    method: 'POST',
    path: '/vouchers',
  },
  activate: {
    operationId: 'activateVoucher',
    summary: 'Activate a voucher',
    method: 'POST',
    path: '/activate',
  },
  balance: {
    operationId: 'checkBalance',
    summary: 'Check the balance of a voucher',
    description:
      'What is left on a voucher, how much of it can be redeemed now, and its transactions. Needs the ' +
      'permission `balance`.',
    method: 'POST',
    path: '/balance',
    carriesPin: true,
    refusals: ['03', '14', '75', '55'],
  },
  redeem: {
    operationId: 'redeemVoucher',
    summary: 'Redeem a voucher',
    description:
      'Takes an amount from a voucher, in part or in full: the whole amount or nothing. Needs the permission ' +
      '`redeem`.',
    method: 'POST',
    path: '/redeem',
    carriesPin: true,
    refusals: ['18', '13', '03', '94', '14', '75', '55', '44', '43', '54', '40', '47', '42', '51'],
  },
  transaction: {
    operationId: 'getTransaction',
    summary: 'Get a transaction by its reference',
    method: 'GET',
    path: '/transactions/:reference',
  },
  transactions: {
    operationId: 'listTransactions',
    summary: 'List recent transactions',
    method: 'GET',
    path: '/transactions',
    refusals: [],
  },
} satisfies Readonly<Record<string, Declared>>;

/** The download of a batch, which is the same in both variants. */
export const downloadVouchers = endpoint({
  operationId: 'downloadVouchers',
  summary: 'Download vouchers',
  description:
    'The batch that you generated under a reference, with its vouchers once it is `COMPLETED`. Needs the ' +
    'permission `download` or `generate`.',
  method: 'GET',
  path: '/vouchers/:reference',
  data: BatchData,
  notFound: 'Vouchers not found',
  refusals: ['18', '03', '60'],
  async run(context, _body, reference) {
    return renderBatch(context, { batch: await findBatch(context, reference) });
  },
});

export const RedeemedAmount = Amount('The amount to redeem, %. All of it is redeemed, or nothing.', 10.5);

/** The HTTP status of each refusal in variant A. */
export const STATUSES: Dialect['statuses'] = {
  '98': 404,
  '01': 401,
  '97': 429,
  '04': 403,
  '30': 400,
  '18': 400,
  '16': 400,
  '13': 400,
  '17': 400,
  '03': 403,
  '15': 400,
  '61': 400,
  '94': 400,
  '14': 400,
  '75': 400,
  '55': 400,
  '44': 400,
  '43': 400,
  '54': 400,
  '40': 400,
  '41': 400,
  '47': 400,
  '42': 400,
  '58': 400,
  '51': 400,
  '50': 400,
  '60': 404,
  '91': 503,
};

/** What the transport refuses has the same status in every variant. */
const OF_TRANSPORT: readonly RefusalCode[] = ['98', '01', '97', '91'];

/** The HTTP statuses of variant B: 200 for every request that is valid at transport level. */
export const STATUSES_OF_TRANSPORT = Object.fromEntries(
  Object.entries(STATUSES).map(([code, status]) => [
    code,
    OF_TRANSPORT.includes(code as RefusalCode) ? status : 200,
  ]),
) as Dialect['statuses'];
