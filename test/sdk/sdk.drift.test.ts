import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Static } from 'typebox';
import {
  type RedemptionUpdateEventData,
  STATUS_CODES,
  type Transaction,
  type WebhookEventType,
} from '../../sdk/src/index.ts';
import type * as Wire from '../../sdk/src/wire.ts';
import type { BatchData, BatchVoucher } from '../../src/http/fields.ts';
import type * as A from '../../src/http/variant-a.ts';
import type * as B from '../../src/http/variant-b.ts';
import { NO_TRANSACTION } from '../../src/http/variant-b.ts';
import type { transactionData, updateData } from '../../src/ledger/transaction.ts';
import { type FieldError, REFUSALS } from '../../src/refusal.ts';
import type { EventType, TEST_EVENT } from '../../src/webhooks/outbox.ts';

/**
 * Compares the client's wire types with the service's schemas: a pair that can be assigned one way only,
 * or of which one side has an additional field, does not compile.
 */
type Same<One, Other> = [One] extends [Other]
  ? [Other] extends [One]
    ? [keyof One, keyof Other] extends [keyof Other, keyof One]
      ? true
      : false
    : false
  : false;

type Pairs = {
  generateA: Same<Wire.WireGenerateA, Static<typeof A.Generate>>;
  activateA: Same<Wire.WireActivateA, Static<typeof A.Activate>>;
  balanceRequestA: Same<Wire.WireBalanceRequestA, Static<typeof A.CheckBalance>>;
  redeemA: Same<Wire.WireRedeemA, Static<typeof A.Redeem>>;
  updateA: Same<Wire.WireUpdateA, Static<typeof A.UpdateRedemption>>;
  transactionA: Same<Wire.WireTransactionA, Static<typeof A.Transaction>>;
  balanceA: Same<Wire.WireBalanceA, Static<typeof A.BalanceData>>;
  updateResult: Same<Wire.WireUpdateResult, Static<typeof A.UpdateData>>;
  generateB: Same<Wire.WireGenerateB, Static<typeof B.Generate>>;
  activateB: Same<Wire.WireActivateB, Static<typeof B.Activate>>;
  balanceRequestB: Same<Wire.WireBalanceRequestB, Static<typeof B.CheckBalance>>;
  redeemB: Same<Wire.WireRedeemB, Static<typeof B.Redeem>>;
  transactionB: Same<Wire.WireTransactionB, Static<typeof B.Transaction>>;
  balanceB: Same<Wire.WireBalanceB, Static<typeof B.BalanceData>>;
  batch: Same<Wire.WireBatch, Static<typeof BatchData>>;
  voucher: Same<Wire.WireVoucher, Static<typeof BatchVoucher>>;
  transactionEvent: Same<Transaction, ReturnType<typeof transactionData>>;
  updateEvent: Same<
    Omit<RedemptionUpdateEventData, 'transactions'>,
    Omit<ReturnType<typeof updateData>, 'transactions'>
  >;
  eventType: Same<WebhookEventType, EventType | typeof TEST_EVENT>;
  fieldError: Same<Wire.WireFieldError, { -readonly [Key in keyof FieldError]: FieldError[Key] }>;
};

type Differing = { [Name in keyof Pairs]: Pairs[Name] extends true ? never : Name }[keyof Pairs];

/** Compiles only if the types of every pair are the same; the error names a pair that differs. */
const same: [Differing] extends [never] ? true : Differing = true;

// The comparison can fail: an additional field, an optional field and another type are different.
const different: [
  Same<{ a: string }, { a: string; b: string }>,
  Same<{ a: string }, { a: string; b?: string }>,
  Same<{ a: string }, { a: string | null }>,
] = [false, false, false];

it('the client and the service have the same types', () => {
  assert.ok(same && different.every((each) => !each));
});

it('the client names every status code of the service, and no other', () => {
  assert.deepEqual(STATUS_CODES, [...Object.keys(REFUSALS), NO_TRANSACTION.statusCode, '96'].sort());
});
