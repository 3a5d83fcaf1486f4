import type { FieldError } from '../refusal.ts';

/** Why an operation was not performed, beside the refusals of the core. Every door answers each of them. */
const TITLES = {
  unauthorized: 'Sign in, or send a valid token',
  forbidden: 'The role does not permit this operation',
  'step-up-required': 'A second factor is required',
  'approval-required': 'Another person has to approve this operation',
  invalid: 'The request is invalid',
  'not-found': 'Not found',
  exists: 'It exists already',
  conflict: 'The present state does not permit this operation',
  'idempotency-key-reused': 'The Idempotency-Key was used for another request',
  'in-progress': 'The same request is still being performed',
  'effect-changed': 'The effect is not what was confirmed',
  'too-many-requests': 'Too many requests',
} as const;

export type ProblemCode = keyof typeof TITLES;

/** Codes in the order of the documentation. */
export const PROBLEM_CODES = Object.keys(TITLES) as readonly ProblemCode[];

/**
 * Nothing has changed when it is thrown. The message says what is wrong and what to do, and never repeats
 * a value.
 */
export class Problem extends Error {
  override readonly name = 'Problem';
  readonly code: ProblemCode;
  readonly errors: readonly FieldError[] | undefined;
  /** What else the problem document carries. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: ProblemCode,
    message?: string,
    errors?: readonly FieldError[],
    details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message ?? TITLES[code]);
    this.code = code;
    this.errors = errors;
    this.details = details;
  }

  get title(): string {
    return TITLES[this.code];
  }
}

/** A request with one field that is wrong. */
export function invalid(field: string, rule: string, message: string): Problem {
  return new Problem('invalid', `${field} ${message}`, [{ field, rule, message }]);
}

/** What an operation names does not exist. */
export function notFound(subject: string): Problem {
  return new Problem('not-found', `there is no ${subject}`);
}
