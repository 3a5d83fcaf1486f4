import Type from 'typebox';
import { correctTopUp, getTopUp, refundFloat } from '../books/floats.ts';
import { adjustVoucher, cashOut, escheatVoucher, voucherBalance } from '../books/vouchers.ts';
import { toNumber } from '../money.ts';
import { ABOVE_LIMIT, type Caller, changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import {
  AMOUNT_MAX,
  Amount,
  Currency,
  Input,
  Line,
  Major,
  MerchantId,
  minorOf,
  Nullable,
  Positional,
  Reason,
  requireDecimals,
  SerialNumber,
  Text,
  TransactionId,
} from '../schema.ts';
import { currencyOf } from './floats.ts';
import { requireMerchant } from './merchants.ts';

/**
 * Operations that take money off a float or change the balance of a voucher. Each has a reference of the
 * operator, under which it is booked once.
 */

export const Reference = Line(100, 'Your reference: a repetition under it books once.', 'case-81');
const NeededReason = Line(500, 'Why, for the audit.', 'The card was charged twice.');

const Booked = { transactionId: TransactionId, replayed: Type.Boolean() };
const BookedOnVoucher = Type.Object({
  serialNumber: SerialNumber,
  currency: Text,
  balance: Major('The balance of the voucher now.'),
  ...Booked,
});

const refund = changing({
  name: 'float.refund',
  summary: 'Book an unused prepayment that was paid back to a merchant',
  method: 'POST',
  path: '/floats/refund',
  command: 'float refund',
  input: Input({
    merchantId: MerchantId,
    amount: Amount('In major units.'),
    currency: Type.Optional(Currency),
    reference: Reference,
    reason: Reason,
  }),
  output: Type.Object({ merchantId: MerchantId, currency: Text, amount: Major(), ...Booked }),
  roles: MONEY,
  approval: twoPeople({ why: 'Money leaves the operator.' }),
  async run(caller, { merchantId, amount, currency: given, reference }) {
    const { id } = await requireMerchant(caller, merchantId, 'merchantId');
    const currency = await currencyOf(caller, given);
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
  async run(caller, { serialNumber, reference }) {
    const booked = await escheatVoucher(caller, { serialNumber: BigInt(serialNumber), reference });
    return { ...(await balanceOf(caller, serialNumber)), ...booked };
  },
});

export const moneyOperations = { refund, correct, adjust, cashOut: payCash, escheat };

export const MONEY_OPERATIONS = tableOf(...Object.values(moneyOperations));
