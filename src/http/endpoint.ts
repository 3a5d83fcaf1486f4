import type { Static, TSchema } from 'typebox';
import type { Context } from '../context.ts';
import type { FieldError, RefusalCode } from '../refusal.ts';
import type { BatchVoucher } from './batch.ts';

/** What an endpoint answers a request with that went well. */
export type Answer<Data extends TSchema> = {
  readonly data: Static<Data> | null;
  /** Whether an earlier copy of the request had the effect. */
  readonly replayed?: boolean;
  /** Another outcome than `00` that is none of the refusals. */
  readonly outcome?: { readonly statusCode: string; readonly message: string };
  /** The vouchers of a batch, which follow in `data.vouchers` page by page. */
  readonly vouchers?: {
    readonly quantity: number;
    readonly pages: AsyncGenerator<Static<typeof BatchVoucher>[]>;
  };
};

export type Example = { readonly summary: string; readonly value: unknown };

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
  /** What the schema of the body cannot say: errors that concern several fields at once. Gets any valid JSON. */
  readonly check?: (body: unknown) => FieldError[];
  readonly data: Data;
  /** Whether a request carries a PIN: then a key that keeps guessing is refused (`97`). */
  readonly carriesPin?: boolean;
  /** What not finding is called here (`60`). */
  readonly notFound?: string;
  /** The refusals of its own, beside those that every endpoint knows; for the documentation. */
  readonly refusals: readonly RefusalCode[];
  readonly examples: {
    readonly request?: Readonly<Record<string, Example>>;
    readonly response: Readonly<Record<string, Example>>;
    /** Examples of refusals whose body holds more than the code. */
    readonly refusals?: Readonly<Partial<Record<RefusalCode, Example>>>;
  };
  run(context: Context, body: Static<Body>, reference: string): Promise<Answer<Data>>;
};

/** A set of endpoints below one prefix, with its own form of telling refusals. */
export type Dialect = {
  /** In lower case, for addresses. */
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly prefix: string;
  /** The HTTP status of each refusal. It cannot leave one out. */
  readonly statuses: Readonly<Record<RefusalCode, number>>;
  readonly endpoints: readonly Endpoint[];
};

/** Writes an endpoint down with its types inferred, and lets it stand in a list with others. */
export function endpoint<Body extends TSchema, Data extends TSchema>(definition: Endpoint<Body, Data>): Endpoint {
  // A list of endpoints forgets which body is whose; the schema checks each body before `run` gets it.
  return definition as unknown as Endpoint;
}
