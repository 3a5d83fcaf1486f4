import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { validate } from '@scalar/openapi-parser';
import type { FastifyInstance } from 'fastify';
import Schema from 'typebox/schema';
import { buildServer } from '../../src/http/server.ts';
import { VARIANT_A } from '../../src/http/variant-a.ts';
import { VARIANT_B } from '../../src/http/variant-b.ts';
import type { RefusalCode } from '../../src/refusal.ts';
import { EVENTS, TEST_EVENT } from '../../src/webhooks/outbox.ts';
import { serviceWithoutDatabase } from '../support/harness.ts';
import { dereferenced, strict } from '../support/openapi.ts';

type Content = Record<
  string,
  { schema: object; examples?: Record<string, { summary: string; value: unknown }> }
>;
type Operation = {
  operationId: string;
  description: string;
  parameters?: { name: string; schema: object }[];
  requestBody?: { content: Content };
  responses: Record<string, { description: string; content: Content }>;
};
type Document = {
  openapi: string;
  externalDocs: { url: string };
  paths: Record<string, Record<string, Operation>>;
  webhooks: Record<string, { post: Operation }>;
};

const NO_CONTROLS = '[^\\u0000-\\u001f\\u007f-\\u009f]+$';
const PATH_REFERENCE = { minLength: 1, maxLength: 100, pattern: `^${NO_CONTROLS}` };
const REFERENCE = { ...PATH_REFERENCE, pattern: `^(?!CANCEL-|NEW-)${NO_CONTROLS}` };
const CODE = { pattern: '^[0-9]{12}$', minLength: 12, maxLength: 12 };
const PIN = { pattern: '^[0-9]{4}$', minLength: 4, maxLength: 4 };
const AMOUNT = { exclusiveMinimum: 0, maximum: 9_999_999_999_999.99 };
const QUANTITY = { type: 'integer', format: 'int32', minimum: 1, maximum: 5_000_000 };
const VOUCHER_CODE = { pattern: '^([0-9]{12}|[0-9]{16})$', minLength: 12, maxLength: 16 };

/** Every field of every request, with its limits. */
const LIMITS: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, object>>>>>> = {
  'variant-a': {
    generateVouchers: {
      reference: REFERENCE,
      productCode: { minLength: 1, maxLength: 50, pattern: '^[A-Za-z0-9_.-]+$' },
      quantity: QUANTITY,
      amount: AMOUNT,
    },
    activateVoucher: { pin: PIN, code: CODE, reference: REFERENCE },
    checkBalance: { pin: PIN, code: CODE },
    redeemVoucher: { pin: PIN, code: CODE, amount: AMOUNT, reference: REFERENCE },
    updateRedemption: {
      reference: REFERENCE,
      amountUsed: { minimum: 0, maximum: AMOUNT.maximum, default: 0 },
    },
  },
  'variant-b': {
    generateVouchers: {
      quantity: QUANTITY,
      reference: REFERENCE,
      value: AMOUNT,
      expiryDate: { format: 'date-time' },
    },
    activateVoucher: {
      serialNumber: { type: 'integer', minimum: 1, maximum: 999_999_999_999_999 },
      value: AMOUNT,
      reference: REFERENCE,
    },
    checkBalance: { voucherCode: VOUCHER_CODE, pin: PIN },
    redeemVoucher: { voucherCode: VOUCHER_CODE, pin: PIN, amount: AMOUNT, reference: REFERENCE },
  },
};

/** The keywords of a schema without description and examples, and without a type other than integer. */
function limitsOf({ description: _, examples: _examples, type, ...limits }: Record<string, unknown>): object {
  return type === 'integer' ? { type, ...limits } : limits;
}

let app: FastifyInstance;
const service = serviceWithoutDatabase();

before(async () => {
  app = buildServer(service);
  await app.ready();
});

after(async () => {
  await app.close();
  await service.db.close();
});

async function read(name: string): Promise<Document> {
  const response = await app.inject(`/docs/${name}/openapi.json`);
  assert.equal(response.statusCode, 200);
  return dereferenced(response.json());
}
const operationsOf = ({ paths }: Document) => Object.values(paths).flatMap((path) => Object.values(path));

function* examplesOf(content: Content) {
  for (const [type, { schema, examples = {} }] of Object.entries(content)) {
    const validator = Schema.Compile(strict(schema));
    for (const [name, { value }] of Object.entries(examples))
      yield { name: `${type} ${name}`, value, validator };
  }
}

test('an OpenAPI document is compressed for clients that accept gzip', async () => {
  const url = '/docs/operator/openapi.json';
  const plain = await app.inject(url);
  const packed = await app.inject({ url, headers: { 'accept-encoding': 'gzip, br' } });
  assert.deepEqual(
    [plain, packed].map(({ headers }) => headers['content-encoding']),
    [undefined, 'gzip'],
  );
  assert.ok(packed.rawPayload.length < plain.rawPayload.length / 4);
  assert.equal(String(gunzipSync(packed.rawPayload)), plain.payload);
});

test('a file of JSON is not described as a text', async () => {
  for (const name of ['operator', 'portal']) {
    const { paths } = (await app.inject(`/docs/${name}/openapi.json`)).json();
    for (const [path, methods] of Object.entries<object>(paths))
      for (const { responses } of Object.values(methods))
        assert.notEqual(responses[200]?.content['application/json']?.schema.type, 'string', path);
  }
});

test('an OpenAPI document that a client has is not sent again', async () => {
  const url = '/docs/operator/openapi.json';
  const tag = String((await app.inject(url)).headers.etag);
  const again = await app.inject({ url, headers: { 'if-none-match': tag } });
  const other = await app.inject({ url, headers: { 'if-none-match': 'W/"other"' } });
  assert.deepEqual(
    [again, other].map(({ statusCode, payload }) => [statusCode, payload.length > 0]),
    [
      [304, false],
      [200, true],
    ],
  );
});

for (const dialect of [VARIANT_A, VARIANT_B]) {
  describe(`the OpenAPI document of ${dialect.name}`, () => {
    test('is valid OpenAPI 3.1', async () => {
      const document = (await app.inject(`/docs/${dialect.name}/openapi.json`)).json();
      assert.match(document.openapi, /^3\.1\./);
      const { valid, errors } = await validate(document);
      assert.deepEqual(errors ?? [], []);
      assert.equal(valid, true);
    });
    test('describes every endpoint once, under a unique operationId', async () => {
      const document = await read(dialect.name);
      const operations = operationsOf(document);
      assert.equal(operations.length, dialect.endpoints.length);
      assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length);
      for (const path of Object.keys(document.paths)) assert.ok(path.startsWith(`${dialect.prefix}/`));
    });

    test('has an example of every request and answer, each with the fields of its schema and no others', async () => {
      for (const { operationId, responses, requestBody } of operationsOf(await read(dialect.name))) {
        const bodies = Object.entries({ ...responses, ...(requestBody && { request: requestBody }) });
        for (const [status, { content }] of bodies) {
          const examples = [...examplesOf(content)];
          assert.ok(examples.length > 0, `${operationId} ${status} has no example`);
          for (const { name, value, validator } of examples) {
            const [, errors] = validator.Errors(value);
            assert.ok(validator.Check(value), `${operationId} ${status} ${name}: ${JSON.stringify(errors)}`);
          }
        }
      }
    });

    test('states every limit of every field', async () => {
      const found: Record<string, Record<string, object>> = {};
      for (const { operationId, requestBody, parameters = [] } of operationsOf(await read(dialect.name))) {
        for (const { name, schema } of parameters)
          if (name === 'reference') assert.deepEqual(limitsOf(schema as never), PATH_REFERENCE);
        const { schema } = requestBody?.content['application/json'] ?? {};
        if (!schema) continue;
        const { properties } = schema as { properties: Record<string, Record<string, unknown>> };
        const fields = Object.entries(properties).map(([name, field]) => [name, limitsOf(field)]);
        found[operationId] = Object.fromEntries(fields);
      }
      assert.deepEqual(found, LIMITS[dialect.name]);
    });

    test('describes each answer by a line for each status code', async () => {
      for (const { operationId, responses } of operationsOf(await read(dialect.name)))
        for (const [status, { description }] of Object.entries(responses))
          for (const line of description.split('\n'))
            assert.match(line, /^- `\d\d`: \S/, `${operationId} ${status}`);
    });

    test('describes every event with an example that is valid by its schema', async () => {
      const { webhooks } = await read(dialect.name);
      assert.deepEqual(Object.keys(webhooks).sort(), [...EVENTS, TEST_EVENT].sort());
      for (const [type, { post }] of Object.entries(webhooks)) {
        const examples = [...examplesOf(post.requestBody?.content ?? {})];
        assert.equal(examples.length, 1);
        for (const { value, validator } of examples) assert.ok(validator.Check(value), type);
      }
    });

    test('links to a page of the service as its external documentation', async () => {
      const { externalDocs } = await read(dialect.name);
      assert.equal((await app.inject(externalDocs.url)).statusCode, 200);
    });

    test('lists `42` and `47` only where they can occur', () => {
      const listing = (code: RefusalCode) =>
        dialect.endpoints.filter(({ refusals }) => refusals.includes(code)).map((each) => each.operationId);
      assert.deepEqual(listing('42'), ['redeemVoucher']);
      assert.deepEqual(
        listing('47'),
        dialect.name === 'variant-a' ? ['activateVoucher', 'redeemVoucher'] : ['redeemVoucher'],
      );
    });

    test('has each refusal under its HTTP status in the variant', async () => {
      const { paths } = await read(dialect.name);
      for (const endpoint of dialect.endpoints) {
        const path = dialect.prefix + endpoint.path.replace(':reference', '{reference}');
        const operation = paths[path]?.[endpoint.method.toLowerCase()];
        assert.ok(operation, path);
        for (const code of [...endpoint.refusals, '01', '97', '04', '91'] as const) {
          const response = operation.responses[dialect.statuses[code]];
          assert.ok(response?.description.includes(`\`${code}\`: `), `${endpoint.operationId} ${code}`);
        }
      }
    });
  });
}

describe('the page of the API reference', () => {
  test('loads nothing from other servers, and its content security policy forbids it', async () => {
    const { statusCode, headers, body } = await app.inject('/docs/');
    assert.equal(statusCode, 200);
    assert.doesNotMatch(body, /(src|href)="(https?:)?\/\//);
    const policy = String(headers['content-security-policy']);
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /script-src 'self' 'sha256-[^']+';/);
    assert.match(policy, /connect-src 'self'/);
    assert.doesNotMatch(policy, /https?:|unsafe-eval|script-src[^;]*unsafe-inline/);
    assert.match(body, /"withDefaultFonts": false/);
  });

  test('has a title and an icon', async () => {
    const { body } = await app.inject('/docs/');
    assert.match(body, /<title>Scrip API<\/title>/);
    const icon = await app.inject('/favicon.ico');
    assert.deepEqual([icon.statusCode, icon.headers['content-type']], [200, 'image/svg+xml']);
  });

  test('serves its own script, and offers the documents of both variants', async () => {
    const { body } = await app.inject('/docs/');
    assert.equal((await app.inject('/docs/js/scalar.js')).statusCode, 200);
    for (const { name } of [VARIANT_A, VARIANT_B]) assert.ok(body.includes(`"${name}/openapi.json"`));
    assert.equal((await app.inject('/docs')).headers.location, '/docs/');
  });
});
