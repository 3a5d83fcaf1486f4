import Type from 'typebox';
import { changeIn } from '../agreement.ts';
import { correctTopUp, getTopUp, refundFloat } from '../books/floats.ts';
import { adjustVoucher, cashOut, escheatVoucher, voucherBalance } from '../books/vouchers.ts';
import { listFloats } from '../merchants/floats.ts';
import { merchantNamed, ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { toMinor, toNumber, toSum } from '../money.ts';
import { ABOVE_LIMIT, type Asked, type Caller, changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import {
  AMOUNT_MAX,
  Amount,
  Input,
  Line,
  Major,
  MerchantId,
  minorOf,
  Nullable,
  Positional,
  Reason,
  Reference,
  requireDecimals,
  SerialNumber,
  Text,
  TransactionId,
} from '../schema.ts';
import { ofVoucher } from '../vouchers/show.ts';
import { currencyOf, FloatCurrency } from './floats.ts';

/**
 * Operations that take money off a float or change the balance of a voucher. Each has a reference of the
 * operator, under which it is booked once.
 */

const NeededReason = Line(500, 'Why, for the audit.', 'The card was charged twice.');

const Booked = { transactionId: TransactionId, replayed: Type.Boolean() };
const BookedOnVoucher = Type.Object({
  serialNumber: SerialNumber,
  currency: Text,
  balance: Major('The balance of the voucher now.'),
  ...Booked,
});

/** Returns what was taken off a float, and the float before and after it. */
async function floatLeft(asked: Asked<unknown>, merchantId: number) {
  const amount = String(changeIn(asked).after['amount']);
  const [currency = '', sum = ''] = amount.split(' ');
  const floats = await listFloats(asked.caller.service.db, merchantId);
  const minor = floats.find((each) => each.currency === currency)?.balance;
  if (minor === undefined) throw new Error('money was taken off a float that is not there');
  const decimals = requireDecimals(currency);
  const before = { minor: minor + (toMinor(Number(sum), decimals) ?? 0n), decimals };
  return { amount, before: toSum(currency, before), after: toSum(currency, { minor, decimals }) };
}

/** Returns the balance of a voucher before and after a change. */
async function ofBalance(asked: Asked<{ readonly serialNumber: string; readonly reference: string }>) {
  const { serialNumber, reference } = asked.input;
  const { before, after } = changeIn(asked);
  const found = { before: before['balance'], after: after['balance'], reference };
  return { ...(await ofVoucher(asked, serialNumber)), ...found };
}

const refund = changing({
  name: 'float.refund',
  summary: 'Book an unused prepayment that was paid back to a merchant',
  method: 'POST',
  path: '/floats/refund',
  command: 'float refund',
  input: Input({
    merchantId: MerchantId,
    amount: Amount('In major units.'),
    currency: FloatCurrency,
    reference: Reference,
    reason: Reason,
  }),
  output: Type.Object({ merchantId: MerchantId, currency: Text, amount: Major(), ...Booked }),
  roles: MONEY,
  approval: twoPeople({ why: 'Money leaves the operator.' }),
  agreement: {
    sentence: 'Book {amount} of the float of {merchant} as paid back to it: {before} → {after}',
    async of(asked) {
      const { merchantId, reference } = asked.input;
      const left = await floatLeft(asked, Number(merchantId));
      return { ...(await ofMerchant(asked, merchantId)), ...left, reference };
    },
  },
  async run(caller, { merchantId, amount, currency: given, reference }) {
    const { id, product } = await requireMerchant(caller, merchantId, 'merchantId');
    const currency = await currencyOf(caller, given, product);
    const amountMinor = minorOf(amount, currency, 'amount');
    const decimals = requireDecimals(currency);
    const booked = await refundFloat(caller, { merchantId: id, currency, amountMinor, decimals, reference });
    return { merchantId, currency, amount, ...booked };
  },
});

const correct = changing({
  name: 'float.correct',
  summary: 'Take back a wrong top-up or a part of it, once for each top-up',
  method: 'POST',
  path: '/floats/correct',
  command: 'float correct',
  input: Input({
    transactionId: Positional(TransactionId),
    amount: Type.Optional(Amount('In major units; left out: all of it.')),
    reference: Reference,
    reason: Reason,
  }),
  output: Type.Object({
    topUp: TransactionId,
    merchantId: Nullable(MerchantId),
    currency: Text,
    amount: Major(),
    ...Booked,
  }),
  roles: MONEY,
  approval: twoPeople({ why: 'Money is taken off the float of a merchant.' }),
  agreement: {
    sentence: 'Take {amount} of a top-up of {topUp} off the float of {merchant}: {before} → {after}',
    async of(asked) {
      const { transactionId, reference } = asked.input;
      const { merchant_id: merchantId } = await getTopUp(asked.caller, transactionId);
      const about = await ofMerchant(asked, merchantId as number);
      const left = await floatLeft(asked, merchantId as number);
      return { ...about, ...left, topUp: changeIn(asked).before['amount'], transactionId, reference };
    },
  },
  async run(caller, { transactionId, amount, reference }) {
    const topUp = await getTopUp(caller, transactionId);
    const { currency, decimals } = topUp;
    const amountMinor = amount === undefined ? topUp.amount_minor : minorOf(amount, currency, 'amount');
    const booked = await correctTopUp(caller, { topUp, amountMinor, reference });
    return {
      topUp: topUp.id,
      merchantId: topUp.merchant_id === null ? null : String(topUp.merchant_id),
      currency,
      amount: toNumber({ minor: amountMinor, decimals }),
      ...booked,
    };
  },
});

async function balanceOf(caller: Caller, serialNumber: string) {
  const { currency, ...balance } = await voucherBalance(caller, BigInt(serialNumber));
  return { serialNumber, currency, balance: toNumber(balance) };
}

const adjust = changing({
  name: 'voucher.adjust',
  summary: 'Correct the balance of a voucher by a signed amount, with a reason',
  method: 'POST',
  path: '/vouchers/:serialNumber/adjust',
  command: 'voucher adjust',
  input: Input({
    serialNumber: SerialNumber,
    amount: Type.Number({
      minimum: -AMOUNT_MAX,
      maximum: AMOUNT_MAX,
      description: 'In major units; below zero takes away.',
      examples: [5],
    }),
    reference: Reference,
    reason: NeededReason,
  }),
  output: BookedOnVoucher,
  roles: MONEY,
  approval: twoPeople({
    why: 'It makes money, or takes it away.',
    when: [ABOVE_LIMIT],
    proposers: ['support'],
  }),
  agreement: {
    sentence: 'Change the balance of voucher {voucher} of {merchant}: {before} → {after}',
    of: ofBalance,
  },
  risk: 'step-up',
  async run(caller, { serialNumber, amount, reference }) {
    const { currency } = await voucherBalance(caller, BigInt(serialNumber));
    const minor = minorOf(Math.abs(amount), currency, 'amount');
    const deltaMinor = amount < 0 ? -minor : minor;
    const booked = await adjustVoucher(caller, { serialNumber: BigInt(serialNumber), deltaMinor, reference });
    return { ...(await balanceOf(caller, serialNumber)), ...booked };
  },
});

const payCash = changing({
  name: 'voucher.cash-out',
  summary: 'Book the rest of a voucher that was paid out in cash',
  method: 'POST',
  path: '/vouchers/:serialNumber/cash-out',
  command: 'voucher cash-out',
  input: Input({
    serialNumber: SerialNumber,
    amount: Type.Optional(Amount('In major units; left out: all that is left.')),
    merchantId: Type.Optional(
      Nullable(MerchantId, { description: 'The merchant that paid; left out: the operator.' }),
    ),
    reference: Reference,
    reason: Reason,
  }),
  output: BookedOnVoucher,
  roles: MONEY,
  approval: twoPeople({
    why: 'Money leaves the operator.',
    when: [ABOVE_LIMIT],
    proposers: ['support'],
  }),
  agreement: {
    sentence: 'Book voucher {voucher} of {merchant} as paid out in cash by {paidBy}: {before} → {after}',
    async of(asked) {
      const paidBy = await merchantNamed(asked, asked.input.merchantId);
      return { ...(await ofBalance(asked)), paidBy };
    },
  },
  risk: 'step-up',
  async run(caller, { serialNumber: serial, amount, merchantId: paidBy, reference }) {
    const merchantId = paidBy ? (await requireMerchant(caller, paidBy, 'merchantId')).id : null;
    const serialNumber = BigInt(serial);
    const { currency } = await voucherBalance(caller, serialNumber);
    const amountMinor = amount === undefined ? null : minorOf(amount, currency, 'amount');
    const booked = await cashOut(caller, { serialNumber, amountMinor, merchantId, reference });
    return { ...(await balanceOf(caller, serial)), ...booked };
  },
});

const escheat = changing({
  name: 'voucher.escheat',
  summary: 'Book the balance of a voucher as paid to a state',
  method: 'POST',
  path: '/vouchers/:serialNumber/escheat',
  command: 'voucher escheat',
  input: Input({ serialNumber: SerialNumber, reference: Reference, reason: Reason }),
  output: BookedOnVoucher,
  roles: MONEY,
  approval: twoPeople({ why: 'Money leaves the operator.' }),
  agreement: {
    sentence: 'Book the balance of voucher {voucher} of {merchant} as paid to a state: {before} → {after}',
    of: ofBalance,
  },
  async run(caller, { serialNumber, reference }) {
    const booked = await escheatVoucher(caller, { serialNumber: BigInt(serialNumber), reference });
    return { ...(await balanceOf(caller, serialNumber)), ...booked };
  },
});

export const moneyOperations = { refund, correct, adjust, cashOut: payCash, escheat };

export const MONEY_OPERATIONS = tableOf(...Object.values(moneyOperations));
