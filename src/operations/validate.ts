import type { Static, TObject, TSchema } from 'typebox';
import { Problem } from '../problem.ts';
import type { FieldError } from '../refusal.ts';
import { mustBe, VISIBLE } from '../schema.ts';
import { compileSchema, type ValidationError } from '../validator.ts';

/** Checks an input. @throws Problem `invalid` that names each wrong field, but never its value */
export function checkInput<Input extends TObject>(schema: Input, input: unknown): Static<Input> {
  const isValid = compileSchema(schema);
  if (isValid(input)) return input as Static<Input>;
  const errors = new Map<string, FieldError>();
  for (const found of isValid.errors ?? []) {
    const error = toFieldError(schema, found);
    const key = `${error.field} ${error.rule}`;
    // Of a list, only the first wrong item is reported.
    if (!errors.has(key)) errors.set(key, error);
  }
  const found = [...errors.values()];
  const [first] = found;
  throw new Problem('invalid', first ? `${first.field} ${first.message}` : undefined, found);
}

/** Names of letters alone. They cannot be a code, a PIN or a secret. */
const PLAIN_NAME = /^[A-Za-z][A-Za-z_-]{0,29}$/;

function toFieldError(schema: TObject, { keyword, instancePath, params }: ValidationError): FieldError {
  if (keyword === 'required')
    return { field: String(params['missingProperty']), rule: keyword, message: 'is required' };
  if (keyword === 'additionalProperties') {
    const name = String(params['additionalProperty']);
    return PLAIN_NAME.test(name)
      ? { field: name, rule: 'unknown-field', message: 'is not a field of this operation' }
      : { field: 'body', rule: 'unknown-field', message: 'has a field that this operation does not know' };
  }
  const [field = '', item] = instancePath.slice(1).split('/');
  const list = schema.properties[field] as { readonly items?: TSchema } | undefined;
  const isItem = list?.items !== undefined && item !== undefined;
  const plain = keyword === 'pattern' ? formOf(isItem ? list.items : list) : messageOf(keyword, params);
  const message = isItem ? `item ${Number(item) + 1} ${plain}` : plain;
  return { field: field || 'body', rule: keyword, message };
}

/** Says what form a field has, by its example. */
function formOf(field: object | undefined): string {
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
      if (limit === '1') return keyword === 'minItems' ? 'must not be empty' : 'must have one item';
      return `must have at ${keyword === 'minItems' ? 'least' : 'most'} ${limit} items`;
    case 'minimum':
    case 'exclusiveMinimum':
      return `must be ${keyword === 'minimum' ? 'at least' : 'above'} ${limit}`;
    case 'maximum':
      return `must be at most ${limit}`;
    case 'uniqueItems':
      return `must not contain an item twice: item ${Number(params['i']) + 1} is item ${Number(params['j']) + 1}`;
    case 'format':
      return 'must be an ISO 8601 date or date-time, such as 2030-01-31T23:59:59Z';
    default:
      return 'is invalid';
  }
}
