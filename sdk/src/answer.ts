import { type About, Failure, ownError, refusalError } from './failure.ts';
import { readUpdate } from './read.ts';
import type { RedemptionUpdate } from './types.ts';
import type { WireFieldError } from './wire.ts';

/** What a call that succeeded was answered with. */
export type Answer = { readonly data: unknown; readonly replayed: boolean; readonly requestId: string | null };

/** What is read of an answer's head. */
export type AnswerHead = {
  readonly status: number;
  readonly replayed: boolean;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;
};

const LONGEST_FIELD_ERRORS = 50;

/** Status codes for answers that have none of their own, which the interface leaves open for some failures. */
const BY_HTTP_STATUS: Readonly<Record<number, string>> = { 400: '30', 401: '01', 403: '03', 404: '60' };

export function readHead({ status, headers }: Response, about: About): AnswerHead {
  const requestId = headers.get('x-request-id');
  return {
    status,
    replayed: headers.get('idempotent-replayed') === 'true',
    requestId: requestId !== null && /^[\x21-\x7e]{1,128}$/.test(requestId) ? about.redact.id(requestId) : undefined,
    retryAfterMs: parseRetryAfter(headers.get('retry-after')),
  };
}

/** Seconds, or a date, as HTTP has it. */
function parseRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Parses a body, without the words of the parser, which quotes it. */
export function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Judges an answer by its body.
 * @param body as parsed; undefined where it was no JSON
 * @returns it, if it tells a success
 * @throws Failure
 */
export function judge(about: About, head: AnswerHead, body: unknown): Answer {
  const { status, replayed, requestId = null } = head;
  const { statusCode, data = null } = (body ?? {}) as { readonly statusCode?: unknown; readonly data?: unknown };
  const isOk = status >= 200 && status < 300;
  if (statusCode === '00' && isOk) return { data, replayed, requestId };
  const code = typeof statusCode === 'string' && /^\d\d$/.test(statusCode) ? statusCode : codeOf(status, body);
  if (code === undefined || code === '00') throw noneOfTheInterface(about, head);
  throw refused(about, head, code, body as Readonly<Record<string, unknown>>);
}

function codeOf(status: number, body: unknown): string | undefined {
  const { message } = (body ?? {}) as { readonly message?: unknown };
  return typeof message === 'string' ? BY_HTTP_STATUS[status] : undefined;
}

/** Somebody else answered, such as a proxy: only its HTTP status says something. */
function noneOfTheInterface(about: About, { status, requestId, retryAfterMs }: AnswerHead): Failure {
  const isBusy = status === 429;
  const isFault = status >= 500 || status === 408 || (status >= 200 && status < 300);
  const isRedirect = status === 0 || (status >= 300 && status < 400);
  const detail = isRedirect ? `HTTP ${status}, a redirect, which is not followed` : `HTTP ${status}`;
  const again = isBusy || isFault;
  const told = { httpStatus: status, requestId, retryAfterMs, isRetryable: again };
  return new Failure(ownError(about, 'invalidResponse', detail, told), isFault ? 'perhaps' : 'no', again);
}

function refused(about: About, head: AnswerHead, code: string, body: Readonly<Record<string, unknown>>): Failure {
  const { status, requestId, retryAfterMs } = head;
  const isUncertain = status >= 500 || code === '91' || code === '96';
  const again = isUncertain || status === 429 || code === '97';
  const { message, data, errors } = body;
  const error = refusalError(about, code, typeof message === 'string' ? about.redact.words(message) : undefined, {
    httpStatus: status,
    requestId,
    retryAfterMs,
    fieldErrors: readFieldErrors(about, errors),
    update: code === '58' ? readFirstUpdate(data) : undefined,
  });
  return new Failure(error, isUncertain ? 'perhaps' : 'no', again);
}

/** What the first update came to, where the answer has it: its absence changes nothing about the refusal. */
function readFirstUpdate(data: unknown): RedemptionUpdate | undefined {
  try {
    return readUpdate(data);
  } catch {
    return undefined;
  }
}

function readFieldErrors({ redact }: About, errors: unknown): WireFieldError[] {
  if (!Array.isArray(errors)) return [];
  return errors.slice(0, LONGEST_FIELD_ERRORS).map((each: unknown) => {
    const { field, rule, message } = (each ?? {}) as Readonly<Record<string, unknown>>;
    return {
      field: redact.words(String(field)),
      rule: redact.words(String(rule)),
      message: redact.words(String(message)),
    };
  });
}

/** Tells an answer that arrived whole, and is not what was asked for. */
export function mismatch(about: About, detail: string, requestId?: string | null): Failure {
  const told = { requestId: requestId ?? undefined, isRetryable: true };
  return new Failure(ownError(about, 'invalidResponse', detail, told), 'perhaps', true);
}
