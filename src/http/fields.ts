import Type from 'typebox';
import { Nullable } from './envelope.ts';

/** Fields that requests and answers of both prefixes share. */

export const Code = Type.String({
  pattern: '^[0-9]{12}$',
  description: 'The voucher code: 12 digits.',
  examples: ['482913057641'],
});

export const Pin = Type.String({
  pattern: '^[0-9]{4}$',
  description: 'The PIN of the voucher: 4 digits.',
  examples: ['0731'],
});

/** What a reference may be is told as `18` by the core: a schema would tell it as `30`. */
const REFERENCE_RULES =
  '1 to 100 characters, no control characters, not beginning with `CANCEL-` or `NEW-` (`18` otherwise)';

export const Reference = Type.String({
  description: `Your unique reference: ${REFERENCE_RULES}. The same request again under it is answered as the first was and changes nothing; another request under it is refused (\`94\`).`,
  examples: ['order-10071'],
});

export const OptionalReference = Type.Optional(
  Nullable(
    Type.String({
      description: `Your reference, if you want retries to be safe: ${REFERENCE_RULES}. The same request again under it is answered as the first was and changes nothing. Without one every request stands for itself, and the \`transactionId\` takes the reference's place in look-ups and updates.`,
      examples: ['order-10071'],
    }),
  ),
);

/** What an amount may be is told as `13`, so the schema asks for a number and no more. */
export const AMOUNT_RULES =
  'in major units, above 0, with at most the decimals of the currency (`13` otherwise: an amount is never rounded)';

export const SerialNumber = Type.Number({
  description: 'The serial number of the voucher: at most 15 digits.',
  examples: [10000000042],
});

export const DateTime = Type.String({ format: 'date-time' });

export const TransactionId = Type.String({ description: 'The unique id of the transaction, given by the service.' });
