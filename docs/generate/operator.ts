import { OPERATOR_PREFIX, PORTAL_PREFIX } from '../../src/http/operator/routes.ts';
import { parametersOf } from '../../src/operator/fields.ts';
import type { AnyOperation } from '../../src/operator/operations.ts';
import { PORTAL_OPERATIONS } from '../../src/operator/portal.ts';
import { OPERATIONS } from '../../src/operator/table.ts';

type Json = { readonly [key: string]: unknown };

/** A problem document (RFC 9457). */
const PROBLEM = {
  type: 'object',
  required: ['type', 'title', 'status', 'code', 'requestId'],
  properties: {
    type: { type: 'string' },
    title: { type: 'string' },
    status: { type: 'integer' },
    code: { type: 'string', description: 'A status code of the merchant API, or a name.' },
    detail: { type: 'string' },
    requestId: { type: 'string' },
    errors: {
      type: 'array',
      items: {
        type: 'object',
        required: ['field', 'rule', 'message'],
        properties: { field: { type: 'string' }, rule: { type: 'string' }, message: { type: 'string' } },
      },
    },
  },
};

const IDEMPOTENCY_KEY = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description: 'The same request again under this key is performed once.',
  schema: { type: 'string', minLength: 1, maxLength: 100 },
};

/** The OpenAPI 3.1 documents of the operator API and of the portal API, made from the tables of operations. */
export function operatorDocuments(): { path: string; text: string }[] {
  const documents = [
    { name: 'operator', title: 'Scrip operator API', prefix: OPERATOR_PREFIX, operations: OPERATIONS },
    { name: 'portal', title: 'Scrip portal API', prefix: PORTAL_PREFIX, operations: PORTAL_OPERATIONS },
  ];
  return documents.map(({ name, title, prefix, operations }) => ({
    path: `${name}/openapi.json`,
    text: `${JSON.stringify(describe(title, prefix, operations), null, 2)}\n`,
  }));
}

function describe(title: string, prefix: string, operations: readonly AnyOperation[]): Json {
  const paths: Record<string, Record<string, Json>> = {};
  for (const operation of operations) {
    const path = prefix + operation.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describeOperation(operation) };
  }
  return {
    openapi: '3.1.0',
    info: { title, version: '1', description: 'Conventions: docs/reference/operator-api.md.' },
    servers: [{ url: '/', description: 'This server' }],
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'A token: `scrip token create`.' },
      },
      schemas: { Problem: PROBLEM },
      responses: {
        Problem: {
          description: 'A problem',
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
    },
  };
}

function describeOperation(operation: AnyOperation): Json {
  const { name, summary, description, method, path, input, output, roles, risk, command } = operation;
  const inPath = parametersOf(path);
  const hasBody = method === 'POST' || method === 'PATCH';
  const fields = Object.entries(input.properties).filter(([field]) => !inPath.includes(field));
  const required = (input.required ?? []).filter((field: string) => !inPath.includes(field));
  const parameters = [
    ...inPath.map((field) => ({
      name: field,
      in: 'path',
      required: true,
      schema: input.properties[field],
    })),
    ...(hasBody
      ? []
      : fields.map(([field, schema]) => ({
          name: field,
          in: 'query',
          required: required.includes(field),
          schema,
        }))),
    ...(operation.effect === 'read' ? [] : [IDEMPOTENCY_KEY]),
  ];
  const body = {
    type: 'object',
    properties: Object.fromEntries(fields),
    required,
    additionalProperties: false,
  };
  return {
    operationId: name,
    summary,
    ...(description !== undefined && { description }),
    tags: [name.slice(0, name.indexOf('.'))],
    'x-roles': roles,
    'x-risk': risk,
    ...(typeof command === 'string' && { 'x-command': command }),
    ...(parameters.length > 0 && { parameters }),
    ...(hasBody && {
      requestBody: { required: required.length > 0, content: { 'application/json': { schema: body } } },
    }),
    responses: {
      [String(operation.status ?? 200)]: {
        description: 'Done',
        content: { 'application/json': { schema: output } },
      },
      default: { $ref: '#/components/responses/Problem' },
    },
  };
}
