import fc from 'fast-check';

/** Arbitrary requests from the schemas of a document: valid ones, nearly valid ones, and garbage. */

export type JsonSchema = {
  readonly type?: string | readonly string[];
  readonly anyOf?: readonly JsonSchema[];
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
};

/** Values that have broken services before. */
const NASTY = fc.constantFrom<unknown>(
  null,
  true,
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'x\udc00y',
  '\u202e',
  '__proto__',
  'constructor',
  "' or 1=1 --",
  'CANCEL-x',
  'NEW-x',
  'x'.repeat(101),
  '💶'.repeat(100),
  '1'.repeat(400),
  '12345678901\u0661',
  -0,
  -1,
  0.1 + 0.2,
  1e-7,
  1e21,
  1e308,
  5e-324,
  2 ** 31,
  2 ** 53,
  -(2 ** 63),
  [],
  [[]],
  {},
  '9999-12-31T23:59:60Z',
  '0000-00-00T00:00:00Z',
  '+275760-09-13T00:00:00Z',
  '2099-02-30T00:00:00Z',
);

/** Values that a schema allows. */
function valid(schema: JsonSchema): fc.Arbitrary<unknown> {
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(valid));
  const [type, ...others] = [schema.type ?? 'null'].flat();
  if (others.length > 0)
    return fc.oneof(...[type, ...others].map((each) => valid({ ...schema, type: each as string })));
  // fast-check cannot generate strings for a pattern with a lookahead, which the pattern of a reference has.
  if (type === 'string' && schema.pattern && !schema.pattern.includes('(?!'))
    return fc.stringMatching(new RegExp(schema.pattern));
  if (type === 'string' && schema.format === 'date-time')
    return fc
      .date({ noInvalidDate: true, min: new Date(0), max: new Date('2200-01-01') })
      .map((date) => date.toISOString());
  if (type === 'string') return fc.string({ minLength: 1, maxLength: 100, unit: 'grapheme' });
  if (type === 'integer')
    return fc.integer({ min: schema.minimum ?? 0, max: Math.min(schema.maximum ?? 2 ** 31, 2 ** 31) });
  if (type === 'number')
    return fc.oneof(
      fc.integer({ min: -2, max: 12 }),
      fc.integer({ min: 1, max: 1e6 }).map((n) => n / 100),
      fc.double(),
    );
  if (type === 'object') return objectOf(schema, valid);
  return fc.constant(null);
}

function objectOf(schema: JsonSchema, each: (schema: JsonSchema, name: string) => fc.Arbitrary<unknown>) {
  const fields = Object.entries(schema.properties ?? {}).map(
    ([name, field]) => [name, each(field, name)] as const,
  );
  return fc.record(Object.fromEntries(fields), { requiredKeys: [...(schema.required ?? [])] });
}

/**
 * The text of a body: mostly an object of the schema, with a field or two that are wrong.
 * @param known existing values by field name, so that requests get beyond the first gate
 */
export function bodyOf(
  schema: JsonSchema,
  known: Readonly<Record<string, readonly unknown[]>>,
): fc.Arbitrary<string> {
  const field = (inner: JsonSchema, name: string) =>
    fc.oneof(
      { weight: 6, arbitrary: known[name] ? fc.constantFrom(...known[name]) : valid(inner) },
      { weight: 2, arbitrary: valid(inner) },
      { weight: 1, arbitrary: NASTY },
      { weight: 1, arbitrary: fc.jsonValue() },
    );
  const object = objectOf(schema, field);
  const names = Object.keys(schema.properties ?? {});
  return fc.oneof(
    { weight: 12, arbitrary: object.map((body) => JSON.stringify(body)) },
    // A field that stands twice, and names that have a meaning in JavaScript.
    {
      weight: 2,
      arbitrary: fc
        .tuple(object, fc.constantFrom(...names, '__proto__', 'constructor', 'prototype', ''), NASTY)
        .map(([body, name, value]) => {
          const text = JSON.stringify(body);
          const more = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
          return text === '{}' ? `{${more}}` : `${text.slice(0, -1)},${more}}`;
        }),
    },
    // Numbers that a double cannot hold, in place of valid ones.
    {
      weight: 2,
      arbitrary: fc
        .tuple(
          object,
          fc.constantFrom(
            '1e999',
            '-1e999',
            '9007199254740993',
            `1${'0'.repeat(400)}`,
            '0.1e-400',
            '01',
            '1.',
          ),
        )
        .map(([body, number]) => JSON.stringify(body).replace(/:-?\d[\d.e+-]*/, `:${number}`)),
    },
    { weight: 1, arbitrary: fc.nat(30_000).map((depth) => '['.repeat(depth) + ']'.repeat(depth)) },
    { weight: 1, arbitrary: fc.nat(5_000).map((depth) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`) },
    { weight: 1, arbitrary: fc.jsonValue().map((value) => JSON.stringify(value)) },
    { weight: 1, arbitrary: fc.string({ unit: 'binary' }) },
  );
}

/** A reference, encoded for a path. */
export const reference = fc.oneof(
  { weight: 3, arbitrary: fc.string({ minLength: 1, maxLength: 110, unit: 'grapheme' }).map(encodeSafely) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'NEW-x',
      'CANCEL-x',
      '..',
      '%00',
      '%ff',
      '%',
      '%2f',
      'x'.repeat(9_000),
      '%F0%9F%92%B6',
    ),
  },
);

function encodeSafely(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
