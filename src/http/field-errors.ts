import type { FastifySchemaValidationError } from 'fastify';
import type { FieldError, RefusalCode } from '../refusal.ts';
import { mustBe } from '../schema.ts';
import type { Endpoint } from './endpoint.ts';

/** Describes the invalid fields of a request, for the `errors` of an answer. */

/** The required form of fields, in words. */
const FORMS: Readonly<Record<string, string>> = {
  code: 'must be 12 digits',
  pin: 'must be 4 digits',
  voucherCode: 'must be 12 digits (with pin), or 16 digits (code and PIN, without pin)',
  expiryDate: 'must be an ISO 8601 date-time, such as 2027-01-31T23:59:59Z',
};

/**
 * Turns the errors of the schema into the errors of an answer: the field, the rule, and a description. A
 * field with a wrong form has one error, even if it breaks several rules. Names and words come only from the
 * schema, never from the request.
 */
export function fieldErrors(found: readonly FastifySchemaValidationError[]): FieldError[] {
  const errors = new Map<string, FieldError>();
  for (const { keyword, instancePath, params, message } of found) {
    const field =
      keyword === 'required' ? String(params['missingProperty']) : instancePath.slice(1) || 'body';
    const isForm = Object.hasOwn(FORMS, field) && keyword !== 'required' && keyword !== 'type';
    const rule = isForm && keyword !== 'format' ? 'pattern' : keyword;
    const text = isForm ? FORMS[field] : messageOf(keyword, params, message);
    errors.set(`${field} ${rule}`, { field, rule, message: text ?? 'is invalid' });
  }
  return [...errors.values()];
}

function messageOf(keyword: string, params: Record<string, unknown>, message?: string): string | undefined {
  if (keyword === 'required') return 'is required';
  return keyword === 'type' ? mustBe(params['type']) : message;
}

const ABOVE_ZERO = 'must be above 0, with at most the decimals of the currency';

type ValueErrors = { readonly rule: string; readonly messages: Readonly<Record<string, string>> };

/**
 * Refusals of a single value that has the right form: the rule that it breaks, and the fields that can
 * contain it.
 */
const VALUES: Readonly<Partial<Record<RefusalCode, ValueErrors>>> = {
  '18': {
    rule: 'reference',
    messages: {
      reference: 'must have 1 to 100 characters, no control characters, and not begin with CANCEL- or NEW-',
    },
  },
  '16': {
    rule: 'quantity',
    messages: { quantity: 'must be a whole number from 1 to the limit of the product' },
  },
  '13': {
    rule: 'amount',
    messages: {
      amount: ABOVE_ZERO,
      value: `${ABOVE_ZERO}, and the value of the batch where the batch has one`,
      amountUsed: 'must be 0 or more, with at most the decimals of the currency',
    },
  },
  '61': {
    rule: 'limits',
    messages: {
      amount: 'must be within the limits of the product',
      value: 'must be within the limits of the product',
    },
  },
  '17': { rule: 'minimum', messages: { expiryDate: 'must be at least one day from now' } },
};

/** Returns the fields of an endpoint. Without a body, the only one is the reference in its path. */
export function fieldsOf({ body }: Pick<Endpoint, 'body'>): readonly string[] {
  return body ? Object.keys((body as { properties?: object }).properties ?? {}) : ['reference'];
}

/**
 * Returns the errors of an answer that refuses one value of the request; undefined if the refusal concerns no
 * single value.
 * @param fields of the endpoint
 * @param limit that the value exceeds, if it is known
 */
export function valueErrors(
  code: RefusalCode,
  fields: readonly string[],
  limit?: string,
): FieldError[] | undefined {
  const { rule, messages } = VALUES[code] ?? { rule: '', messages: {} };
  const found = Object.entries(messages).filter(([field]) => fields.includes(field));
  return found.length === 0
    ? undefined
    : found.map(([field, message]) => ({
        field,
        rule,
        message: limit === undefined ? message : `${message}: ${limit}`,
      }));
}
