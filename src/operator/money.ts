import Type from 'typebox';
import { changeIn } from '../agreement.ts';
import { correctTopUp, getTopUp, refundFloat } from '../books/floats.ts';
import { listFloats } from '../merchants/floats.ts';
import { ofMerchant, requireMerchant } from '../merchants/merchants.ts';
import { toMinor, toNumber, toSum } from '../money.ts';
import { type Asked, changing, tableOf, twoPeople } from '../operation.ts';
import { MONEY } from '../principal.ts';
import {
  Amount,
  Input,
  Major,
  MerchantId,
  minorOf,
  Nullable,
  Positional,
  Reason,
  Reference,
  requireDecimals,
  Text,
  TransactionId,
} from '../schema.ts';
import { currencyOf, FloatCurrency } from './floats.ts';

/**
 * Operations that take money off a float. Each has a reference of the operator, under which it is booked
 * once.
 */

const Booked = { transactionId: TransactionId, replayed: Type.Boolean() };
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

export const MONEY_OPERATIONS = tableOf(refund, correct);
