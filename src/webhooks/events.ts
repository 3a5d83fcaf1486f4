/** What merchants are told of (docs/webhooks.md). An endpoint takes a list of these, or all. */
export const EVENTS = [
  'voucher.batch.completed',
  'voucher.batch.canceled',
  'voucher.activated',
  'voucher.redeemed',
  'redemption.updated',
  'float.low',
  'settlement.approved',
  'settlement.paid',
  'settlement.returned',
] as const;

export type EventType = (typeof EVENTS)[number];

/** What the operator sends to see whether an endpoint answers. */
export const TEST_EVENT = 'webhook.test';
