import Type, { type Static } from 'typebox';
import { countCall, isBlockedToday } from '../api-keys/guesses.ts';
import { findKeyInfo } from '../api-keys/keys.ts';
import { auditFirst } from '../audit/audit.ts';
import { refundAtTill } from '../books/refunds.ts';
import { cashOutAtTill } from '../books/vouchers.ts';
import type { Context } from '../context.ts';
import { sql } from '../db/sql.ts';
import { none } from '../figure.ts';
import { checkReference } from '../ledger/claims.ts';
import type { Outcome } from '../ledger/transaction.ts';
import { actFor, permit } from '../merchants/merchants.ts';
import { toNumber } from '../money.ts';
import { alone, type Caller, changing, NO_COMMAND, reading, tableOf } from '../operation.ts';
import { PORTAL_ROLES, type PortalRole } from '../principal.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import { requireProduct } from '../products/products.ts';
import { GivenUp, giveUpRedemption } from '../redemptions/give-up.ts';
import { redeem } from '../redemptions/redeem.ts';
import { repeatUpdate } from '../redemptions/update.ts';
import { Refusal } from '../refusal.ts';
import { Code, Gtin, Line, Money, Opening, Pin, SerialNumber, Text, Time } from '../schema.ts';
import { noteCashier } from '../transactions/cashiers.ts';
import { findByReference, ShownSchema, transactions } from '../transactions/transactions.ts';
import { activate } from '../vouchers/activate.ts';
import { balance } from '../vouchers/balance.ts';
import { showVoucher } from '../vouchers/show.ts';
import { voidActivation } from '../vouchers/void.ts';

/**
 * The till of a merchant's own people: what its programs do over the merchant API, by the same functions.
 * Under one reference something is booked once, whichever of the two sent it.
 */

const TILL_ROLES: readonly PortalRole[] = ['owner', 'cashier'];

/** Returns the merchant of a caller. @throws Problem for callers of the operator */
export function ownIdOf({ principal }: Caller): string {
  if (principal.merchantId === null) throw new Problem('forbidden');
  return String(principal.merchantId);
}

export const OF_MERCHANT = alone('The people of a merchant need no approval of the operator.');

export const ofKey = {
  noun: 'key',
  field: 'keyId',
  of: async ({ service }: Caller, id: string) => (await findKeyInfo(service, id))?.merchantId,
};

/**
 * Returns the context of a till, with the permissions of the merchant. All users of a merchant share one
 * count of wrong PINs, as for an API key.
 * @throws Refusal `04`
 */
async function contextOf(caller: Caller): Promise<Context> {
  const id = ownIdOf(caller);
  const context = await actFor(caller.service, Number(id));
  if (!context) throw notFound('such merchant');
  return { ...context, keyId: `portal-${id}`, requestId: caller.principal.requestId ?? undefined };
}

/** The same for a request with a PIN. @throws Refusal `04`; `97` if the merchant's portal keeps guessing */
async function contextOfPin(caller: Caller): Promise<Context> {
  const context = await contextOf(caller);
  if (await isBlockedToday(context))
    throw new Refusal('97', { message: 'Too many requests: too many wrong codes or PINs today' });
  countCall(context.service, context.keyId, context.now, true);
  return context;
}

/** The core refuses other amounts (`13`) and references (`18`), as over the merchant API. */
const TillAmount = (description: string) => Type.Number({ description, examples: [7.5] });
const TillReference = (description: string) =>
  Type.String({ minLength: 1, description, examples: ['order-10071'] });

const NewReference = TillReference(
  'Your reference, as over the merchant API: a repetition under it is booked once.',
);
const BookedReference = TillReference(
  'The reference of the redemption, or its transaction id if it has none.',
);

/** A till sees what a card is worth, and not what others booked on it. */
const CARD = none('The balance of a card; its history is that of all merchants.');

const Booked = Type.Object({
  transaction: ShownSchema,
  ...Type.Pick(ShownSchema, ['voucherCode', 'serialNumber', 'currency']).properties,
  balance: Money(CARD, 'The balance of the voucher after this transaction.'),
  replayed: Type.Boolean({ description: 'Whether an earlier copy of the request was booked.' }),
});

/**
 * Returns the answer about a transaction. The balance comes from the journal, so that a repetition gets the
 * same answer.
 */
async function booked(caller: Caller, id: string, replayed: boolean): Promise<Static<typeof Booked>> {
  const { db, buckets } = caller.service;
  // A standby may not have the transaction yet.
  const service = { ...caller.service, readDb: db };
  const transaction = await transactions.show.run({ ...caller, service }, { transactionId: id });
  const { voucherCode, serialNumber, currency } = transaction;
  const serial = BigInt(serialNumber as string);
  const [row] = await db.query<{ balance: bigint }>(sql`
select coalesce(sum(change_minor), 0)::bigint as balance
from list_voucher_entries(${buckets.ofSerial(serial)}, ${serial}, null::integer)
where id <= ${id}::uuid`);
  return { transaction, voucherCode, serialNumber, currency, balance: row?.balance ?? 0n, replayed };
}

/** The same about what the caller has just booked, unless an earlier copy of the request had. */
async function bookedBy(caller: Caller, id: string, replayed: boolean) {
  if (!replayed) await noteCashier(caller, id);
  return booked(caller, id, replayed);
}

const bookedOutcome = (caller: Caller, { transaction, replayed }: Outcome) =>
  bookedBy(caller, transaction.transactionId, replayed);

/**
 * What the operations of the till have in common. Redemptions and activations are movements, which the
 * journal has: if the audit had them too, tills would wait for each other.
 */
const AT_TILL = {
  command: NO_COMMAND,
  output: Booked,
  roles: TILL_ROLES,
  approval: OF_MERCHANT,
  // The core books in transactions of its own, together with the requests of other tills.
  effect: 'outside',
} as const;

const tillRedeem = changing({
  ...AT_TILL,
  name: 'till.redeem',
  summary: 'Redeem an amount from a voucher',
  path: '/till/redeem',
  audit: null,
  input: {
    code: Code,
    pin: Pin,
    amount: TillAmount('In major units: it is taken in full, or not at all.'),
    reference: NewReference,
  },
  async run(caller, request) {
    return bookedOutcome(caller, await redeem(await contextOfPin(caller), request));
  },
});

const tillActivate = changing({
  ...AT_TILL,
  name: 'till.activate',
  summary: 'Activate a voucher, by its code and PIN or by its serial number',
  description:
    'A serial number only names a voucher that the merchant generated. Its value is that of its batch; if the ' +
    'batch has none, the given one, otherwise 5000.',
  path: '/till/activate',
  audit: null,
  input: {
    code: Type.Optional(Code),
    pin: Type.Optional(Pin),
    serialNumber: Type.Optional(SerialNumber),
    gtin: Type.Optional(
      Type.String({
        ...Gtin,
        description:
          'The GTIN that was scanned with the serial number: refused unless it is that of the product.',
      }),
    ),
    value: Type.Optional(TillAmount('In major units; only with the serial number.')),
    reference: Type.Optional(NewReference),
  },
  async run(caller, { code, pin, serialNumber, gtin, value, reference }) {
    if (serialNumber === undefined) {
      if (code === undefined || pin === undefined)
        throw invalid(code === undefined ? 'code' : 'pin', 'required', 'is required without a serial number');
      if (value !== undefined) throw invalid('value', 'serial-number', 'needs the serial number');
      if (gtin !== undefined) throw invalid('gtin', 'serial-number', 'needs the serial number');
      const voucher = { code, pin };
      return bookedOutcome(caller, await activate(await contextOfPin(caller), { voucher, reference }));
    }
    if (code !== undefined || pin !== undefined)
      throw invalid('serialNumber', 'alone', 'names the voucher already: leave the code and the PIN out');
    if (gtin !== undefined) await requireGtin(caller, BigInt(serialNumber), gtin);
    const voucher = { serialNumber: Number(serialNumber) };
    return bookedOutcome(caller, await activate(await contextOf(caller), { voucher, value, reference }));
  },
});

/**
 * Refuses a serial number that was scanned from another product: a card may have the same one.
 * @throws Problem; Refusal `14`
 */
async function requireGtin({ service, principal }: Caller, serialNumber: bigint, gtin: string) {
  const { merchantId, product } = await showVoucher(service, serialNumber);
  // The activation refuses it.
  if (merchantId !== String(principal.merchantId)) return;
  const own = (await requireProduct(service.db, product)).gtin;
  if (own?.padStart(GTIN_DIGITS, '0') !== gtin.padStart(GTIN_DIGITS, '0'))
    throw invalid('gtin', 'product', 'is not that of the product of this card');
}

/** A shorter GTIN has zeros in front of it in a bar code. */
const GTIN_DIGITS = 14;

const tillCorrect = changing({
  ...AT_TILL,
  name: 'till.correct',
  summary: 'Correct the amount of a redemption, once; 0 reverses it in full',
  description:
    'The answer has the redemption that takes its place or, after a full reversal, the reversal. The merchant ' +
    'needs the permission update-redemption.',
  path: '/till/correct',
  input: {
    reference: BookedReference,
    amount: TillAmount('What the redemption should have taken, in major units; 0 reverses it.'),
  },
  async run(caller, { reference, amount }) {
    const context = await contextOf(caller);
    permit(context, 'update-redemption');
    checkReference(reference);
    // The journal has the amounts.
    await auditFirst(caller, {
      action: 'till.correct',
      subject: `merchant ${context.merchant.id}`,
      after: { reference },
    });
    const { update, replayed } = await repeatUpdate(context, { reference, amountUsed: amount });
    const { cancellation, replacement } = update;
    if (!replayed && replacement) await noteCashier(caller, cancellation.transactionId);
    return bookedBy(caller, (replacement ?? cancellation).transactionId, replayed);
  },
});

const tillVoid = changing({
  ...AT_TILL,
  name: 'till.void',
  summary: 'Void an activation: the voucher is canceled for good, and its value goes back to the float',
  description:
    'Within 24 hours (41), as long as the voucher is not used (42), and only if this merchant paid for it (47). ' +
    'The merchant needs the permission activate.',
  path: '/till/void',
  input: { reference: TillReference('The reference of the activation, or its transaction id.') },
  async run(caller, { reference }) {
    const { transactionId, replayed } = await voidActivation(caller, await contextOf(caller), reference);
    return bookedBy(caller, transactionId, replayed);
  },
});

const tillCashOut = changing({
  ...AT_TILL,
  name: 'till.cash-out',
  summary: 'Pay out the whole balance of a voucher in cash, where its product allows it',
  description:
    'A higher balance, or a product without `cashOutBelow`, is refused (61): the operator pays it. The ' +
    'settlement pays the cash back to the merchant, who needs the permission redeem.',
  path: '/till/cash-out',
  audit: 'voucher.cash-out',
  input: { code: Code, pin: Pin, reference: NewReference },
  async run(caller, request) {
    const { transactionId, replayed } = await cashOutAtTill(caller, await contextOfPin(caller), request);
    return bookedBy(caller, transactionId, replayed);
  },
});

const tillRefund = changing({
  ...AT_TILL,
  name: 'till.refund',
  summary: 'Refund a part of a redemption to its voucher; several times, up to what it took',
  description:
    'The settlement of the merchant becomes lower. More than is left of the redemption is refused (51). If the ' +
    'voucher was replaced, the money goes to the voucher in its place. The merchant needs the permission ' +
    'update-redemption.',
  path: '/till/refund',
  audit: 'redemption.refund',
  input: {
    reference: BookedReference,
    amount: TillAmount('What goes back to the voucher, in major units.'),
    refundReference: TillReference('Your reference of the refund: a repetition under it is booked once.'),
  },
  async run(caller, request) {
    const { transactionId, replayed } = await refundAtTill(caller, await contextOf(caller), request);
    return bookedBy(caller, transactionId, replayed);
  },
});

const checkVoucher = reading({
  name: 'voucher.check',
  summary: 'Check the balance of a voucher by its code and PIN',
  description:
    'Wrong PINs count as at the till: five in a row lock the PIN, and a portal that keeps guessing is stopped (97).',
  // It only reads: a transaction would be rolled back with the answer, and the count of wrong PINs must stay.
  method: 'POST',
  path: '/vouchers/check',
  command: NO_COMMAND,
  input: { code: Code, pin: Pin },
  output: Type.Object({
    serialNumber: SerialNumber,
    balance: Opening(CARD, Type.Number()),
    usableAmount: Opening(
      CARD,
      Type.Number({ title: 'Usable', description: 'The balance, or 0 where nothing can be redeemed.' }),
    ),
    currency: Text,
    expiryDate: Time,
  }),
  roles: PORTAL_ROLES,
  async run(caller, { code, pin }) {
    const context = await contextOfPin(caller);
    const found = await balance(context, { code, pin });
    const { currency, expiresAt } = await showVoucher(context.service, found.serialNumber);
    return {
      serialNumber: String(found.serialNumber),
      balance: toNumber(found.balance),
      usableAmount: toNumber(found.usable),
      currency,
      expiryDate: expiresAt,
    };
  },
});

const tillFind = reading({
  name: 'till.find',
  summary: 'Find what was booked under a reference: the redemption, else the activation or cash-out',
  description: 'It says whether a request without an answer was booked. 404: it was not, so far.',
  method: 'POST',
  path: '/till/find',
  command: NO_COMMAND,
  input: { reference: TillReference('The reference of the request.') },
  output: Booked,
  roles: TILL_ROLES,
  async run(caller, { reference }) {
    checkReference(reference);
    // A standby may not have the transaction yet.
    const found = await findByReference(caller.service.db, Number(ownIdOf(caller)), reference);
    return booked(caller, found, false);
  },
});

const giveUp = changing({
  name: 'redemption.give-up',
  summary: 'Give up a redemption whose outcome is unknown: reverse it, or ensure that it is never booked',
  description:
    'If it was booked, it is reversed in full, once. If not, its reference is used up, so a late copy of the ' +
    'request is refused (94). It is safe to repeat, and to call while the redemption is still running. The ' +
    'merchant needs the permission update-redemption.',
  path: '/redemptions/give-up',
  command: NO_COMMAND,
  input: {
    reference: TillReference('The reference of the redemption.'),
    keyId: Type.Optional(
      Line(100, 'The API key that sent it: refused unless it belongs to the same merchant.', 'key_4Xa9'),
    ),
  },
  output: GivenUp,
  roles: TILL_ROLES,
  approval: OF_MERCHANT,
  // It waits for redemptions under the same reference, so it holds no lock that others wait for.
  effect: 'outside',
  async run(caller, { reference, keyId }) {
    if (keyId !== undefined && String(await ofKey.of(caller, keyId)) !== ownIdOf(caller))
      throw notFound('API key of this merchant with this id');
    const given = await giveUpRedemption(caller, await contextOf(caller), reference);
    if (given.outcome === 'reversed' && given.reversalId) await noteCashier(caller, given.reversalId);
    return given;
  },
});

/** The operations of the till, in the order of their documentation. */
export const TILL = tableOf(
  checkVoucher,
  tillRedeem,
  tillActivate,
  tillCorrect,
  tillRefund,
  tillVoid,
  tillCashOut,
  tillFind,
  giveUp,
);
