import Type, { type Static, type TSchema } from 'typebox';
import type { Context } from '../context.ts';
import { type FieldError, REFUSALS, type Refusal, type RefusalCode } from '../refusal.ts';
import type { BatchVoucher } from './fields.ts';

/** The answer of an endpoint to a request that succeeded. */
export type Answer<Data extends TSchema> = {
  readonly data: Static<Data> | null;
  /** Whether an earlier copy of the request had the effect. */
  readonly replayed?: boolean;
  /** An outcome other than `00` that is not a refusal. */
  readonly outcome?: { readonly statusCode: string; readonly message: string };
  /** The vouchers of a batch, which follow in `data.vouchers` page by page. */
  readonly vouchers?: {
    readonly quantity: number;
    readonly pages: AsyncGenerator<Static<typeof BatchVoucher>[]>;
  };
};

/** One endpoint of a dialect: what it takes and gives, how it is documented, and what it does. */
export type Endpoint<Body extends TSchema = TSchema, Data extends TSchema = TSchema> = {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly method: 'GET' | 'POST';
  /** Below the prefix; a parameter is always `:reference`. */
  readonly path: string;
  readonly body?: Body;
  /** Media types beside application/json. */
  readonly otherMediaTypes?: readonly string[];
  /**
   * Finds what the schema of the body cannot: errors that concern several fields at once. Gets any valid
   * JSON.
   */
  readonly check?: (body: unknown) => FieldError[];
  readonly data: Data;
  /** Whether a request carries a PIN. Such a call of a key that keeps guessing is refused (`97`). */
  readonly carriesPin?: boolean;
  /** The message of `60` here. */
  readonly notFound?: string;
  /**
   * The refusals that this endpoint can give, beside those that every endpoint can; for the documentation.
   */
  readonly refusals: readonly RefusalCode[];
  run(context: Context, body: Static<Body>, reference: string): Promise<Answer<Data>>;
};

/** The endpoints below one prefix, with their own way of reporting refusals. */
export type Dialect = {
  /** In lower case, for URLs. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly prefix: string;
  /** The HTTP status of each refusal. It cannot leave one out. */
  readonly statuses: Readonly<Record<RefusalCode, number>>;
  readonly endpoints: readonly Endpoint[];
};

/** Defines an endpoint with its types inferred, in the form in which a dialect lists it. */
export function endpoint<Body extends TSchema, Data extends TSchema>(
  definition: Endpoint<Body, Data>,
): Endpoint {
  // A list of endpoints loses which body is whose. The schema checks each body before `run` gets it.
  return definition as unknown as Endpoint;
}

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
