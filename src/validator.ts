import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { TSchema } from 'typebox';
import { parseDateTime } from './time.ts';

/** Checks requests by their schemas: those of tills, of people, and of the command line. */

/** Keywords of our schemas that say how a field is shown or typed, and check nothing. Others are mistakes. */
const VOCABULARY = [
  'x-format',
  'x-labels',
  'x-roles',
  'x-choices',
  'x-asked',
  'x-section',
  'x-folded',
  'option',
  'positional',
  'stdin',
  'file',
  'names',
];

/** A process compiles each schema once. Every error of a value is found, not only the first one. */
const ajv = new Ajv({
  allErrors: true,
  allowUnionTypes: true,
  // 1e999 is a number. The core refuses it as an amount.
  strictNumbers: false,
  formats: {
    'date-time': (text: string) => parseDateTime(text) !== undefined,
    gtin: hasCheckDigit,
    // Only describe a number to people.
    money: true,
    count: true,
  },
}).addVocabulary(VOCABULARY);

/** Whether the last digit of a number of GS1 is right. The others, from it, count three and one in turn. */
function hasCheckDigit(gtin: string): boolean {
  const digits = [...gtin].reverse().map(Number);
  return digits.reduce((sum, digit, place) => sum + digit * (place % 2 === 0 ? 1 : 3), 0) % 10 === 0;
}

/** Returns a function that checks values by a schema, and then has the errors of the last one. */
export function compileSchema(schema: TSchema): ValidateFunction {
  return ajv.compile(schema);
}

export type ValidationError = Pick<ErrorObject, 'keyword' | 'instancePath' | 'params'>;
