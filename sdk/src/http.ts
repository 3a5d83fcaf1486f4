import { Deadline } from './deadline.ts';
import type { FieldError } from './errors.ts';
import { type About, clientError, Failure, failureOf, redact, redactId, refusalError } from './failure.ts';
import { readUpdate } from './read.ts';
import type { RedemptionUpdate } from './types.ts';

/** One attempt of a call: the request, the response, and what the response means. */

/** Where requests go, and with which credentials. */
export type Connection = {
  /** With the prefix of the variant. */
  readonly url: string;
  readonly authorization: string;
  readonly fetch: typeof globalThis.fetch;
  /** What a response means. @throws Failure unless it is a success */
  judge(about: About, head: AnswerHead, body: unknown): Answer;
};

export type Request = {
  readonly method: 'GET' | 'POST';
  /** Below the prefix. */
  readonly path: string;
  readonly body?: object | undefined;
  /**
   * Whether a second copy gets another response than the first, so that no runtime may send one by itself.
   */
  readonly isAnsweredOnce?: boolean;
};

export const get = (path: string, reference?: string): Request => ({
  method: 'GET',
  path: reference === undefined ? path : `${path}/${encodeURIComponent(reference)}`,
});
export const post = (path: string, body: object): Request => ({ method: 'POST', path, body });

/** The response to a call that succeeded. */
export type Answer = {
  readonly data: unknown;
  readonly replayed: boolean;
  readonly requestId: string | null;
};

/** The head of a response. */
export type AnswerHead = {
  readonly status: number;
  readonly replayed: boolean;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number | undefined;
};

/**
 * Some runtimes (Deno) send a request again by themselves when a connection breaks, if its body is a text.
 */
function bodyOf({ body, isAnsweredOnce }: Request): string | Blob {
  const text = JSON.stringify(body);
  return isAnsweredOnce ? new Blob([text]) : text;
}

/**
 * Sends a request and reads the response.
 * @param take reads the response, within the time of the attempt
 * @throws Failure
 */
export async function send<T>(
  { url, authorization, fetch }: Connection,
  about: About,
  request: Request,
  { deadline, timeoutMs, signal }: { deadline: Deadline; timeoutMs: number; signal: AbortSignal | undefined },
  take: (response: Response, head: AnswerHead) => Promise<T>,
): Promise<T> {
  const { method, path, body } = request;
  const json = body !== undefined && { 'content-type': 'application/json' };
  let wasSent = false;
  try {
    return await deadline.run(timeoutMs, async () => {
      wasSent = true;
      const response = await fetch(url + path, {
        method,
        headers: { authorization, accept: 'application/json', ...json },
        ...(body !== undefined && { body: bodyOf(request) }),
        // Codes and PINs go to the given address only.
        redirect: 'manual',
        signal: deadline.signal,
      });
      return await take(response, readHead(response, about));
    });
  } catch (error) {
    throw failureOf(about, error, wasSent, signal);
  }
}

/**
 * One attempt at a call whose response fits into memory.
 * @throws Failure
 */
export async function attempt(
  connection: Connection,
  about: About,
  request: Request,
  { signal, timeoutMs }: { signal: AbortSignal | undefined; timeoutMs: number },
): Promise<Answer> {
  const deadline = new Deadline(signal);
  try {
    return await send(connection, about, request, { deadline, timeoutMs, signal }, async (response, head) =>
      connection.judge(about, head, parseBody(await response.text())),
    );
  } finally {
    deadline.close();
  }
}

function readHead({ status, headers }: Response, about: About): AnswerHead {
  const requestId = headers.get('x-request-id');
  return {
    status,
    replayed: headers.get('idempotent-replayed') === 'true',
    requestId:
      requestId !== null && /^[\x21-\x7e]{1,128}$/.test(requestId) ? redactId(about, requestId) : undefined,
    retryAfterMs: parseRetryAfter(headers.get('retry-after')),
  };
}

/** Seconds, or a date. */
function parseRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = Date.parse(value);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

/** Parses a body; undefined where it is not JSON. The parser's error would quote it. */
export function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Status codes for responses without one, which the interface allows for some failures. */
const BY_HTTP_STATUS: Readonly<Record<number, string>> = { 400: '30', 401: '01', 403: '03', 404: '60' };

/**
 * Judges a response by its body.
 * @throws Failure unless it is a success
 */
export function judge(about: About, head: AnswerHead, body: unknown): Answer {
  const { status, replayed, requestId = null } = head;
  const { statusCode, message, data = null } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (statusCode === '00' && status >= 200 && status < 300) return { data, replayed, requestId };
  const fallback = typeof message === 'string' ? BY_HTTP_STATUS[status] : undefined;
  const code = typeof statusCode === 'string' && /^\d\d$/.test(statusCode) ? statusCode : fallback;
  if (code === undefined || code === '00') throw foreign(about, head);
  throw refused(about, head, code, body as Readonly<Record<string, unknown>>);
}

/** A response of another server, such as a proxy: only its HTTP status has a meaning. */
export function foreign(about: About, { status, requestId, retryAfterMs }: AnswerHead): Failure {
  const isFault = status >= 500 || status === 408 || (status >= 200 && status < 300);
  const isRedirect = status === 0 || (status >= 300 && status < 400);
  const detail = isRedirect ? `HTTP ${status}, a redirect, which is not followed` : `HTTP ${status}`;
  const again = isFault || status === 429;
  const details = { httpStatus: status, requestId, retryAfterMs, isRetryable: again };
  return new Failure(clientError(about, 'invalidResponse', detail, details), {
    mayHaveHappened: isFault,
    again,
  });
}

/** A refusal, by its status code and what else the body says. */
export function refused(
  about: About,
  head: AnswerHead,
  code: string,
  body: Readonly<Record<string, unknown>>,
): Failure {
  const { status, requestId, retryAfterMs } = head;
  const mayHaveHappened = status >= 500 || code === '91' || code === '96';
  const { message, data, errors } = body;
  const error = refusalError(about, code, typeof message === 'string' ? redact(about, message) : undefined, {
    httpStatus: status,
    requestId,
    retryAfterMs,
    fieldErrors: readFieldErrors(about, errors),
    update: code === '58' ? readFirstUpdate(data) : undefined,
  });
  return new Failure(error, { mayHaveHappened, again: mayHaveHappened || status === 429 || code === '97' });
}

/** The result of the first update, which the response may leave out. */
function readFirstUpdate(data: unknown): RedemptionUpdate | undefined {
  try {
    return readUpdate(data);
  } catch {
    return undefined;
  }
}

const FIELD_ERRORS_MAX = 50;

function readFieldErrors(about: About, errors: unknown): FieldError[] {
  if (!Array.isArray(errors)) return [];
  return errors.slice(0, FIELD_ERRORS_MAX).map((each: unknown) => {
    const { field, rule, message } = (each ?? {}) as Readonly<Record<string, unknown>>;
    const clean = (text: unknown) => redact(about, String(text));
    return { field: clean(field), rule: clean(rule), message: clean(message) };
  });
}
