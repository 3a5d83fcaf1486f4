import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import Type, { type TObject } from 'typebox';
import { readJson } from '../../src/json.ts';
import { PORTAL_OPERATIONS } from '../../src/operations/portal.ts';
import { OPERATIONS } from '../../src/operations/table.ts';
import { checkInput } from '../../src/operations/validate.ts';
import { assertLinear, trying } from '../support/growth.ts';
import { exchange } from '../support/http.bare.ts';
import { operatorApi } from '../support/operator.api.ts';

/**
 * Twice the input takes about twice the work, at every door and for every text: no request of a stranger
 * holds a process for longer than it takes to read it.
 */

const KIB = 1_024;

/** A text of a length that repeats a piece, between a beginning and an end. */
const repeat =
  (piece: string, start = '', end = '') =>
  (length: number) =>
    start + piece.repeat(Math.max(0, Math.floor((length - start.length - end.length) / piece.length))) + end;

/** A text of a length that numbers its pieces. */
const number = (piece: (index: number) => string, start: string, end: string) => (length: number) => {
  const pieces: string[] = [];
  let left = length - start.length - end.length;
  for (let index = 0; left > 0; index++) {
    const next = piece(index);
    pieces.push(next);
    left -= next.length + 1;
  }
  return start + pieces.slice(0, -1).join(',') + end;
};

/** Texts that have stopped parsers: JSON, half of it, and what only looks like it. */
const TEXTS: Readonly<Record<string, (length: number) => string>> = {
  'escaped quotes': repeat('\\"'),
  'escaped quotes without an end': repeat('\\"', '{"a":"'),
  'escaped quotes in a string': repeat('\\"', '{"a":"', '"}'),
  'escaped quotes in a key': repeat('\\"', '{"', '":1}'),
  'quotes and backslashes': repeat('"\\'),
  'quotes and pairs of backslashes': repeat('"\\\\'),
  backslashes: repeat('\\', '"'),
  quotes: repeat('"'),
  'empty strings': repeat('"" ', '\\'),
  'an escape, then a string without an end': repeat('a', '{"\\n":"'),
  'escapes of unicode': repeat('\\u0061', '{"', '":1}'),
  'escapes of unicode without an end': repeat('\\u0061', '{"'),
  'half escapes': repeat('\\u', '"'),
  'lists within each other': repeat('['),
  'lists within each other, closed': (length) => '['.repeat(length / 2) + ']'.repeat(length / 2),
  'lists after each other': repeat('[],', '[', '1]'),
  'objects within each other': repeat('{"a":'),
  'objects within each other, without keys': repeat('{"'),
  'objects after each other': repeat('{"a":1},', '[', '1]'),
  'closing brackets': repeat(']}'),
  digits: repeat('1'),
  'a long number': repeat('7', '{"amount":', '}'),
  'a number with zeros in the middle': repeat('0', '{"amount":1', '1}'),
  'a number with many decimals': repeat('0', '{"amount":0.', '1}'),
  'many long numbers': repeat('1234567890.12345678901234567,', '[', '1]'),
  points: repeat('.', '[1'),
  minuses: repeat('-', '[1'),
  'a long exponent': repeat('9', '[1e', ']'),
  exponents: repeat('1e999,', '[', '1]'),
  'signs of exponents': repeat('e+', '[1'),
  spaces: repeat(' ', '{', '}'),
  'spaces before a colon': repeat(' ', '{"a"', ':1}'),
  'spaces after strings': repeat('"a" ', '[', ']'),
  lines: repeat('\n', '{', '}'),
  commas: repeat(',', '['),
  colons: repeat(':', '{"a"'),
  'many keys': number((index) => `"k${index}":1`, '{', '}'),
  'many keys with escapes': number((index) => `"\\u006b${index}":1`, '{', '}'),
  'many keys that are numbers': number((index) => `"${index * 65_536}":1`, '{', '}'),
  'one key many times': repeat('"a":1,', '{', '"a":1}'),
  'one key in many spellings': repeat('"a":1,"\\u0061":1,', '{', '"a":1}'),
  'keys of Object': repeat('"__proto__":{"constructor":1},', '{', '"a":1}'),
  'characters of four bytes': repeat('💶', '{"a":"', '"}'),
  'halves of characters': repeat('\\ud800', '{"a":"', '"}'),
  NUL: repeat('\\u0000', '{"a":"', '"}'),
};

test('the reader of JSON takes linear time for every text', async () => {
  for (const [name, text] of Object.entries(TEXTS))
    await assertLinear(name, 256 * KIB, (length) => {
      const given = text(length);
      return trying(() => readJson(given));
    });
});

const api = operatorApi();
let owner: string;
before(async () => {
  owner = await api.token(['owner']);
});

/** The headers of a page of the console or the portal. */
const page = () => ({
  origin: api.testService.baseUrl,
  'sec-fetch-site': 'same-origin',
  'x-scrip-request': '1',
  authorization: '',
});

type Door = {
  readonly path: string;
  /** The length of the longest body that is sent. Quadratic work on 64 KiB takes a second (growth.ts). */
  readonly maxBytes: number;
  headers(): Promise<Readonly<Record<string, string>>> | Readonly<Record<string, string>>;
};

const till = async () => ({ authorization: (await api.testService.createMerchant()).authorization });
const portal = async () => {
  const { id } = await api.testService.createMerchant();
  return { authorization: `Bearer ${await api.token(['owner'], id)}` };
};

/** A route of each door, and those that accept more than 64 KiB. */
const DOORS: Readonly<Record<string, Door>> = {
  "strangers at the operator's sign-in": { path: '/operator/v1/session', maxBytes: 64 * KIB, headers: page },
  "strangers at the portal's sign-in": { path: '/portal/v1/session', maxBytes: 64 * KIB, headers: page },
  'strangers with an invitation': { path: '/portal/v1/enrollment', maxBytes: 64 * KIB, headers: page },
  'tills of variant A': { path: '/merchant-client/v2/redeem', maxBytes: 64 * KIB, headers: till },
  'tills of variant B': { path: '/api/v2/redeem', maxBytes: 64 * KIB, headers: till },
  'the portal API': { path: '/portal/v1/api-keys', maxBytes: 64 * KIB, headers: portal },
  approvals: { path: '/operator/v1/approvals/1/approve', maxBytes: 64 * KIB, headers: () => ({}) },
  'changes in bulk': { path: '/operator/v1/vouchers/bulk/preview', maxBytes: 128 * KIB, headers: () => ({}) },
  'payout files': { path: '/operator/v1/settlements/file', maxBytes: 128 * KIB, headers: () => ({}) },
  'the bank import': { path: '/operator/v1/bank/import', maxBytes: 128 * KIB, headers: () => ({}) },
};

async function post(path: string, body: string, headers: Readonly<Record<string, string>>) {
  const response = await fetch(api.testService.baseUrl + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${owner}`, 'content-type': 'application/json', ...headers },
    body,
  });
  const text = await response.text();
  assert.ok(response.status < 500, `${response.status} ${text}`);
  return text;
}

for (const [door, { path, maxBytes, headers }] of Object.entries(DOORS)) {
  test(`${door}: the work on a body grows like its length`, async () => {
    const sent = await headers();
    assert.match(await post(path, '{', sent), /must be JSON in UTF-8/, 'the body is not read');
    for (const [name, text] of Object.entries(TEXTS))
      await assertLinear(name, maxBytes - KIB, (length) => {
        // In bytes, some of these texts are longer than in characters.
        const body = Buffer.from(text(length)).subarray(0, length).toString();
        return () => post(path, body, sent);
      });
  });
}

/** Values that have stopped validators: long texts, and lists of many items. */
const VALUES: Readonly<Record<string, (length: number) => unknown>> = {
  letters: repeat('a'),
  digits: repeat('1'),
  zeros: repeat('0', '1', '1'),
  spaces: repeat(' ', 'a', 'a'),
  points: repeat('.', 'a', 'a'),
  'equals signs': repeat('=', 'A', 'a'),
  'at signs': repeat('@'),
  slashes: repeat('/', 'https://a', '\0'),
  brackets: repeat('[', 'https://'),
  'characters that nobody sees': repeat('\u200b'),
  'characters of four bytes': repeat('💶'),
  'many texts': (length) => Array.from({ length: length / 16 }, (_, index) => String(index)),
  'one text many times': (length) => new Array(Math.floor(length / 4)).fill('1'),
  'many objects': (length) => Array.from({ length: length / 16 }, (_, index) => ({ index })),
  'many fields': (length) =>
    Object.fromEntries(Array.from({ length: length / 16 }, (_, index) => [`f${index}`, 1])),
};

test('the fields of every operation are checked in linear time', async () => {
  const fields = new Map<string, TObject>();
  for (const { input } of [...OPERATIONS, ...PORTAL_OPERATIONS])
    for (const [field, schema] of Object.entries(input.properties))
      fields.set(JSON.stringify(schema), Type.Object({ [field]: schema }, { additionalProperties: false }));
  const inputs = [...fields.values(), Type.Object({}, { additionalProperties: false })];
  for (const [kind, value] of Object.entries(VALUES)) {
    const values = new Map<number, unknown>();
    for (const input of inputs) {
      const [field = 'unknown'] = Object.keys(input.properties);
      await assertLinear(`${field}: ${kind}`, 64 * KIB, (length) => {
        if (!values.has(length)) values.set(length, value(length));
        const given = { [field]: values.get(length) };
        return trying(() => checkInput(input, given));
      });
    }
  }
});

/** Headers that are read by code of this service or of Fastify. */
const HEADERS: readonly string[] = [
  'accept',
  'accept-encoding',
  'authorization',
  'content-type',
  'cookie',
  'host',
  'idempotency-key',
  'if-none-match',
  'origin',
  'range',
  'sec-fetch-site',
  'traceparent',
  'user-agent',
  'x-forwarded-for',
];
const PIECES = [
  'a',
  ' ',
  ',',
  ';',
  '; q=',
  '=',
  ',text/html;',
  '"',
  '\\"',
  '/',
  '%41',
  '. ',
  'bytes=0-1,',
  '=;',
];

test('the head of a request is read in linear time', async () => {
  const port = Number(new URL(api.testService.baseUrl).port);
  const raw = async (head: string) =>
    assert.match(await exchange(port, head), /^HTTP\/1\.1 [234]/, head.slice(0, 80));
  for (const piece of PIECES) {
    for (const header of HEADERS)
      for (const path of ['/docs/', '/operator/v1/session'])
        await assertLinear(`${header}: ${piece}`, 15 * KIB, (length) => {
          const lead = header === 'authorization' ? 'Bearer ' : '';
          const own = header === 'host' ? '' : 'Host: localhost\r\n';
          const text = `GET ${path} HTTP/1.1\r\n${own}${header}: ${lead}${repeat(piece)(length)}\r\n`;
          return () => raw(`${text}Connection: close\r\n\r\n`);
        });
    for (const before of ['/', '/docs/guides/', '/operator/v1/vouchers?', '/api/v2/transactions/'])
      await assertLinear(`${before} ${piece}`, 15 * KIB, (length) => {
        const target = before + repeat(piece.replaceAll(' ', '+'))(length);
        return () => raw(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      });
  }
});
