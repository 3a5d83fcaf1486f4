import { messageOf } from './codes.ts';
import { describe, expectThat } from './expect.ts';
import type { Loose, Seen, Variant } from './probe.ts';
import type { Rule } from './rule.ts';

/** Rules for every response. They check all responses that the other rules received, so they run last. */

const TRANSPORT_STATUSES: Readonly<Record<string, number>> = { '01': 401, '97': 429, '91': 503, '96': 500 };
const STATUSES_A: Readonly<Record<string, number>> = { '00': 200, '03': 403, '04': 403, '60': 404 };

/** The HTTP status that a response must have; responses with code 98 have rules of their own. */
function statusOf(variant: Variant, { statusCode = '', wanted }: Seen): number | undefined {
  // A response that is not of the interface breaks the rule of the envelope instead.
  if (statusCode === '98' || statusCode === '') return undefined;
  const everywhere = TRANSPORT_STATUSES[statusCode];
  if (everywhere !== undefined) return everywhere;
  if (wanted.isUnparsable) return 400;
  return variant === 'b' ? 200 : (STATUSES_A[statusCode] ?? 400);
}

const NOT_FOUND = [
  'Vouchers not found',
  'Transaction not found',
  'Redemption update not found',
  'Redemption not found',
];

function isMessage(code: string, message: string): boolean {
  if (code === '00') return message === 'Success';
  if (code === '60') return NOT_FOUND.includes(message);
  return messageOf(code) === message;
}

/** Every text in a response, with the name of its field. */
function* textsOf(value: Loose, field = ''): Generator<{ field: string; text: string }> {
  if (typeof value === 'string') yield { field, text: value };
  else if (typeof value === 'object' && value !== null) {
    for (const [name, each] of Object.entries(value))
      yield* textsOf(each, Array.isArray(value) ? field : name);
  }
}

/**
 * The part of a response that must not hold a full code: all but the vouchers of a batch and an echoed code.
 */
function maskedPart(variant: Variant, { wanted, body }: Seen): Loose {
  if (typeof body !== 'object' || body === null || typeof body.data !== 'object' || body.data === null)
    return body;
  if (/^\/vouchers(\/|$)/.test(wanted.path)) return { ...body, data: { ...body.data, vouchers: undefined } };
  const mayRepeat = wanted.path === '/balance' || (variant === 'b' && wanted.path === '/redeem');
  return mayRepeat ? { ...body, data: { ...body.data, voucherCode: undefined } } : body;
}

/** Rules for the form of every response. */
const EVERY: readonly (Omit<Rule, 'run' | 'variants'> & {
  holds(seen: Seen, variant: Variant, codes: ReadonlySet<string>): boolean;
  expected: string;
})[] = [
  {
    id: 'envelope',
    title: 'Every response is a JSON object with statusCode, message and data',
    expected: 'a JSON object with statusCode of two digits, message and data (object, list or null)',
    holds: ({ body, headers }) =>
      /^application\/json\b/.test(headers.get('content-type') ?? '') &&
      /^\d\d$/.test(body?.statusCode) &&
      typeof body.message === 'string' &&
      body.message !== '' &&
      typeof body.data === 'object',
  },
  {
    id: 'request-id',
    title: 'Every response has the header X-Request-Id',
    expected: 'the header X-Request-Id',
    holds: ({ headers }) => (headers.get('x-request-id') ?? '') !== '',
  },
  {
    id: 'http-status',
    title:
      'Every response has the HTTP status of its code; in B that is 200 for requests valid at transport level',
    expected: 'the HTTP status of the code',
    holds: (seen, variant) => [undefined, seen.status].includes(statusOf(variant, seen)),
  },
  {
    id: 'codes',
    title: 'Every statusCode is one of the interface and has its message',
    expected: 'a code of the interface with its message',
    holds: ({ statusCode = '', message = '' }) => statusCode === '' || isMessage(statusCode, message),
  },
  {
    id: 'no-faults',
    title: 'No request causes a fault of the service',
    expected: 'no HTTP 5xx and no code 96',
    holds: ({ status, statusCode }) => status < 500 && statusCode !== '96',
  },
  {
    id: 'refusals-without-data',
    title: 'A refusal has data null; only 58 returns the first update',
    expected: 'data null',
    holds: ({ statusCode, data }) => [undefined, '00', '58'].includes(statusCode) || data === null,
  },
  {
    id: 'replay-header',
    title: 'Replays, and only replays, have the header Idempotent-Replayed: true',
    expected: 'Idempotent-Replayed on replays only',
    holds: ({ wanted, statusCode, replayed }) =>
      statusCode === '00' && wanted.isReplay !== undefined
        ? replayed === wanted.isReplay
        : statusCode === '00' || !replayed,
  },
  {
    id: 'masking',
    title: 'Codes are masked, except in batches and where one is echoed; PINs are in batches only',
    expected: 'codes as 1234****5678, and no PIN',
    holds(seen, variant, codes) {
      const { pin } = (seen.wanted.body ?? {}) as { readonly pin?: unknown };
      return [...textsOf(maskedPart(variant, seen))].every(
        ({ field, text }) =>
          (field !== 'voucherCode' || /^\d{4}\*{4}\d{4}$/.test(text)) &&
          text !== pin &&
          ![...text.matchAll(/\d{12,}/g)].some(([digits]) => codes.has(digits.slice(0, 12))),
      );
    },
  },
];

export const GENERAL: readonly Rule[] = EVERY.map(({ holds, expected, ...rule }) => ({
  ...rule,
  variants: 'ab',
  async run({ probe, variant, shared }) {
    const broken = probe.all.filter((seen) => !holds(seen, variant, shared.codes));
    const [first] = broken;
    expectThat(
      first === undefined,
      expected,
      () =>
        `${describe(first as Seen)}${broken.length > 1 ? `, and ${broken.length - 1} more responses like it` : ''}`,
    );
  },
}));
