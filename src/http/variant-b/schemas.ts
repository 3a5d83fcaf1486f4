import Type from 'typebox';
import { Nullable } from '../../schema.ts';
import { Amount, balanceFields, Quantity, Reference, transactionFields } from '../fields.ts';

export const Generate = Type.Object({
  quantity: Quantity(
    'How many vouchers: a whole number from 1 to the limit of your product, 100,000 unless set (`16` ' +
      'otherwise). Up to 10 are in the answer. More are produced in the background and downloaded by the ' +
      'reference.',
  ),
  reference: Reference,
  value: Type.Optional(
    Nullable(
      Amount(
        'The value of each voucher, %. Within the limits of your product, 0.01 to 100,000.00 unless set ' +
          '(`61` otherwise). The vouchers are active at once. Null or left out: they get their value when ' +
          'they are activated.',
        25,
      ),
    ),
  ),
  expiryDate: Type.Optional(
    Nullable(
      Type.String({
        format: 'date-time',
        description:
          'When the vouchers expire: an ISO 8601 date-time, at least one day from now (`17` otherwise). ' +
          'Without an offset it is UTC. Null or left out: after the validity of your product, 365 days ' +
          'unless set.',
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
      Amount(
        'The value of the voucher, %. Null or left out: the value of its batch, else 5000. A voucher of a ' +
          'batch with a value takes no other (`13`).',
        50,
      ),
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
      minLength: 4,
      maxLength: 4,
      description: 'The PIN, 4 digits, for a voucher code of 12 digits. Null or left out for one of 16.',
      examples: ['0731'],
    }),
  ),
);

export const CheckBalance = Type.Object({ voucherCode: VoucherCode, pin: VoucherPin });

export const Redeem = Type.Object({
  voucherCode: VoucherCode,
  pin: VoucherPin,
  amount: Amount('The amount to redeem, %. All of it is redeemed, or nothing.', 10.5),
  reference: Reference,
});

const AnsweredCode = Type.String({
  pattern: '^([0-9]{4}\\*{4}[0-9]{4}|[0-9]{12}|[0-9]{16})$',
  description:
    'The voucher code, masked: the first and the last four digits. In the answer to a redemption: as you ' +
    'sent it.',
});

export const Transaction = Type.Object(transactionFields(['ACTIVATION', 'REDEMPTION'], AnsweredCode), {
  title: 'TransactionB',
});

export const RecentTransactions = Type.Array(Transaction, { maxItems: 50 });

export const BalanceData = Type.Object(balanceFields, { title: 'Balance' });
