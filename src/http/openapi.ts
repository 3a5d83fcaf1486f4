import { type FieldError, REFUSALS, type RefusalCode } from '../refusal.ts';
import type { Dialect, Endpoint, Example } from './endpoint.ts';
import { Envelope, RefusalBody, refusalText } from './envelope.ts';
import { fieldsOf, valueErrors } from './field-errors.ts';
import { BODY_LIMIT_BYTES, NO_JSON } from './transport.ts';

const INTRODUCTION = `
## In short
- Every response is a JSON object with \`statusCode\` (\`00\` is success), \`message\` and \`data\`.
- Sign in with HTTP Basic: the id of your key and its secret.
- Amounts are JSON numbers in major units (\`12.5\` is twelve and a half). They are exact: nothing is ever rounded.
- Times are ISO 8601 in UTC.
- A request under a \`reference\` of yours can be sent again as often as you like: it has one effect, and a repetition gets the
  answer of the first, with the header \`Idempotent-Replayed: true\`. This is how to go on after a timeout.
- Fields that are not listed are ignored in requests. New fields may come to responses: ignore what you do not know.
- Tell support the \`X-Request-Id\` of a response that surprised you.
- After \`429\` and \`503\`, wait as many seconds as \`Retry-After\` says, then send the request again.

Both prefixes, \`/merchant-client/v2\` and \`/api/v2\`, lead to the same vouchers, with the same keys and the same references.
`;

/** What each refusal means to the one who reads it. */
const MEANINGS: Readonly<Record<RefusalCode, string>> = {
  '98': 'no such path or method, a body that is too large, or a media type that is not taken',
  '01': 'no credentials, or not the right ones',
  '97': 'this key has guessed too often, or there are too many requests',
  '04': 'your account is suspended',
  '30': 'a field is missing, or of another type or form; `errors` lists every one',
  '18': 'the reference is not one that can be used',
  '16': 'the quantity is no whole number from 1 to the limit',
  '13': 'the amount is not above 0, has too many decimals, or is too large; or the voucher has another value',
  '17': 'the expiry date is less than a day away',
  '03': 'your account lacks the permission',
  '15': 'the product is unknown, off sale or not yours',
  '61': 'the amount is outside the limits of the product',
  '94': 'this reference was used for another request',
  '14': 'there is no such voucher',
  '75': 'the PIN is locked after too many wrong ones',
  '55': 'the PIN is wrong',
  '44': 'the voucher was canceled or replaced',
  '43': 'the voucher is blocked',
  '54': 'the voucher has expired',
  '40': 'the voucher is not active yet',
  '41': 'the voucher is active already',
  '47': 'the voucher can only be redeemed by its issuer',
  '42': 'nothing is left on the voucher',
  '58': 'the redemption was updated before',
  '51': 'less than this amount is left on the voucher',
  '50': 'your own balance is too low',
  '60': 'nothing is found under this reference',
  '91': 'too much to do, or no database: try again after `Retry-After`',
};

/** A refusal as an endpoint tells it: with which HTTP status, meaning what, looking how. */
type Told = { readonly httpStatus: number; readonly code: string; readonly meaning: string; readonly example: Example };

const REQUEST_ID = { schema: { type: 'string' }, description: 'The id of the request, for support.' };

/** The OpenAPI 3.1 document of a dialect, made from the very schemas that check and write what goes in and out. */
export function describeDialect(dialect: Dialect): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const endpoint of dialect.endpoints) {
    const path = dialect.prefix + endpoint.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [endpoint.method.toLowerCase()]: describeEndpoint(dialect, endpoint) };
  }
  return {
    openapi: '3.1.0',
    info: { title: dialect.title, version: '2', description: `${dialect.description}\n${INTRODUCTION}` },
    servers: [{ url: '/', description: 'This server' }],
    tags: [
      { name: 'Vouchers', description: 'Generate, download, activate and check vouchers.' },
      { name: 'Redemptions', description: 'Redeem vouchers and update redemptions.' },
      { name: 'Transactions', description: 'Find out what happened.' },
    ],
    security: [{ basic: [] }],
    paths,
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

function tagOf({ path }: Endpoint): string {
  if (path.startsWith('/transactions')) return 'Transactions';
  return path.startsWith('/redeem') || path.startsWith('/redemptions') ? 'Redemptions' : 'Vouchers';
}

function describeEndpoint(dialect: Dialect, endpoint: Endpoint): object {
  const { operationId, summary, description, path, body, otherMediaTypes = [], examples } = endpoint;
  return {
    operationId,
    summary,
    description,
    tags: [tagOf(endpoint)],
    ...(path.includes(':reference') && {
      parameters: [
        {
          name: 'reference',
          in: 'path',
          required: true,
          description: 'The reference of the request, percent-encoded.',
          schema: { type: 'string' },
          example: 'order-10071',
        },
      ],
    }),
    ...(body && {
      requestBody: {
        required: true,
        description: `At most ${BODY_LIMIT_BYTES / 1024} KiB of JSON in UTF-8.`,
        content: Object.fromEntries(
          ['application/json', ...otherMediaTypes].map((type) => [type, { schema: body, examples: examples.request }]),
        ),
      },
    }),
    responses: describeResponses(dialect, endpoint),
  };
}

function describeResponses(dialect: Dialect, endpoint: Endpoint): object {
  const told = refusalsOf(dialect, endpoint);
  const responses: Record<string, object> = {};
  for (const httpStatus of [...new Set([200, ...told.map((each) => each.httpStatus)])].sort((a, b) => a - b)) {
    const here = told.filter((each) => each.httpStatus === httpStatus);
    const success = httpStatus === 200;
    const schemas = [
      ...(success || here.some(({ code }) => code === '58') ? [Envelope(endpoint.data)] : []),
      ...(here.length > 0 || (success && endpoint.examples.response['none']) ? [RefusalBody] : []),
    ];
    responses[httpStatus] = {
      description: [
        ...(success ? ['`00`: done'] : []),
        ...here.map(({ code, meaning }) => `\`${code}\`: ${meaning}`),
      ].join('\n\n'),
      headers: headersOf(httpStatus, endpoint),
      content: {
        'application/json': {
          schema: schemas.length === 1 ? schemas[0] : { anyOf: schemas },
          examples: {
            ...(success && endpoint.examples.response),
            ...Object.fromEntries(here.map(({ code, example }) => [`refused${code}`, example])),
          },
        },
      },
    };
  }
  return responses;
}

function headersOf(httpStatus: number, endpoint: Endpoint): object {
  const replay = {
    schema: { type: 'string', enum: ['true'] },
    description: 'There when an earlier copy of the request had the effect.',
  };
  return {
    'X-Request-Id': REQUEST_ID,
    ...(httpStatus === 200 && endpoint.refusals.includes('94') && { 'Idempotent-Replayed': replay }),
    ...(httpStatus === 401 && { 'WWW-Authenticate': { schema: { type: 'string', enum: ['Basic'] } } }),
    ...((httpStatus === 429 || httpStatus === 503) && {
      'Retry-After': { schema: { type: 'integer', minimum: 1 }, description: 'Seconds.' },
    }),
  };
}

/** Every refusal that an endpoint can tell, by code. */
function refusalsOf(dialect: Dialect, endpoint: Endpoint): Told[] {
  const { body, refusals, examples, notFound } = endpoint;
  const codes = (Object.keys(REFUSALS) as RefusalCode[])
    .filter((code) => ['01', '97', '04', '91'].includes(code) || (body && code === '30') || refusals.includes(code))
    .sort();
  const own = codes.map((code) => {
    const message = code === '60' && notFound !== undefined ? notFound : REFUSALS[code];
    const value = JSON.parse(
      refusalText(code, message, code === '30' ? [missingField(endpoint)] : valueErrors(code, fieldsOf(endpoint))),
    );
    const example = examples.refusals?.[code] ?? { summary: message, value };
    return { httpStatus: dialect.statuses[code], code, meaning: MEANINGS[code], example };
  });
  return [...(body ? TRANSPORT : []), ...own, FAULT];
}

function missingField({ body }: Endpoint) {
  const { required = [] } = body as { required?: string[] };
  return { field: required[0] ?? 'body', rule: 'required', message: 'is required' };
}

const told = (
  httpStatus: number,
  code: string,
  message: string,
  meaning: string,
  summary: string,
  errors?: readonly FieldError[],
): Told => ({
  httpStatus,
  code,
  meaning,
  example: { summary, value: JSON.parse(refusalText(code, message, errors)) },
});

/** What a request with a body can break before it is even read; the same everywhere. */
const TRANSPORT: readonly Told[] = [
  told(400, '30', REFUSALS['30'], 'the body is not JSON', 'No JSON', NO_JSON),
  told(413, '98', REFUSALS['98'], `the body is larger than ${BODY_LIMIT_BYTES / 1024} KiB`, 'Too large'),
  told(415, '98', REFUSALS['98'], 'the media type is not taken', 'Wrong media type'),
];

const FAULT = told(500, '96', 'Internal error', 'a fault of the service, which its operator sees', 'Internal error');
