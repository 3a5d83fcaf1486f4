import type { Static, TObject, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { invalid, Problem } from '../problem.ts';
import type { FieldError } from '../refusal.ts';
import { mustBe, VISIBLE } from '../schema.ts';

/** A check of inputs: by a compiled schema, and for items that a list contains twice. */
type Validator = { readonly schema: ReturnType<typeof Compile>; readonly uniqueLists: readonly string[] };

/** Validators, made once for each schema. */
const validators = new WeakMap<TSchema, Validator>();

/**
 * Returns the validator of an input. Lists are compared here, since TypeBox takes quadratic time to name the
 * items that a list contains twice: 1.4 s for 16,000.
 */
function validatorOf(input: TObject): Validator {
  let validator = validators.get(input);
  if (!validator) {
    const properties = Object.entries(input.properties as Record<string, TSchema & { uniqueItems?: true }>);
    validator = {
      schema: Compile({
        ...input,
        properties: Object.fromEntries(
          properties.map(([name, { uniqueItems: _checkedHere, ...schema }]) => [name, schema]),
        ),
      } as TObject),
      uniqueLists: properties.filter(([, { uniqueItems }]) => uniqueItems).map(([name]) => name),
    };
    validators.set(input, validator);
  }
  return validator;
}

/** Checks an input. @throws Problem `invalid` that names each wrong field, but never its value */
export function checkInput<Input extends TObject>(schema: Input, input: unknown): Static<Input> {
  const { schema: validator, uniqueLists } = validatorOf(schema);
  if (validator.Check(input)) {
    const twice = uniqueLists.find((name) => hasItemTwice((input as Record<string, unknown>)[name]));
    if (twice !== undefined) throw invalid(twice, 'uniqueItems', 'must not contain an item twice');
    return input as Static<Input>;
  }
  const errors = new Map<string, FieldError>();
  for (const { keyword, instancePath, params } of validator.Errors(input)) {
    for (const error of toFieldErrors(schema, keyword, instancePath, params as Record<string, unknown>))
      errors.set(`${error.field} ${error.rule}`, error);
  }
  const found = [...errors.values()];
  const [first] = found;
  throw new Problem('invalid', first ? `${first.field} ${first.message}` : undefined, found);
}

/** Whether a list of texts contains one twice. */
const hasItemTwice = (list: unknown) => Array.isArray(list) && new Set(list).size < list.length;

/** Names of letters alone. They cannot be a code, a PIN or a secret. */
const PLAIN_NAME = /^[A-Za-z][A-Za-z_-]{0,29}$/;

function toFieldErrors(
  schema: TObject,
  keyword: string,
  instancePath: string,
  params: Record<string, unknown>,
): FieldError[] {
  if (keyword === 'boolean') return [];
  if (keyword === 'required') {
    return (params['requiredProperties'] as string[]).map((field) => ({
      field,
      rule: keyword,
      message: 'is required',
    }));
  }
  if (keyword === 'additionalProperties') {
    return (params['additionalProperties'] as string[]).map((name) => ({
      field: PLAIN_NAME.test(name) ? name : 'body',
      rule: 'unknown-field',
      message: PLAIN_NAME.test(name)
        ? 'is not a field of this operation'
        : 'has a field that this operation does not know',
    }));
  }
  const [field = ''] = instancePath.slice(1).split('/');
  const message = keyword === 'pattern' ? formOf(schema.properties[field]) : messageOf(keyword, params);
  return [{ field: field || 'body', rule: keyword, message }];
}

/** Says what form a field has, by its example. */
function formOf(field: TSchema | undefined): string {
  const { pattern, examples = [] } = (field ?? {}) as { pattern?: string; examples?: readonly unknown[] };
  if (pattern === VISIBLE) return 'must be one line without control, direction or zero-width characters';
  return examples.length > 0 ? `has the wrong form: it is written like ${examples[0]}` : 'has the wrong form';
}

function messageOf(keyword: string, params: Record<string, unknown>): string {
  const limit = String(params['limit']);
  switch (keyword) {
    case 'type':
      return mustBe(params['type']);
    case 'enum':
      return `must be one of ${(params['allowedValues'] as unknown[]).join(', ')}`;
    case 'minLength':
      return limit === '1' ? 'must not be empty' : `must have at least ${limit} characters`;
    case 'maxLength':
      return `must have at most ${limit} characters`;
    case 'minItems':
    case 'maxItems':
      return `must have at ${keyword === 'minItems' ? 'least' : 'most'} ${limit} items`;
    case 'minimum':
    case 'exclusiveMinimum':
      return `must be ${keyword === 'minimum' ? 'at least' : 'above'} ${limit}`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'format':
      return 'must be an ISO 8601 date or date-time, such as 2030-01-31T23:59:59Z';
    default:
      return 'is invalid';
  }
}
