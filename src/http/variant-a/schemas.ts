import Type from 'typebox';
import { Nullable, Word } from '../envelope.ts';
import {
  AMOUNT_RULES,
  Code,
  DateTime,
  OptionalReference,
  Pin,
  Reference,
  SerialNumber,
  TransactionId,
} from '../fields.ts';

export const Generate = Type.Object({
  reference: Reference,
  productCode: Type.String({
    description: 'The code of the product, such as `DEFAULT`. Unknown, off sale or not yours: `15`.',
    examples: ['DEFAULT'],
  }),
  quantity: Type.Number({
    description: 'How many vouchers: a whole number from 1 to the limit of the product (`16` otherwise).',
    examples: [2],
  }),
  amount: Type.Number({ description: `The value of each voucher, ${AMOUNT_RULES}.`, examples: [25] }),
});

export const Activate = Type.Object({ pin: Pin, code: Code, reference: OptionalReference });

export const CheckBalance = Type.Object({ pin: Pin, code: Code });

export const Redeem = Type.Object({
  pin: Pin,
  code: Code,
  amount: Type.Number({
    description: `The amount to redeem, ${AMOUNT_RULES}. All of it is redeemed, or nothing.`,
    examples: [10.5],
  }),
  reference: OptionalReference,
});

export const UpdateRedemption = Type.Object({
  reference: Type.String({
    description: 'The reference of the redemption, or its `transactionId` if it had no reference.',
    examples: ['order-10071'],
  }),
  amountUsed: Type.Optional(
    Type.Number({
      description:
        'The amount that the redemption should have been: 0 or more, with at most the decimals of the currency (`13` otherwise). 0, or left out: a full reversal.',
      examples: [7.5],
    }),
  ),
});

export const Transaction = Type.Object({
  transactionId: TransactionId,
  transactionType: Word(['ACTIVATION', 'REDEMPTION', 'REDEMPTION_REVERSAL']),
  amount: Type.Number({ description: 'In major units. Negative for a `REDEMPTION_REVERSAL`.' }),
  timestamp: DateTime,
  reference: Nullable(Type.String(), { description: 'Your reference; null where the request had none.' }),
  voucherCode: Type.String({ description: 'The voucher code, masked: the first and the last four digits.' }),
  serialNumber: Type.String({ description: 'The serial number of the voucher.' }),
  refundStatus: Nullable(Type.String(), {
    enum: ['CANCELLED', 'NEW', null],
    description: '`CANCELLED`: undone by an update. `NEW`: put in its place by the update. Null: neither.',
  }),
  note: Nullable(Type.String(), { description: 'What an update did; null for all others.' }),
});

export const BalanceData = Type.Object({
  serialNumber: SerialNumber,
  voucherCode: Type.String({ description: 'The code as you sent it.' }),
  balance: Type.Number({ description: 'What is left on the voucher.' }),
  usableAmount: Type.Number({
    description:
      'What can be redeemed now: the balance, or 0 when the voucher is not active, blocked, expired or canceled.',
  }),
  value: Nullable(Type.Number(), { description: 'The value at activation; null before it.' }),
  transactions: Type.Array(
    Type.Object({
      transactionId: TransactionId,
      transactionType: Word(['ACTIVATION', 'REDEMPTION']),
      amount: Type.Number(),
      timestamp: DateTime,
      reference: Nullable(Type.String(), {
        description: 'Your own reference; "" for a transaction of another merchant.',
      }),
    }),
    { description: 'Activation and redemptions of the voucher, oldest first.' },
  ),
});

const NullableTransaction = Nullable(Transaction, {
  description: 'The redemption in force now; null after a full reversal.',
});

export const UpdateData = Type.Object({
  originalTransaction: Transaction,
  cancellationTransaction: Transaction,
  newTransaction: NullableTransaction,
  transactions: Type.Array(Transaction, {
    description: 'The same transactions in the order original, cancellation, new: two of them after a full reversal.',
  }),
  summary: Type.Object({
    originalAmount: Type.Number(),
    newAmount: Type.Number({ description: '0 after a full reversal.' }),
    reference: Type.String({ description: 'The reference of the redemption, as it was sent.' }),
  }),
});
