import type { Queries } from './db/pool.ts';
import type { Sql } from './db/sql.ts';
import type { FieldError } from './refusal.ts';

/**
 * The reasons why an operation is not performed, besides the refusals of the core. Every door has an answer
 * to each. They are in the order of the documentation.
 */
export const TITLES = {
  unauthorized: 'Sign in, or send a valid token',
  forbidden: 'The role does not permit this operation',
  'step-up-required': 'A second factor is required',
  'approval-required': 'Another person has to approve this operation',
  invalid: 'The request is invalid',
  'not-found': 'Not found',
  gone: 'It is no longer kept',
  exists: 'It exists already',
  conflict: 'Not allowed in the current state',
  'idempotency-key-reused': 'The Idempotency-Key was used for another request',
  'in-progress': 'The same request is still being performed',
  'effect-changed': 'The effect is not what was confirmed',
  'too-many-requests': 'Too many requests',
} as const;

export type ProblemCode = keyof typeof TITLES;

/**
 * The error of an operation that was not performed. Nothing has changed when it is thrown. The message says
 * what is wrong and what to do, and never repeats a value.
 */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: ProblemCode;
  readonly errors: readonly FieldError[] | undefined;
  /** Further fields of the problem document. */
  readonly details: Readonly<Record<string, unknown>>;
  /** How long to wait, if it is known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: ProblemCode,
    message?: string,
    errors?: readonly FieldError[],
    details: Readonly<Record<string, unknown>> = {},
    retryAfterSeconds?: number,
  ) {
    super(message ?? TITLES[code]);
    this.code = code;
    this.errors = errors;
    this.details = details;
    this.retryAfterSeconds = retryAfterSeconds;
  }

  get title(): string {
    return TITLES[this.code];
  }
}

/** Returns the problem of a request with one wrong field. */
export function invalid(field: string, rule: string, message: string): Problem {
  return new Problem('invalid', `${field} ${message}`, [{ field, rule, message }]);
}

/**
 * Refuses a change that names nothing to change.
 * @param field one of those that it may name
 */
export function requireChange(wanted: object, field: string): void {
  if (Object.keys(wanted).length === 0)
    throw invalid(field, 'required', 'or another field is required: there is nothing to change');
}

/** Refuses on Citus what holds for all vouchers together. @param what such as `there are no daily limits` */
export function requireOneServer({ isSharded }: { readonly isSharded: boolean }, what: string): void {
  if (isSharded) throw new Problem('conflict', `on Citus ${what}: a call books on one shard alone`);
}

/** Returns the problem of an operation whose subject does not exist. */
export function notFound(subject: string): Problem {
  return new Problem('not-found', `there is no ${subject}`);
}

/**
 * Returns the row of a statement that finds one at most.
 * @param subject what it is, for the message
 * @throws Problem if there is none
 */
export async function requireRow<Row>(db: Queries, statement: Sql, subject: string): Promise<Row> {
  const [row] = await db.query<Row>(statement);
  if (row === undefined) throw notFound(subject);
  return row;
}
