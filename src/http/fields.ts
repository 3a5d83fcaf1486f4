import Type, { type TSchema } from 'typebox';
import { BATCH_STATUSES } from '../batches/batch.ts';
import { QUANTITY_MAX } from '../products/products.ts';
import { Nullable, Word } from '../schema.ts';

/** Fields that the requests and answers of both variants share. */

/**
 * Limits of a field that the core checks and the documentation states. The schema would refuse them as `30`,
 * but each has its own code (`18`, `16`, `13`, `15`). A symbol, so that no validator takes it for a keyword.
 */
export const LIMITS: unique symbol = Symbol('limits');

function withLimits<Schema extends TSchema>(schema: Schema, limits: object): Schema {
  return Object.assign(schema, { [LIMITS]: limits });
}

/** The largest amount that is read, in major units of any currency: fifteen digits (src/money.ts). */
const AMOUNT_MAX = 9_999_999_999_999.99;
const REFERENCE_LENGTH = { minLength: 1, maxLength: 100 };
const NO_CONTROLS = '[^\\u0000-\\u001f\\u007f-\\u009f]+$';

export const Code = Type.String({
  pattern: '^[0-9]{12}$',
  minLength: 12,
  maxLength: 12,
  description: 'The voucher code: 12 digits.',
  examples: ['482913057641'],
});

export const Pin = Type.String({
  pattern: '^[0-9]{4}$',
  minLength: 4,
  maxLength: 4,
  description: 'The PIN of the voucher: 4 digits.',
  examples: ['0731'],
});

const REFERENCE_RULES =
  '1 to 100 characters, no control characters, not beginning with `CANCEL-` or `NEW-` (`18` otherwise)';

function referenceField(description: string) {
  const limits = { ...REFERENCE_LENGTH, pattern: `^(?!CANCEL-|NEW-)${NO_CONTROLS}` };
  return withLimits(Type.String({ description, examples: ['order-10071'] }), limits);
}

export const Reference = referenceField(
  `Your unique reference: ${REFERENCE_RULES}. The same request again under it gets the answer of the first ` +
    'and changes nothing. Another request under it is refused (`94`).',
);

export const OptionalReference = Type.Optional(
  Nullable(
    referenceField(
      `Your unique reference, which makes retries safe: ${REFERENCE_RULES}. The same request again under ` +
        'it gets the answer of the first and changes nothing. Without a reference every request stands for ' +
        'itself, and updates and look-ups take the `transactionId` in its place.',
    ),
  ),
);

export const RedeemedReference = referenceField(
  'The reference of the redemption, or its `transactionId` if it had no reference.',
);

/** The parameter of a path. `CANCEL-x` and `NEW-x` are well-formed here, but are never found. */
export const PathReference = withLimits(
  Type.String({ description: 'The reference of the request, percent-encoded.', examples: ['order-10071'] }),
  { ...REFERENCE_LENGTH, pattern: `^${NO_CONTROLS}` },
);

/** The schema only requires a number: a refused amount is `13`. */
const AMOUNT_RULES =
  'in major units, above 0, with at most the decimals of the currency (`13` otherwise: an amount is never ' +
  'rounded)';

/**
 * Returns the schema of an amount above 0.
 * @param description with `%` in the place of the rules for every amount
 */
export function Amount(description: string, example: number) {
  const schema = Type.Number({ description: description.replace('%', AMOUNT_RULES), examples: [example] });
  return withLimits(schema, { exclusiveMinimum: 0, maximum: AMOUNT_MAX });
}

export const AmountUsed = withLimits(
  Type.Number({
    description:
      'The amount that the redemption should have been, in major units: 0 or more, with at most the ' +
      'decimals of the currency (`13` otherwise). 0, or left out: a full reversal.',
    examples: [7.5],
  }),
  { minimum: 0, maximum: AMOUNT_MAX, default: 0 },
);

export function Quantity(description: string) {
  const schema = Type.Number({ description, examples: [2] });
  return withLimits(schema, { type: 'integer', format: 'int32', minimum: 1, maximum: QUANTITY_MAX });
}

export const ProductCode = withLimits(
  Type.String({
    description: 'The code of the product, such as `DEFAULT`. Unknown, off sale or not yours: `15`.',
    examples: ['DEFAULT'],
  }),
  { minLength: 1, maxLength: 50, pattern: '^[A-Za-z0-9_.-]+$' },
);

const DateTime = Type.String({
  format: 'date-time',
  description: 'ISO 8601, in UTC, with milliseconds.',
});

const SerialNumber = withLimits(
  Type.Number({
    description: 'The serial number of the voucher: at most 15 digits.',
    examples: [10000000042],
  }),
  { type: 'integer', minimum: 1, maximum: 999_999_999_999_999 },
);

const TransactionId = Type.String({ description: 'The unique id of the transaction, given by the service.' });

/** The fields of a transaction in both variants. */
export function transactionFields<const Types extends readonly string[]>(
  types: Types,
  voucherCode: ReturnType<typeof Type.String>,
) {
  const isNegative = types.includes('REDEMPTION_REVERSAL') ? ' Negative for a `REDEMPTION_REVERSAL`.' : '';
  return {
    transactionId: TransactionId,
    transactionType: Word(types),
    amount: Type.Number({ description: `In major units.${isNegative}` }),
    timestamp: DateTime,
    reference: Nullable(Type.String(), { description: 'Your reference; null where the request had none.' }),
    voucherCode,
    serialNumber: Type.String({ pattern: '^[0-9]{1,15}$', description: 'The serial number of the voucher.' }),
  };
}

/** The fields of a balance in both variants. */
export const balanceFields = {
  serialNumber: SerialNumber,
  voucherCode: Type.String({ description: 'The code as you sent it.' }),
  balance: Type.Number({ minimum: 0, description: 'What is left on the voucher.' }),
  usableAmount: Type.Number({
    minimum: 0,
    description:
      'What can be redeemed now: the balance, or 0 when the voucher is not active, blocked, expired or ' +
      'canceled.',
  }),
  transactions: Type.Array(
    Type.Object({
      transactionId: TransactionId,
      transactionType: Word(['ACTIVATION', 'REDEMPTION']),
      amount: Type.Number({ description: 'In major units.' }),
      timestamp: DateTime,
      reference: Nullable(Type.String(), {
        description: 'Your own reference; "" for a transaction of another merchant.',
      }),
    }),
    {
      maxItems: 50,
      description: 'The activation and the redemptions in force, oldest first: the 50 newest.',
    },
  ),
};

/** A voucher of a batch, as its merchant receives it. */
export const BatchVoucher = Type.Object(
  { serialNumber: SerialNumber, code: Code, pin: Pin },
  { title: 'BatchVoucher' },
);

/**
 * A batch, as returned by generation and download. `vouchers` must stay last: they are streamed after the
 * rest.
 */
export const BatchData = Type.Object(
  {
    reference: Type.String({ description: 'The reference of the request that generated the batch.' }),
    transactionId: Type.String({ description: 'The id of the batch, fixed when it was accepted.' }),
    status: Word(BATCH_STATUSES, {
      description:
        '`PROCESSING` becomes `COMPLETED` or `CANCELED`, both final. While it is `PROCESSING`, download ' +
        'again later. The vouchers of a `CANCELED` batch cannot be used, and its whole price is back on ' +
        'your float.',
    }),
    expiryDate: Type.String({ format: 'date-time', description: 'When the vouchers expire, in UTC.' }),
    value: Nullable(
      Type.Number({
        description: 'The value of each voucher; null for vouchers that get one when they are activated.',
      }),
    ),
    vouchers: Type.Optional(
      Type.Array(BatchVoucher, {
        description:
          'Exactly the quantity ordered, by serial number. Only there when the batch is `COMPLETED`.',
      }),
    ),
  },
  { title: 'Batch' },
);
