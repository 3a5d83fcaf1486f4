import Type from 'typebox';
import { Nullable } from '../../schema.ts';
import {
  Amount,
  AmountUsed,
  balanceFields,
  Code,
  OptionalReference,
  Pin,
  ProductCode,
  Quantity,
  RedeemedReference,
  Reference,
  transactionFields,
} from '../fields.ts';

export const Generate = Type.Object({
  reference: Reference,
  productCode: ProductCode,
  quantity: Quantity(
    'How many vouchers: a whole number from 1 to the limit of the product, 100,000 unless set (`16` ' +
      'otherwise).',
  ),
  amount: Amount(
    'The value of each voucher, %. Within the limits of the product, 0.01 to 100,000.00 unless set (`61` ' +
      'otherwise).',
    25,
  ),
});

export const Activate = Type.Object({ pin: Pin, code: Code, reference: OptionalReference });

export const CheckBalance = Type.Object({ pin: Pin, code: Code });

export const Redeem = Type.Object({
  pin: Pin,
  code: Code,
  amount: Amount('The amount to redeem, %. All of it is redeemed, or nothing.', 10.5),
  reference: OptionalReference,
});

export const UpdateRedemption = Type.Object({
  reference: RedeemedReference,
  amountUsed: Type.Optional(AmountUsed),
});

const MaskedCode = Type.String({
  pattern: '^[0-9]{4}\\*{4}[0-9]{4}$',
  description: 'The voucher code, masked: the first and the last four digits.',
});

export const Transaction = Type.Object(
  {
    ...transactionFields(['ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL'], MaskedCode),
    refundStatus: Nullable(Type.String(), {
      enum: ['CANCELLED', 'NEW', null],
      description: '`CANCELLED`: undone by an update. `NEW`: put in its place by the update. Null: neither.',
    }),
    note: Nullable(Type.String(), { description: 'What an update did; null for all other transactions.' }),
  },
  { title: 'Transaction' },
);

export const RecentTransactions = Type.Array(Transaction, { maxItems: 50 });

const { transactions, ...amounts } = balanceFields;

export const BalanceData = Type.Object(
  {
    ...amounts,
    value: Nullable(Type.Number(), { description: 'The value at activation; null before it.' }),
    transactions,
  },
  { title: 'Balance' },
);

export const UpdateData = Type.Object(
  {
    originalTransaction: Transaction,
    cancellationTransaction: Transaction,
    newTransaction: Nullable(Transaction, {
      description: 'The redemption in force now; null after a full reversal.',
    }),
    transactions: Type.Array(Transaction, {
      minItems: 2,
      maxItems: 3,
      description:
        'The same transactions in the order original, cancellation, new. After a full reversal there are two ' +
        'of them.',
    }),
    summary: Type.Object({
      originalAmount: Type.Number({ description: 'The amount of the original redemption.' }),
      newAmount: Type.Number({ minimum: 0, description: 'The new amount; 0 after a full reversal.' }),
      reference: Type.String({ description: 'The reference of the redemption, as it was sent.' }),
    }),
  },
  { title: 'RedemptionUpdate' },
);
