import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { validate } from '@scalar/openapi-parser';
import type { FastifyInstance } from 'fastify';
import Schema from 'typebox/schema';
import { buildServer } from '../src/http/server.ts';
import { VARIANT_A } from '../src/http/variant-a/routes.ts';
import { VARIANT_B } from '../src/http/variant-b/routes.ts';
import { serviceWithoutDatabase } from './harness.ts';

type Content = Record<string, { schema: object; examples?: Record<string, { summary: string; value: unknown }> }>;
type Operation = {
  operationId: string;
  description: string;
  requestBody?: { content: Content };
  responses: Record<string, { description: string; content: Content }>;
};
type Document = { openapi: string; paths: Record<string, Record<string, Operation>> };

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
  return response.json();
}

function* examplesOf(content: Content) {
  for (const [type, { schema, examples = {} }] of Object.entries(content)) {
    const validator = Schema.Compile(schema);
    for (const [name, { value }] of Object.entries(examples)) yield { name: `${type} ${name}`, value, validator };
  }
}

for (const dialect of [VARIANT_A, VARIANT_B]) {
  describe(`the document of ${dialect.name}`, () => {
    test('is OpenAPI 3.1', async () => {
      const document = await read(dialect.name);
      assert.match(document.openapi, /^3\.1\./);
      const { valid, errors } = await validate(structuredClone(document));
      assert.deepEqual(errors ?? [], []);
      assert.equal(valid, true);
    });

    test('describes every endpoint once, under its own name', async () => {
      const { paths } = await read(dialect.name);
      const operations = Object.values(paths).flatMap((path) => Object.values(path));
      assert.equal(operations.length, dialect.endpoints.length);
      assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length);
      for (const path of Object.keys(paths)) assert.ok(path.startsWith(`${dialect.prefix}/`));
    });

    test('has an example of every answer, and each follows its schema', async () => {
      const { paths } = await read(dialect.name);
      for (const [path, operations] of Object.entries(paths)) {
        for (const [method, operation] of Object.entries(operations)) {
          const bodies = Object.entries(operation.responses).map(([status, { content }]) => ({ status, content }));
          if (operation.requestBody) bodies.push({ status: 'request', content: operation.requestBody.content });
          for (const { status, content } of bodies) {
            const examples = [...examplesOf(content)];
            assert.ok(examples.length > 0, `${method} ${path} ${status} has no example`);
            for (const { name, value, validator } of examples) {
              const [, errors] = validator.Errors(value);
              assert.ok(validator.Check(value), `${method} ${path} ${status} ${name}: ${JSON.stringify(errors)}`);
            }
          }
        }
      }
    });

    test('shows no field in an example that its schema does not name', async () => {
      const strict = (schema: unknown): unknown => {
        if (Array.isArray(schema)) return schema.map(strict);
        if (schema === null || typeof schema !== 'object') return schema;
        const entries = Object.entries(schema).map(([key, value]) => [key, strict(value)]);
        const closed = Object.fromEntries(entries);
        return 'properties' in schema ? { ...closed, additionalProperties: false } : closed;
      };
      const { paths } = await read(dialect.name);
      for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
        for (const { content } of [...Object.values(operation.responses), operation.requestBody ?? { content: {} }]) {
          for (const { schema, examples = {} } of Object.values(content)) {
            const validator = Schema.Compile(strict(schema) as object);
            for (const [name, { value }] of Object.entries(examples)) {
              assert.ok(validator.Check(value), `${operation.operationId} ${name}`);
            }
          }
        }
      }
    });

    test('tells each refusal with the HTTP status that the dialect gives it', async () => {
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

describe('the page of the documentation', () => {
  test('loads nothing from elsewhere, and may not', async () => {
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

  test('has its program at hand, and a choice of both documents', async () => {
    const { body } = await app.inject('/docs/');
    assert.equal((await app.inject('/docs/js/scalar.js')).statusCode, 200);
    for (const { name } of [VARIANT_A, VARIANT_B]) assert.ok(body.includes(`"${name}/openapi.json"`));
    assert.equal((await app.inject('/docs')).headers.location, '/docs/');
  });
});
