import type { Transaction } from '../types.ts';
import type { WebhookEvent, WebhookEventType } from '../webhook-events.ts';

/** An example of each event, with ids and times of its own. */

type DataOf<Type extends WebhookEventType> = Extract<WebhookEvent, { type: Type }>['data'];

const YEAR_MS = 365 * 86_400_000;

const transaction = (changed: Partial<Transaction>): Transaction => ({
  transactionId: crypto.randomUUID(),
  transactionType: 'REDEMPTION',
  amount: 20,
  timestamp: new Date().toISOString(),
  reference: 'order-10071',
  voucherCode: '4829****7641',
  serialNumber: '100000000000042',
  refundStatus: null,
  note: null,
  ...changed,
});

const batch = <Status extends string>(status: Status) => ({
  reference: 'batch-2031',
  transactionId: crypto.randomUUID(),
  status,
  expiryDate: new Date(Date.now() + YEAR_MS).toISOString(),
  value: 25,
  quantity: 500,
});

const settlement = <State extends string>(state: State) => ({
  settlementId: '12',
  number: 'S-2026-000012',
  state,
  firstDay: '2026-10-01',
  lastDay: '2026-10-31',
  currency: 'USD',
  payable: 1840.5,
  dueOn: '2026-11-15',
});

const VOUCHER = { serialNumber: '10000000042' };
const KEY = { keyId: 'key_0a1B2c3D4e5F6g7H', expiresAt: '2026-11-15T12:00:00.000Z' };
const BANK = { bankReference: 'BANK-7731', valueDate: '2026-11-15' };

function update(): DataOf<'redemption.updated'> {
  const note = 'updated';
  const original = transaction({ refundStatus: 'CANCELLED', note });
  const cancellation = transaction({
    transactionType: 'REDEMPTION_REVERSAL' as Transaction['transactionType'],
    amount: -20,
    reference: 'CANCEL-order-10071',
    note,
  });
  const renewed = transaction({ amount: 15, reference: 'NEW-order-10071', refundStatus: 'NEW', note });
  return {
    originalTransaction: original,
    cancellationTransaction: cancellation,
    newTransaction: renewed,
    transactions: [original, cancellation, renewed],
    summary: { originalAmount: 20, newAmount: 15, reference: 'order-10071' },
  };
}

export const EVENTS: { readonly [Type in WebhookEventType]: () => DataOf<Type> } = {
  'voucher.batch.completed': () => batch('COMPLETED'),
  'voucher.batch.canceled': () => batch('CANCELED'),
  'voucher.activated': () => transaction({ transactionType: 'ACTIVATION', reference: 'sale-481' }),
  'voucher.redeemed': () => transaction({}),
  'redemption.updated': update,
  'float.low': () => ({ currency: 'USD', balance: 90.5, threshold: 100 }),
  'limit.reached': () => ({
    flow: 'redeem',
    keyId: 'key_0a1B2c3D4e5F6g7H',
    currency: 'USD',
    limit: 2_000,
  }),
  'voucher.blocked': () => VOUCHER,
  'voucher.unblocked': () => VOUCHER,
  'voucher.expired': () => ({ ...VOUCHER, amount: 12.5, currency: 'USD' }),
  'voucher.canceled': () => ({ ...VOUCHER, amount: 25, currency: 'USD' }),
  'voucher.replaced': () => ({ ...VOUCHER, replacedBy: '10000000106' }),
  'api-key.expiring': () => KEY,
  'api-key.expired': () => KEY,
  'api-key.revoked': () => ({ keyId: KEY.keyId, revokedAt: KEY.expiresAt }),
  'webhook.disabled': () => ({ endpointId: '3', reason: 'it answered 410 Gone' }),
  'day.closed': () => ({ day: '2026-11-14', hash: 'c0ffee'.padEnd(64, '0'), failed: [] }),
  'settlement.approved': () => settlement('APPROVED'),
  'settlement.paid': () => ({ ...settlement('PAID'), ...BANK }),
  'settlement.returned': () => ({ ...settlement('RETURNED'), ...BANK }),
  'webhook.test': () => ({}),
};
