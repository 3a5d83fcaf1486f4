import { readFileSync } from 'node:fs';
import { bodyText, type Dialect, type Endpoint, Envelope, RefusalBody } from '../../src/http/endpoint.ts';
import { fieldsOf, valueErrors } from '../../src/http/field-errors.ts';
import { LIMITS, PathReference } from '../../src/http/fields.ts';
import { withComponents } from '../../src/http/openapi.ts';
import {
  BODY_LIMIT_BYTES,
  bodyTooLarge,
  notJson,
  type TransportRefusal,
  wrongMediaType,
} from '../../src/http/wire.ts';
import { PRECEDENCE, REFUSALS, type RefusalCode } from '../../src/refusal.ts';
import { describeEvents } from './events.ts';
import { type Example, examplesOf } from './examples.ts';

const INTRODUCTION = `
## In short
- Every response is a JSON object with \`statusCode\` (\`00\` is success), \`message\` and \`data\`.
- Authenticate with HTTP Basic: the id of your API key and its secret.
- Amounts are JSON numbers in major units (\`12.5\` is twelve and a half). They are exact and never rounded.
- Times are ISO 8601 in UTC.
- A request with a \`reference\` can be sent again as often as you like. It has one effect. A
  repetition gets the answer of the first request, with the header \`Idempotent-Replayed: true\`. So send it
  again after a timeout.
- Request fields that are not listed are ignored. New fields may be added to responses: ignore unknown ones.
- A JSON object must not hold a key twice, and must not be nested more than 32 levels deep.
- Give the \`X-Request-Id\` of a response to support.
- After \`429\` and \`503\`, wait as many seconds as \`Retry-After\` says, then send the request again.

Both prefixes, \`/merchant-client/v2\` and \`/api/v2\`, serve the same vouchers, API keys and references.
`;

/** The reference page, as the service serves it. */
const EXTERNAL_DOCS = { description: 'Guides and reference', url: '/docs/guides/' };

const ROW = /^\| (\d\d) \| ([^|]+) \|.*\| ([^|]+) \|$/gm;
const LINK = /\[([^\]]+)\]\([^)]*\)/g;

/** The message of each code, and when it occurs, as the page of status codes says it, without its links. */
const MEANINGS = new Map(
  [...readFileSync(new URL('../reference/status-codes.md', import.meta.url), 'utf8').matchAll(ROW)].map(
    ([, code = '', message = '', when = '']) => [code, `${message}. ${when.replace(LINK, '$1')}`],
  ),
);

function meaningOf(code: string): string {
  const meaning = MEANINGS.get(code);
  if (meaning === undefined) throw new Error(`status-codes.md does not say when ${code} occurs`);
  return meaning;
}

/** Refusals of every endpoint. */
const GENERAL: readonly RefusalCode[] = ['01', '97', '04', '91'];

/** A refusal as an endpoint answers it. */
type Documented = {
  readonly httpStatus: number;
  readonly code: string;
  readonly meaning: string;
  readonly example: Example;
};

type Json = { readonly [key: string]: unknown };

/** The OpenAPI 3.1 document of a dialect, as it is published. */
export const documentOf = (dialect: Dialect): Json => withComponents(describeDialect(dialect));

/** The same without components. It is made from the schemas that check requests and serialize answers. */
export function describeDialect(dialect: Dialect): Json {
  const paths: Record<string, Record<string, object>> = {};
  for (const endpoint of dialect.endpoints) {
    const path = dialect.prefix + endpoint.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: describeEndpoint(dialect, endpoint) };
  }
  return {
    openapi: '3.1.0',
    info: { title: dialect.title, version: '2', description: `${dialect.description}\n${INTRODUCTION}` },
    externalDocs: EXTERNAL_DOCS,
    servers: [{ url: '/', description: 'This server' }],
    tags: [
      { name: 'Vouchers', description: 'Generate, download, activate and check vouchers.' },
      { name: 'Redemptions', description: 'Redeem vouchers and update redemptions.' },
      { name: 'Transactions', description: 'Look transactions up.' },
      { name: 'Webhooks', description: 'Events that the service sends to your endpoints.' },
    ],
    security: [{ basic: [] }],
    paths,
    webhooks: describeEvents(withLimits),
    components: {
      securitySchemes: {
        basic: {
          type: 'http',
          scheme: 'basic',
          description: 'The id of your API key as the user, its secret as the password.',
        },
      },
    },
  };
}

/** A schema as plain JSON, with the limits that the core checks among its keywords. */
function withLimits(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withLimits);
  if (schema === null || typeof schema !== 'object') return schema;
  const limits = (schema as { [LIMITS]?: Json })[LIMITS] ?? {};
  const { type, ...rest } = Object.fromEntries(
    Object.entries(schema).map(([key, each]) => [key, withLimits(each)]),
  );
  if (type === undefined) return { ...rest, ...limits };
  // A field that may be null stays so.
  const isNullable = Array.isArray(type) && limits['type'] !== undefined;
  return { type, ...rest, ...limits, ...(isNullable && { type: [limits['type'], 'null'] }) };
}

function tagOf({ path }: Endpoint): string {
  if (path.startsWith('/transactions')) return 'Transactions';
  return path.startsWith('/redeem') || path.startsWith('/redemptions') ? 'Redemptions' : 'Vouchers';
}

function mediaTypesOf({ otherMediaTypes = [] }: Endpoint): readonly string[] {
  return ['application/json', ...otherMediaTypes];
}

function describeEndpoint(dialect: Dialect, endpoint: Endpoint): object {
  const { operationId, summary, description, path, body } = endpoint;
  const { request: examples } = examplesOf(dialect.name, operationId);
  return {
    operationId,
    summary,
    description,
    tags: [tagOf(endpoint)],
    ...(path.includes(':reference') && { parameters: [describeReference()] }),
    ...(body && {
      requestBody: {
        required: true,
        description: `At most ${BODY_LIMIT_BYTES / 1024} KiB of JSON in UTF-8.`,
        content: Object.fromEntries(
          mediaTypesOf(endpoint).map((type) => [type, { schema: withLimits(body), examples }]),
        ),
      },
    }),
    responses: describeResponses(dialect, endpoint),
  };
}

function describeReference(): object {
  const {
    description,
    examples: [example] = [],
    ...schema
  } = withLimits(PathReference) as {
    readonly description: string;
    readonly examples?: readonly string[];
  };
  return { name: 'reference', in: 'path', required: true, description, schema, example };
}

function describeResponses(dialect: Dialect, endpoint: Endpoint): object {
  const all = refusalsOf(dialect, endpoint);
  const { response: examples } = examplesOf(dialect.name, endpoint.operationId);
  const responses: Record<string, object> = {};
  for (const httpStatus of [...new Set([200, ...all.map((each) => each.httpStatus)])].sort((a, b) => a - b)) {
    const here = all.filter((each) => each.httpStatus === httpStatus);
    const isSuccess = httpStatus === 200;
    const hasNone = isSuccess && examples['none'] !== undefined;
    const schemas = [
      ...(isSuccess || here.some(({ code }) => code === '58') ? [withLimits(Envelope(endpoint.data))] : []),
      ...(here.length > 0 || hasNone ? [RefusalBody] : []),
    ];
    const lines = [
      ...(isSuccess ? [`\`00\`: ${meaningOf('00')}`] : []),
      ...(hasNone ? [`\`99\`: ${meaningOf('99')}`] : []),
      ...here.map(({ code, meaning }) => `\`${code}\`: ${meaning}`),
    ];
    responses[httpStatus] = {
      description: lines.map((line) => `- ${line}`).join('\n'),
      headers: headersOf(httpStatus, endpoint),
      content: {
        'application/json': {
          schema: schemas.length === 1 ? schemas[0] : { anyOf: schemas },
          examples: {
            ...(isSuccess && examples),
            ...Object.fromEntries(
              here.map(({ code, example }, at) => [`refused${code}${suffixOf(here, at)}`, example]),
            ),
          },
        },
      },
    };
  }
  return responses;
}

/** Distinguishes the examples of one code. */
function suffixOf(all: readonly Documented[], at: number): string {
  const before = all.slice(0, at).filter(({ code }) => code === all[at]?.code).length;
  return before === 0 ? '' : `_${before + 1}`;
}

function headersOf(httpStatus: number, endpoint: Endpoint): object {
  const text = (description: string, schema: object = { type: 'string' }) => ({ schema, description });
  return {
    'X-Request-Id': text('The id of the request, for support.'),
    ...(httpStatus === 200 &&
      endpoint.refusals.includes('94') && {
        'Idempotent-Replayed': text('Set where an earlier copy of the request had the effect.', {
          type: 'string',
          enum: ['true'],
        }),
      }),
    ...(httpStatus === 401 && {
      'WWW-Authenticate': text(
        'Left out for requests that a page sends by script (`Sec-Fetch-Dest: empty`).',
        {
          type: 'string',
          enum: ['Basic'],
        },
      ),
    }),
    ...((httpStatus === 429 || httpStatus === 503) && {
      'Retry-After': text('Seconds.', { type: 'integer', minimum: 1 }),
    }),
  };
}

/** Every refusal that an endpoint can give, in order of precedence. */
function refusalsOf(dialect: Dialect, endpoint: Endpoint): Documented[] {
  const { body, refusals, notFound } = endpoint;
  const isPossible = (code: RefusalCode) =>
    GENERAL.includes(code) || (body && code === '30') || refusals.includes(code);
  const own = PRECEDENCE.filter(isPossible).map((code) => {
    const message = code === '60' && notFound !== undefined ? notFound : REFUSALS[code];
    const errors = code === '30' ? [missingField(endpoint)] : valueErrors(code, fieldsOf(endpoint));
    const value = JSON.parse(bodyText(code, message, errors));
    const example = examplesOf(dialect.name, endpoint.operationId).refusals?.[code] ?? {
      summary: message,
      value,
    };
    return { httpStatus: dialect.statuses[code], code, meaning: meaningOf(code), example };
  });
  const transport = body ? transportRefusals(endpoint) : [];
  const bug = { summary: 'Internal error', value: JSON.parse(bodyText('96', 'Internal error')) };
  return [...transport, ...own, { httpStatus: 500, code: '96', meaning: meaningOf('96'), example: bug }];
}

function missingField({ body }: Endpoint) {
  const { required = [] } = body as { required?: string[] };
  return { field: required[0] ?? 'body', rule: 'required', message: 'is required' };
}

/** Refusals of a request with a body before the body is looked at. */
function transportRefusals(endpoint: Endpoint): Documented[] {
  const mediaTypes = mediaTypesOf(endpoint);
  const document = ({ code, httpStatus, errors }: TransportRefusal, meaning: string, summary: string) => ({
    httpStatus,
    code,
    meaning: `${REFUSALS[code]}. ${meaning}`,
    example: { summary, value: JSON.parse(bodyText(code, REFUSALS[code], errors)) },
  });
  return [
    document(notJson(), 'The body is not JSON, or has a key twice.', 'Not JSON'),
    document(bodyTooLarge(), `The body is larger than ${BODY_LIMIT_BYTES / 1024} KiB.`, 'Too large'),
    document(
      wrongMediaType(mediaTypes),
      `The media type is not ${mediaTypes.join(' or ')}.`,
      'Wrong media type',
    ),
  ];
}
