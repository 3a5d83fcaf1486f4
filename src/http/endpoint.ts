import Type, { type Static, type TSchema } from 'typebox';
import type { Context } from '../context.ts';
import { type FieldError, OverLimit, REFUSALS, type Refusal, type RefusalCode } from '../refusal.ts';
import type { BatchVoucher } from './fields.ts';

/** The answer of an endpoint to a successful request. */
export type Answer<Data extends TSchema> = {
  readonly data: Static<Data> | null;
  /** Whether an earlier copy of the request was booked. */
  readonly replayed?: boolean;
  /** An outcome other than `00` that is not a refusal. */
  readonly outcome?: { readonly statusCode: string; readonly message: string };
  /** The vouchers of a batch, which are sent in `data.vouchers` page by page. */
  readonly vouchers?: {
    readonly quantity: number;
    readonly pages: AsyncGenerator<Static<typeof BatchVoucher>[]>;
  };
};

/** One endpoint of a dialect: its input and output, its documentation, and its work. */
export type Endpoint<Body extends TSchema = TSchema, Data extends TSchema = TSchema> = {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly method: 'GET' | 'POST';
  /** The path below the prefix. Its only possible parameter is `:reference`. */
  readonly path: string;
  readonly body?: Body;
  /** Media types that it accepts in addition to application/json. */
  readonly otherMediaTypes?: readonly string[];
  /**
   * Finds errors that the schema of the body cannot express, because they concern several fields. Its input
   * is any valid JSON.
   */
  readonly check?: (body: unknown) => FieldError[];
  readonly data: Data;
  /** Whether a request contains a PIN. Such a call is refused (`97`) if its key keeps guessing. */
  readonly carriesPin?: boolean;
  /** The message of `60` for this endpoint. */
  readonly notFound?: string;
  /** The refusals of this endpoint, in addition to those of every endpoint, for the documentation. */
  readonly refusals: readonly RefusalCode[];
  run(context: Context, body: Static<Body>, reference: string): Promise<Answer<Data>>;
};

/** The endpoints below one prefix, with their own format of refusals. */
export type Dialect = {
  /** The name in lower case, for URLs. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly prefix: string;
  /** The HTTP status of each refusal. The type requires all of them. */
  readonly statuses: Readonly<Record<RefusalCode, number>>;
  readonly endpoints: readonly Endpoint[];
};

/** Defines an endpoint with inferred types, in the form that a dialect lists. */
export function endpoint<Body extends TSchema, Data extends TSchema>(
  definition: Endpoint<Body, Data>,
): Endpoint {
  // A list of endpoints loses the type of each body. The schema checks each body before `run` receives it.
  return definition as unknown as Endpoint;
}

/** The format of every answer: `statusCode`, `message`, `data`, and `errors` if fields are wrong. */

const StatusCode = Type.String({
  pattern: '^[0-9]{2}$',
  description:
    'The outcome: `00` is success, anything else a refusal. Decide by this code, never by the message.',
});

const Message = Type.String({ description: 'The outcome in words, for people.' });

/** Returns the schema of a successful answer's body. */
export function Envelope<Data extends TSchema>(data: Data) {
  return Type.Object({ statusCode: StatusCode, message: Message, data });
}

const FieldErrorSchema = Type.Object({
  field: Type.String({ description: 'The field, `body` for the body as a whole, or the name of a header.' }),
  rule: Type.String({ description: 'The rule that it breaks, for programs.' }),
  message: Type.String({ description: 'What is wrong, for people. It never holds the value that was sent.' }),
});

/** The schema of a refusal's body. */
export const RefusalBody = Type.Object(
  {
    statusCode: StatusCode,
    message: Message,
    data: Type.Null({ description: 'Null for every refusal but `58`.' }),
    errors: Type.Optional(
      Type.Array(FieldErrorSchema, {
        description:
          'Every field that is wrong: with `30`, with `13`, `16`, `17`, `18` and `61` for the value that ' +
          'they refuse, and with `98` for a body that is not taken.',
      }),
    ),
  },
  { title: 'Refusal' },
);

/** The answer to any error that is not a refusal of the list: a bug. */
const BUG = { statusCode: '96', message: 'Internal error' } as const;

/** Returns the text of a body without data. It contains only text of the closed list and of the schemas. */
export function bodyText(statusCode: string, message: string, errors?: readonly FieldError[]): string {
  return JSON.stringify({ statusCode, message, data: null, ...(errors && { errors }) });
}

/**
 * Returns the code and the message of a refusal; undefined for a bug.
 * @param notFound the endpoint's own message for `60`
 */
export function outcomeOf(
  refusal: Refusal | undefined,
  notFound: string | undefined,
): { readonly statusCode: string; readonly message: string } {
  if (!refusal) return BUG;
  const { code } = refusal;
  if (code === '60' && notFound !== undefined) return { statusCode: code, message: notFound };
  const message = refusal instanceof OverLimit ? refusal.message : REFUSALS[code];
  return { statusCode: code, message };
}
