import Type, { type TSchema } from 'typebox';
import { type FieldError, REFUSALS, type Refusal } from '../refusal.ts';

/** The form of every answer: `statusCode`, `message`, `data`, and `errors` where fields are wrong. */

const StatusCode = Type.String({
  pattern: '^[0-9]{2}$',
  description:
    'The outcome: `00` is success, anything else a refusal. Decide by this code, never by the message.',
});

const Message = Type.String({ description: 'The outcome in words, for people.' });

/** The body of a success. */
export function Envelope<Data extends TSchema>(data: Data) {
  return Type.Object({ statusCode: StatusCode, message: Message, data });
}

const FieldErrorSchema = Type.Object({
  field: Type.String({ description: 'The field, `body` for the body as a whole, or the name of a header.' }),
  rule: Type.String({ description: 'The rule that it breaks, for programs.' }),
  message: Type.String({ description: 'What is wrong, for people. It never holds the value that was sent.' }),
});

/** The body of a refusal. */
export const RefusalBody = Type.Object({
  statusCode: StatusCode,
  message: Message,
  data: Type.Null({ description: 'Null for every refusal but `58`.' }),
  errors: Type.Optional(
    Type.Array(FieldErrorSchema, {
      description:
        'Every field that is wrong: with `30`, with `13`, `16`, `17` and `18` for the value that they ' +
        'refuse, and with `98` for a body that is not taken.',
    }),
  ),
});

/** What a client reads of anything that is not a refusal of the list: a bug. */
const BUG = { statusCode: '96', message: 'Internal error' } as const;

/** The text of a body without data. Only words of the closed list and of the schemas can be in it. */
export function bodyText(statusCode: string, message: string, errors?: readonly FieldError[]): string {
  return JSON.stringify({ statusCode, message, data: null, ...(errors && { errors }) });
}

/**
 * The code and the message that a refusal is answered with; undefined stands for a bug.
 * @param notFound the endpoint's own message for `60`
 */
export function outcomeOf(
  refusal: Refusal | undefined,
  notFound: string | undefined,
): { readonly statusCode: string; readonly message: string } {
  if (!refusal) return BUG;
  const message = refusal.code === '60' && notFound !== undefined ? notFound : REFUSALS[refusal.code];
  return { statusCode: refusal.code, message };
}
