import Type, { type Static, type TSchema } from 'typebox';
import { type FieldError, REFUSALS, type Refusal } from '../refusal.ts';

/** A schema that also takes null, in the one form that validates, serializes and documents fast: a list of types. */
export function Nullable<Schema extends TSchema>(schema: Schema, options: object = {}) {
  const { type } = schema as { type?: string };
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [type, 'null'], ...options });
}

/** A string out of a closed list. */
export function Word<const Words extends readonly string[]>(words: Words, options: object = {}) {
  return Type.Unsafe<Words[number]>({ type: 'string', enum: words, ...options });
}

const StatusCode = Type.String({
  pattern: '^[0-9]{2}$',
  description: 'The outcome: `00` is success, anything else a refusal. Decide by this, never by the message.',
});

const Message = Type.String({ description: 'The outcome in words, for people.' });

/** The body of a success. */
export function Envelope<Data extends TSchema>(data: Data) {
  return Type.Object({ statusCode: StatusCode, message: Message, data });
}

const FieldErrorSchema = Type.Object({
  field: Type.String({ description: 'The field, or `body` for the body as a whole.' }),
  rule: Type.String({ description: 'The rule that it breaks, for programs.' }),
  message: Type.String({ description: 'What to do about it, for people. Never holds the value that was sent.' }),
});

/** The body of a refusal. */
export const RefusalBody = Type.Object({
  statusCode: StatusCode,
  message: Message,
  data: Type.Null({ description: 'Null for every refusal but `58`.' }),
  errors: Type.Optional(
    Type.Array(FieldErrorSchema, {
      description:
        'Every field that is wrong: with `30`, and with `13`, `16`, `17` and `18` for the value that they refuse.',
    }),
  ),
});

/** The words for what is no refusal of the list but a fault of the service. */
const FAULT = { statusCode: '96', message: 'Internal error' } as const;

/** The text of a refusal's body. Only what stands in the closed list, and the schema's words, can be in it. */
export function refusalText(statusCode: string, message: string, errors?: readonly FieldError[]): string {
  return JSON.stringify({ statusCode, message, data: null, ...(errors && { errors }) });
}

/** The outcome that a refusal is told as; undefined is a bug. `notFound` is what an endpoint calls not finding. */
export function outcomeOf(
  refusal: Refusal | undefined,
  notFound: string | undefined,
): { readonly statusCode: string; readonly message: string } {
  if (!refusal) return FAULT;
  const message = refusal.code === '60' && notFound !== undefined ? notFound : REFUSALS[refusal.code];
  return { statusCode: refusal.code, message };
}
