import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { parseJson, TransportRefusal } from '../../src/http/wire.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const parse = (text: string) => parseJson(bytes(text));

/** A value without keys that need an escape, which JSON.parse of Node sometimes confuses. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value).filter(([key]) => JSON.stringify(key) === `"${key}"`);
  return Object.fromEntries(kept.map(([key, each]) => [key, plain(each)]));
}

describe('the body of a request', () => {
  test('is parsed as JSON', () => {
    assert.deepEqual(parse('{"a":[1,2.5,null,true,"x"],"b":{}}'), { a: [1, 2.5, null, true, 'x'], b: {} });
  });

  test('may begin with a byte order mark', () => {
    assert.deepEqual(parse('\ufeff{"a":1}'), { a: 1 });
  });

  for (const [name, body] of [
    ['missing', undefined],
    ['empty', bytes('')],
    ['white space', bytes('  ')],
    ['half an object', bytes('{"a":1')],
    ['a trailing comma', bytes('{"a":1,}')],
    ['NaN', bytes('{"a":NaN}')],
    ['a comment', bytes('{} // x')],
    ['invalid UTF-8', Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)],
    ['33 lists within each other', bytes(`${'['.repeat(33)}1${']'.repeat(33)}`)],
    ['32,000 lists within each other', bytes(`${'['.repeat(32_000)}1${']'.repeat(32_000)}`)],
    ['an endless string', bytes('\\"'.repeat(32_000))],
  ] as const) {
    test(`is refused with 30 and HTTP 400 when it is ${name}`, () => {
      assert.throws(
        () => parseJson(body),
        (error) => error instanceof TransportRefusal && error.code === '30' && error.httpStatus === 400,
      );
    });
  }

  for (const text of [
    '{"a":1,"a":2}',
    '{"a":1,"a":1}',
    '{"amount":1,"\\u0061mount":2}',
    '{"\\/":1,"/":2}',
    '{"x":[{"deep":{"y":1 , "y" :2}}]}',
    '{"":1,"":2}',
    '{"__proto__":1,"__proto__":2}',
    '{"1":1,"2":2,"1":3}',
    '{"a":1,"\\"":{"a":1,"a":1}}',
    '{"x":"",":\\u0061":1,":a":2}',
  ]) {
    test(`is refused with 30 and HTTP 400 when it has a duplicate key: ${text}`, () => {
      assert.throws(
        () => parse(text),
        (error) =>
          error instanceof TransportRefusal &&
          error.code === '30' &&
          error.httpStatus === 400 &&
          error.errors?.[0]?.rule === 'unique-keys',
      );
    });
  }

  test('may have a key in several objects, and strings that look like keys', () => {
    for (const text of [
      '{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}',
      '{"a":"\\"a\\":","b":"\\\\","c":"a\\":1,\\"a"}',
      '["a","a",{"b":"b"}]',
    ])
      assert.deepEqual(parse(text), JSON.parse(text));
  });

  test('is refused if an object has a duplicate key, and parsed as JSON.parse does otherwise', () => {
    type Tree = { readonly text: string; readonly value: unknown; readonly isDouble: boolean };
    const key = fc.constantFrom('a', 'b', 'a:', '"', '\\', '\n', '\\u0061', '\u2028', '');
    const escaped = (name: string) =>
      `"${[...name].map((each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`;
    const spelled = fc
      .tuple(key, fc.boolean())
      .map(([name, isEscaped]) => ({ name, text: isEscaped ? escaped(name) : JSON.stringify(name) }));
    const { tree } = fc.letrec<{ tree: Tree }>((tie) => ({
      tree: fc.oneof(
        { depthSize: 'small' },
        key.map((name) => ({ text: JSON.stringify(name), value: name, isDouble: false })),
        fc.array(tie('tree'), { maxLength: 3 }).map((all) => ({
          text: `[${all.map(({ text }) => text).join(' , ')}]`,
          value: all.map(({ value }) => value),
          isDouble: all.some(({ isDouble }) => isDouble),
        })),
        fc.array(fc.tuple(spelled, tie('tree')), { maxLength: 4 }).map((fields) => ({
          text: `{${fields.map(([{ text }, { text: value }]) => `${text} :${value}`).join(',')}}`,
          value: Object.fromEntries(fields.map(([{ name }, { value }]) => [name, value])),
          isDouble:
            new Set(fields.map(([{ name }]) => name)).size < fields.length ||
            fields.some(([, { isDouble }]) => isDouble),
        })),
      ),
    }));
    const property = fc.property(tree, ({ text, value, isDouble }) => {
      if (isDouble) assert.throws(() => parse(text), TransportRefusal);
      else assert.deepEqual(plain(parse(text)), plain(value));
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  test('is parsed correctly after bodies with confusing keys', () => {
    for (const before of ['{"reference":1,"\\\\u0061moun":1}', '{"reference":1,"\\\\":1}']) {
      parse(before);
      assert.deepEqual(parse('{"reference":1,"\\u0061mountUsed":7.5}'), { reference: 1, amountUsed: 7.5 });
    }
  });

  for (const text of [
    '100.00000000000000001',
    '9007199254740993',
    '0.1000000000000000055511151231257827',
    '1e400',
    '-1e400',
    '1e-400',
    '1E-0400',
    '123456789012345678e-5',
    `0.${'0'.repeat(400)}1`,
    `1${'0'.repeat(400)}`,
  ]) {
    test(`is parsed to an infinite number, not a rounded one, for ${text.slice(0, 40)}`, () => {
      const { amount } = parse(`{"amount":${text}}`) as { amount: number };
      assert.ok(Math.abs(amount) === Number.POSITIVE_INFINITY);
    });
  }

  for (const [text, value] of [
    ['10.0', 10],
    ['1e2', 100],
    ['100000.000000000000000', 100000],
    ['9007199254740992', 9007199254740992],
    ['0.10', 0.1],
    ['1e+100', 1e100],
    ['-0', -0],
  ] as const) {
    test(`is parsed exactly for ${text}`, () => {
      assert.equal((parse(`{ "amount" : ${text} }`) as { amount: number }).amount, value);
    });
  }

  test('keeps digits inside strings unchanged', () => {
    const text = '{"voucherCode":"1234567890123456","reference":"x 12345678901234567 1e999","amount":1.25}';
    assert.deepEqual(parse(text), JSON.parse(text));
  });

  test('cannot reach a prototype', () => {
    const body = parse('{"__proto__":{"amount":1},"constructor":{"prototype":{"amount":1}}}') as {
      amount?: unknown;
    };
    assert.equal(body.amount, undefined);
    assert.equal(({} as { amount?: unknown }).amount, undefined);
  });

  test('carries every decimal number of up to fifteen digits exactly', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 999_999_999_999_999n }),
        fc.integer({ min: 0, max: 12 }),
        (digits, scale) => {
          const padded = String(digits).padStart(scale + 1, '0');
          const text = scale === 0 ? padded : `${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
          const { amount } = parse(`{"amount":${text}}`) as { amount: number };
          assert.equal(amount, Number(text));
          assert.equal(BigInt(amount.toFixed(scale).replace('.', '')), digits);
        },
      ),
    );
  });
});
