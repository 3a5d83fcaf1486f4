import Type from 'typebox';
import { Nullable, Word } from '../envelope.ts';
import { AMOUNT_RULES, DateTime, Reference, SerialNumber, TransactionId } from '../fields.ts';

export const Generate = Type.Object({
  quantity: Type.Number({
    description:
      'How many vouchers: a whole number from 1 to the limit of your product (`16` otherwise). Up to 10 are in the answer; more are produced in the background and downloaded by the reference.',
    examples: [2],
  }),
  reference: Reference,
  value: Type.Optional(
    Nullable(
      Type.Number({
        description: `The value of each voucher, ${AMOUNT_RULES}: the vouchers are active at once. Null or left out: they get their value when they are activated.`,
        examples: [25],
      }),
    ),
  ),
  expiryDate: Type.Optional(
    Nullable(
      Type.String({
        format: 'date-time',
        description:
          'When the vouchers expire: an ISO 8601 date-time, at least one day from now (`17` otherwise). Without an offset it is UTC. Null or left out: after the validity of your product, 365 days unless set.',
        examples: ['2030-12-31T23:59:59Z'],
      }),
    ),
  ),
});

export const Activate = Type.Object({
  serialNumber: Type.Integer({
    minimum: 1,
    maximum: 999_999_999_999_999,
    description: 'The serial number of a voucher that you generated.',
    examples: [10000000042],
  }),
  value: Type.Optional(
    Nullable(
      Type.Number({
        description: `The value of the voucher, ${AMOUNT_RULES}. Null or left out: the value of its batch, else 5000. A voucher of a batch with a value takes no other (\`13\`).`,
        examples: [50],
      }),
    ),
  ),
  reference: Reference,
});

const VoucherCode = Type.String({
  pattern: '^([0-9]{12}|[0-9]{16})$',
  minLength: 12,
  maxLength: 16,
  description: 'The voucher code, 12 digits, with `pin`; or code and PIN in one, 16 digits, without `pin`.',
  examples: ['482913057641'],
});

const VoucherPin = Type.Optional(
  Nullable(
    Type.String({
      pattern: '^[0-9]{4}$',
      description: 'The PIN, 4 digits, for a voucher code of 12 digits. Null or left out for one of 16.',
      examples: ['0731'],
    }),
  ),
);

export const CheckBalance = Type.Object({ voucherCode: VoucherCode, pin: VoucherPin });

export const Redeem = Type.Object({
  voucherCode: VoucherCode,
  pin: VoucherPin,
  amount: Type.Number({
    description: `The amount to redeem, ${AMOUNT_RULES}. All of it is redeemed, or nothing.`,
    examples: [10.5],
  }),
  reference: Reference,
});

export const Transaction = Type.Object({
  transactionId: TransactionId,
  transactionType: Word(['ACTIVATION', 'REDEMPTION']),
  amount: Type.Number({ description: 'In major units.' }),
  timestamp: DateTime,
  reference: Nullable(Type.String(), {
    description: 'Your reference; null for a transaction that was made without one, under the other prefix.',
  }),
  voucherCode: Type.String({
    description:
      'The voucher code, masked: the first and the last four digits. In the answer of a redemption: as you sent it.',
  }),
  serialNumber: Type.String({ description: 'The serial number of the voucher.' }),
});

export const BalanceData = Type.Object({
  serialNumber: SerialNumber,
  voucherCode: Type.String({ description: 'The code as you sent it.' }),
  balance: Type.Number({ description: 'What is left on the voucher.' }),
  usableAmount: Type.Number({
    description:
      'What can be redeemed now: the balance, or 0 when the voucher is not active, blocked, expired or canceled.',
  }),
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
