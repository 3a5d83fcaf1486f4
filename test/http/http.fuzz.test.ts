import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import Schema from 'typebox/schema';
import type { Dialect } from '../../src/http/endpoint.ts';
import { VARIANT_A } from '../../src/http/variant-a.ts';
import { VARIANT_B } from '../../src/http/variant-b.ts';
import { sendBytes } from '../support/canaries.ts';
import { bodyOf, type JsonSchema, reference } from '../support/fuzz.ts';
import { type ListeningService, testService } from '../support/harness.ts';
import { dereferenced } from '../support/openapi.ts';
import { Till } from '../support/till.ts';

/** An endpoint answers any request as its OpenAPI document says, and never with a 500. */

type Content = { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> };
type Operation = { readonly requestBody?: Content; readonly responses: Readonly<Record<string, Content>> };
type Document = { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };

const RUNS = 150;
/** A key that guesses more than fifty times would only be declined with 97. */
const CALLS_OF_A_KEY = 40;
/** Requests refused at transport level have HTTP statuses of their own, the same in both variants. */
const TRANSPORT: Readonly<Record<string, readonly number[]>> = { '98': [404, 405, 413, 415], '30': [400] };

const validators = new WeakMap<object, ReturnType<typeof Schema.Compile>>();
function validator(schema: object) {
  const compiled = validators.get(schema) ?? Schema.Compile(schema);
  validators.set(schema, compiled);
  return compiled;
}

async function readDocument(service: ListeningService, { name }: Dialect): Promise<Document> {
  return dereferenced(await (await fetch(`${service.baseUrl}/docs/${name}/openapi.json`)).json());
} /** Checks that the document of the endpoint describes an answer. Returns the status code. */
async function judge(dialect: Dialect, { responses }: Operation, response: Response): Promise<string> {
  const text = await response.text();
  const body = JSON.parse(text) as { statusCode: string; message: string; data: unknown };
  assert.ok(response.status < 500, `${response.status} ${text}`);
  assert.deepEqual(
    Object.keys(body).filter((key) => key !== 'errors'),
    ['statusCode', 'message', 'data'],
  );
  assert.match(body.statusCode, /^\d\d$/);
  assert.ok(response.headers.get('x-request-id'));
  const own = ['00', '99'].includes(body.statusCode) ? 200 : dialect.statuses[body.statusCode as never];
  assert.ok(
    [own, ...(TRANSPORT[body.statusCode] ?? [])].includes(response.status),
    `${response.status} ${text}`,
  );
  // A reference that cannot be decoded makes an unknown path.
  if (body.statusCode === '98' && response.status === 404) return '98';
  const schema = responses[response.status]?.content['application/json']?.schema;
  assert.ok(schema, `${response.status} is not documented: ${text}`);
  const [, errors] = validator(schema).Errors(body);
  assert.ok(validator(schema).Check(body), `${text}\n${JSON.stringify(errors)}`);
  return body.statusCode;
}

for (const dialect of [VARIANT_A, VARIANT_B]) {
  describe(`a random request to ${dialect.name}`, () => {
    test('is answered as the OpenAPI document says, and never with a 500', async (t) => {
      const listening = await testService(t);
      const { paths } = await readDocument(listening, dialect);
      const seen = new Map<string, Set<string>>();
      for (const [path, operations] of Object.entries(paths)) {
        for (const [method, operation] of Object.entries(operations)) {
          let till = await Till.another(listening);
          const [voucher, other] = [await till.voucher(), await till.voucher(null)];
          const known = {
            code: [voucher.code, other.code],
            voucherCode: [voucher.code, voucher.code + voucher.pin, other.code],
            pin: [voucher.pin, voucher.pin, other.pin, null],
            serialNumber: [voucher.serialNumber, other.serialNumber],
            reference: ['x', 'y', 'z'],
            productCode: ['DEFAULT'],
            quantity: [1, 2, 11],
          };
          const schema = operation.requestBody?.content['application/json']?.schema;
          const codes = new Set<string>();
          let calls = 0;
          await fc.assert(
            fc.asyncProperty(
              reference,
              schema ? bodyOf(schema, known) : fc.constant(undefined),
              async (name, body) => {
                if (++calls % CALLS_OF_A_KEY === 0) till = await Till.another(listening);
                const url = listening.baseUrl + path.replace('{reference}', name);
                const { authorization } = till.merchant;
                const headers = {
                  authorization,
                  ...(body !== undefined && { 'content-type': 'application/json' }),
                };
                const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) });
                // Dots are removed from a path before it is sent, which makes it another path.
                if (new URL(url).pathname.split('/').length !== path.split('/').length)
                  return void (await response.text());
                codes.add(await judge(dialect, operation, response));
              },
            ),
            { numRuns: RUNS },
          );
          seen.set(`${method} ${path}`, codes);
        }
      }
      // Requests get beyond the first gate: every call gives several codes, such as 00 and 60.
      for (const [name, codes] of seen)
        assert.ok(codes.size >= (name.includes('post') ? 3 : 1), `${name}: ${[...codes]}`);
    });
  });
}

describe('a sequence of bytes that is not valid HTTP', () => {
  const good =
    'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}';
  const BROKEN = [
    'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
    'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\nxyz',
    'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n',
    'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n',
    'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n{}',
    'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Length: -2\r\n\r\n{}',
    'POST /api/v2/redeem HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n{}',
    'GET /api/v2/transactions HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n',
    'GET /api/v2/transactions HTTP/1.1\r\nHost : x\r\n\r\n',
    'GET /api/v2/transactions HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n',
    'GET /api/v2/transactions HTTP/9.9\r\nHost: x\r\n\r\n',
    'GET /api/v2/transactions\r\n\r\n',
    'get /api/v2/transactions HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET  /api/v2/transactions  HTTP/1.1\r\nHost: x\r\n\r\n',
    `GET /${'x'.repeat(70_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    `GET /api/v2/transactions HTTP/1.1\r\nHost: x\r\n${'X: y\r\n'.repeat(20_000)}\r\n`,
    `GET /api/v2/transactions HTTP/1.1\r\nHost: x\r\nAuthorization: Basic ${'A'.repeat(60_000)}\r\n\r\n`,
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
    '\0'.repeat(1_000),
  ];

  /** Checks that each answer is a refusal in JSON. Bytes that are no request may get no answer. */
  function assertRefused(text: string, sent: string): void {
    for (const [, status] of text.matchAll(/HTTP\/1\.1 (\d{3})/g))
      assert.match(status as string, /^4\d\d$/, sent.slice(0, 200));
    if (text !== '') assert.match(text, /\{"statusCode":"\d\d","message":"[^"]+","data":null/);
  }

  test('is refused, and the server answers the next request', async (t) => {
    const { baseUrl } = await testService(t);
    const port = Number(new URL(baseUrl).port);
    for (const bytes of BROKEN) assertRefused(await sendBytes(port, bytes), bytes);
    // A valid request with some bytes replaced or inserted.
    const spoiled = fc
      .array(fc.tuple(fc.nat(good.length - 1), fc.nat(255), fc.nat(2)), { minLength: 1, maxLength: 4 })
      .map((changes) =>
        changes.reduce(
          (text, [at, code, length]) =>
            text.slice(0, at) + String.fromCharCode(code) + text.slice(at + length),
          good,
        ),
      );
    const property = fc.asyncProperty(spoiled, async (bytes) =>
      assertRefused(await sendBytes(port, bytes), bytes),
    );
    await fc.assert(property, { numRuns: 200 });
    assert.equal((await fetch(`${baseUrl}/readyz`)).status, 200);
  });
});
