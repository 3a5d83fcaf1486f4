import type { FastifySchemaValidationError } from 'fastify';
import type { FieldError, RefusalCode } from '../refusal.ts';
import type { Endpoint } from './endpoint.ts';

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

const ABOVE_ZERO = 'must be above 0, with at most the decimals of the currency';

/** The refusals of a single value that has the right form, with the rule that it breaks and the fields that it may stand in. */
const VALUES: Readonly<
  Partial<Record<RefusalCode, { readonly rule: string; readonly messages: Readonly<Record<string, string>> }>>
> = {
  '18': {
    rule: 'reference',
    messages: {
      reference: 'must have 1 to 100 characters, no control characters, and not begin with CANCEL- or NEW-',
    },
  },
  '16': { rule: 'quantity', messages: { quantity: 'must be a whole number from 1 to the limit of the product' } },
  '13': {
    rule: 'amount',
    messages: {
      amount: ABOVE_ZERO,
      value: `${ABOVE_ZERO}, and none but that of the batch where it has one`,
      amountUsed: 'must be 0 or more, with at most the decimals of the currency',
    },
  },
  '17': { rule: 'minimum', messages: { expiryDate: 'must be at least one day from now' } },
};

/** The fields that an endpoint takes. Without a body that is the reference in its path. */
export function fieldsOf({ body }: Pick<Endpoint, 'body'>): readonly string[] {
  return body ? Object.keys((body as { properties?: object }).properties ?? {}) : ['reference'];
}

/**
 * The errors of a response that refuses one value of the request; undefined where the refusal is about none of them.
 * @param fields that the endpoint takes
 */
export function valueErrors(code: RefusalCode, fields: readonly string[]): FieldError[] | undefined {
  const { rule, messages } = VALUES[code] ?? { rule: '', messages: {} };
  const found = Object.entries(messages).filter(([field]) => fields.includes(field));
  return found.length === 0 ? undefined : found.map(([field, message]) => ({ field, rule, message }));
}
