import type { FastifySchemaValidationError } from 'fastify';
import type { FieldError } from '../refusal.ts';

/** What the fields that have a form must look like, in words. */
const FORMS: Readonly<Record<string, string>> = {
  code: 'must be 12 digits',
  pin: 'must be 4 digits',
  voucherCode: 'must be 12 digits (with pin), or 16 digits (code and PIN, without pin)',
  expiryDate: 'must be an ISO 8601 date-time, such as 2027-01-31T23:59:59Z',
};

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  integer: 'a whole number',
  object: 'an object',
  null: 'null',
};

/**
 * Turns what the schema found into the errors of a response: which field, which rule of it, and what to do about it.
 * Names and words come from the schema alone, never from the request.
 */
export function fieldErrors(found: readonly FastifySchemaValidationError[]): FieldError[] {
  return found.map(({ keyword, instancePath, params, message }) => {
    const missing = keyword === 'required' ? String(params['missingProperty']) : undefined;
    const field = missing ?? (instancePath.slice(1) || 'body');
    return { field, rule: keyword, message: messageOf(keyword, field, params, message) };
  });
}

function messageOf(
  keyword: string,
  field: string,
  params: Record<string, unknown>,
  message: string | undefined,
): string {
  if (keyword === 'required') return 'is required';
  if (keyword === 'type') {
    const types = Array.isArray(params['type']) ? (params['type'] as string[]) : [String(params['type'])];
    return `must be ${types.map((type) => TYPES[type] ?? type).join(' or ')}`;
  }
  if (keyword === 'pattern' || keyword === 'format') return FORMS[field] ?? 'has the wrong form';
  return message ?? 'is invalid';
}
