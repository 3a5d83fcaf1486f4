import type { Dialect } from '../../src/http/endpoint.ts';
import { VARIANT_A } from '../../src/http/variant-a.ts';
import { VARIANT_B } from '../../src/http/variant-b.ts';
import { describeDialect, documentOf } from './openapi.ts';

/**
 * The documents of the API: OpenAPI, and what is made of it, a Postman collection and a text for language
 * models.
 */

type Schema = {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
};
type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;
type Content = Readonly<Record<string, { readonly schema: Schema; readonly examples?: Examples }>>;
type Operation = {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content: Content }>>;
};
type OpenApi = {
  readonly info: { readonly title: string; readonly description: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
};

type Endpoint = { readonly method: string; readonly path: string; readonly operation: Operation };
type Described = {
  readonly name: string;
  readonly dialect: Dialect;
  readonly document: OpenApi;
  readonly calls: readonly Endpoint[];
};

const JSON_TYPE = 'application/json';

function describe(dialect: Dialect): Described {
  const document = describeDialect(dialect) as unknown as OpenApi;
  const calls = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
    })),
  );
  return { name: dialect.name, dialect, document, calls };
}

const DESCRIBED = [VARIANT_A, VARIANT_B].map(describe);

/** The calls of both variants, each with a body that works, for generators of programs. */
export function describedCalls() {
  return DESCRIBED.map(({ name, document, calls }) => ({
    name,
    document,
    calls: calls.map(({ method, path, operation }) => ({
      method,
      path,
      summary: operation.summary,
      body: exampleOf(operation),
    })),
  }));
}

/** The variables of the collection, which its user fills in once. */
const VARIABLES: Readonly<Record<string, string>> = {
  baseUrl: 'http://127.0.0.1:8080',
  keyId: '',
  secret: '',
  code: '',
  pin: '',
  serialNumber: '1',
  reference: 'sale-1',
  batchReference: 'batch-1',
};

function variableOf(field: string, operationId: string): string | undefined {
  if (field === 'code' || field === 'voucherCode') return '{{code}}';
  if (field === 'reference') return operationId.endsWith('Vouchers') ? '{{batchReference}}' : '{{reference}}';
  return field === 'pin' || field === 'serialNumber' ? `{{${field}}}` : undefined;
}

/** The first example of a body, best with a reference and a code of 12 digits. */
function exampleOf({ requestBody }: Operation): Readonly<Record<string, unknown>> | undefined {
  const examples = Object.values(requestBody?.content[JSON_TYPE]?.examples ?? {}).map(
    ({ value }) => value as Record<string, unknown>,
  );
  const isWhole = (value: Record<string, unknown>) =>
    'reference' in value && !('voucherCode' in value && !value['pin']);
  const example =
    examples.find(isWhole) ?? examples.find((value) => !('voucherCode' in value) || value['pin']);
  // The date of an example will have passed some day.
  return example && Object.fromEntries(Object.entries(example).filter(([field]) => field !== 'expiryDate'));
}

/** The same body, with variables in place of the values that differ. */
function bodyOf(operation: Operation): string | undefined {
  const example = exampleOf(operation);
  if (!example) return undefined;
  const { operationId } = operation;
  const filled = Object.entries(example).map(([field, value]) => [
    field,
    variableOf(field, operationId) ?? value,
  ]);
  // A number has no quotation marks.
  return JSON.stringify(Object.fromEntries(filled), null, 2).replace(
    '"{{serialNumber}}"',
    '{{serialNumber}}',
  );
}

function postmanItem({ method, path, operation }: Endpoint): object {
  const body = bodyOf(operation);
  const filled = path.replace('{reference}', variableOf('reference', operation.operationId) ?? '');
  return {
    name: operation.summary,
    request: {
      method,
      description: operation.description,
      header: body === undefined ? [] : [{ key: 'Content-Type', value: JSON_TYPE }],
      url: { raw: `{{baseUrl}}${filled}`, host: ['{{baseUrl}}'], path: filled.split('/').slice(1) },
      ...(body !== undefined && { body: { mode: 'raw', raw: body, options: { raw: { language: 'json' } } } }),
    },
    response: [],
  };
}

/** A collection of every call, in the format v2.1 of Postman, which other programs import as well. */
function postmanCollection(): object {
  const credentials = { username: '{{keyId}}', password: '{{secret}}' };
  return {
    info: {
      name: 'Scrip',
      description:
        'Every call of both variants. Set the variables baseUrl, keyId and secret, then generate, and copy code, PIN and serial number of a voucher from the answer into the variables.',
      schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json',
    },
    auth: {
      type: 'basic',
      basic: Object.entries(credentials).map(([key, value]) => ({ key, value, type: 'string' })),
    },
    variable: Object.entries(VARIABLES).map(([key, value]) => ({ key, value, type: 'string' })),
    item: DESCRIBED.map(({ document, calls }) => ({
      name: document.info.title,
      item: calls.map(postmanItem),
    })),
  };
}

function fieldLines({ requestBody }: Operation): string[] {
  const { properties = {}, required = [] } = requestBody?.content[JSON_TYPE]?.schema ?? {};
  return Object.entries(properties).map(([name, { type, description = '' }]) => {
    const types = [type ?? 'any'].flat().join(' or ');
    return `  - \`${name}\` (${types}, ${required.includes(name) ? 'required' : 'optional'}): ${description}`;
  });
}

function callLines({ method, path, operation }: Endpoint): string[] {
  const [, example] = Object.entries(operation.responses['200']?.content[JSON_TYPE]?.examples ?? {})[0] ?? [];
  const codes = Object.values(operation.responses).flatMap(({ description }) =>
    description.split('\n').map((line) => line.slice(2)),
  );
  return [
    `### ${operation.summary}: \`${method} ${path}\``,
    '',
    operation.description,
    '',
    ...(operation.requestBody ? ['- Body, JSON:', ...fieldLines(operation)] : ['- No body.']),
    '- Codes:',
    ...[...new Set(codes)].map((line) => `  - ${line}`),
    ...(example ? [`- An answer: \`${JSON.stringify(example.value)}\``] : []),
    '',
  ];
}

/** The API as one text for language models (llms.txt). */
function llmsText(): string {
  const [first] = DESCRIBED;
  const introduction = first?.document.info.description.split('\n## In short\n')[1] ?? '';
  return [
    '# Scrip',
    '',
    '> A prepaid voucher service. Merchants generate vouchers that carry money, activate them, check and redeem them, in part or in full, and update a redemption once, over an HTTP interface in two variants.',
    '',
    introduction.trim(),
    '',
    '## Documents',
    '',
    ...DESCRIBED.map(({ name, document }) => `- [${document.info.title}](${name}/openapi.json): OpenAPI 3.1`),
    '- [Postman collection](postman.json): every call of both variants, format v2.1',
    '',
    ...DESCRIBED.flatMap(({ document, calls }) => [
      `## ${document.info.title}`,
      '',
      ...calls.flatMap(callLines),
    ]),
  ].join('\n');
}

type Page = { readonly path: string; readonly text: string };

/** The generated documents by their paths below /docs/. */
export function generatedDocuments(): Page[] {
  const json = (path: string, value: object): Page => ({ path, text: `${JSON.stringify(value, null, 1)}\n` });
  return [
    ...DESCRIBED.map(({ name, dialect }) => json(`${name}/openapi.json`, documentOf(dialect))),
    json('postman.json', postmanCollection()),
    { path: 'llms.txt', text: llmsText() },
  ];
}
