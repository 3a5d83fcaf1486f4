import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isUnavailable } from '../db/errors.ts';
import { type FieldError, Refusal, type RefusalCode } from '../refusal.ts';

/** The greatest body that is read. The greatest valid request is far below a kilobyte. */
export const BODY_LIMIT_BYTES = 64 * 1024;

/** A request that is not valid at transport level: its HTTP status is the same in every dialect. */
export class TransportRefusal extends Refusal {
  readonly httpStatus: number;
  /** The methods that the path knows, for a wrong one (405). */
  readonly allow: string | undefined;

  constructor(
    code: RefusalCode,
    httpStatus: number,
    details: { readonly allow?: string; readonly errors?: readonly FieldError[] } = {},
  ) {
    super(code, details);
    this.httpStatus = httpStatus;
    this.allow = details.allow;
  }
}

/**
 * Judges the head of a request that has a body, before anything of the body is read.
 * @param mediaTypes that the endpoint takes, in lower case
 * @returns a refusal `98` (415 or 413), or undefined
 */
export function judgeHead(headers: IncomingHttpHeaders, mediaTypes: readonly string[]): TransportRefusal | undefined {
  const { 'content-type': type, 'content-length': length, 'content-encoding': encoding } = headers;
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') return new TransportRefusal('98', 415);
  if (type === undefined) {
    // Without a body there is nothing to name the type of: it is told later that there is no JSON in it.
    const isEmpty = headers['transfer-encoding'] === undefined && (length === undefined || length === '0');
    if (!isEmpty) return new TransportRefusal('98', 415);
  } else if (type !== 'application/json' && !isAccepted(type, mediaTypes)) return new TransportRefusal('98', 415);
  return Number(length) > BODY_LIMIT_BYTES ? new TransportRefusal('98', 413) : undefined;
}

/** Whether a media type is one of the list; of its parameters only a charset matters, which must be UTF-8. */
function isAccepted(type: string, mediaTypes: readonly string[]): boolean {
  const [name = '', ...parameters] = type.toLowerCase().split(';');
  if (!mediaTypes.includes(name.trim())) return false;
  return parameters.every((parameter) => {
    const [key = '', value = ''] = parameter.split('=');
    return key.trim() !== 'charset' || /^"?utf-?8"?$/.test(value.trim());
  });
}

/** The path of a request target, without origin and query. */
function pathOf(url: string): string {
  return url.replace(/^[a-z]+:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');
}

/**
 * Tells what is wrong with a request that no route matches: the path (404), or only the method (405).
 * @param routes every route of the server, with `:name` for a parameter
 */
export function judgeRoute(
  url: string,
  routes: readonly { readonly method: string; readonly url: string }[],
): TransportRefusal {
  const parts = pathOf(url).split('/');
  const methods = routes
    .filter((route) => {
      const wanted = route.url.split('/');
      return (
        wanted.length === parts.length &&
        wanted.every((part, at) => part === parts[at] || (part[0] === ':' && parts[at]))
      );
    })
    .map(({ method }) => method);
  return methods.length > 0
    ? new TransportRefusal('98', 405, { allow: methods.join(', ') })
    : new TransportRefusal('98', 404);
}

/** What is thrown away of a body that nobody wants, before its client is answered all the same. */
const DRAIN_LIMIT_BYTES = 1024 * 1024;
/** A client that sends nothing for so long is waiting for its answer. */
const DRAIN_IDLE_MS = 200;

/** Throws the rest of a body away, and calls back at its end, or when it is too long or does not come. */
export function drain(request: IncomingMessage, done: () => void): void {
  let left = DRAIN_LIMIT_BYTES;
  const timer = setTimeout(finish, DRAIN_IDLE_MS);
  function onData(chunk: Buffer) {
    left -= chunk.length;
    if (left < 0) finish();
    else timer.refresh();
  }
  function finish() {
    clearTimeout(timer);
    request.off('data', onData).off('end', finish).off('close', finish);
    done();
  }
  request.on('data', onData).once('end', finish).once('close', finish).resume();
}

/** What is told of a body that cannot be read. */
export const NO_JSON: readonly FieldError[] = [{ field: 'body', rule: 'json', message: 'must be JSON in UTF-8' }];

/** What Fastify itself refuses, by its error codes. */
const FRAMEWORK: Readonly<Record<string, () => TransportRefusal>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: () => new TransportRefusal('98', 413),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: () => new TransportRefusal('98', 415),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: () => new TransportRefusal('30', 400, { errors: NO_JSON }),
  FST_ERR_BAD_URL: () => new TransportRefusal('98', 404),
  FST_ERR_MAX_PARAM_LENGTH: () => new TransportRefusal('98', 404),
};

/** Seconds after which a client may try again when there is no database, or too much to do. */
const RETRY_AFTER_SECONDS = 1;

/**
 * The refusal behind anything that was thrown while a request was served, or undefined for a bug.
 * @param connected whether the request did not break off: a client that went away is no fault of the service
 */
export function toRefusal(error: unknown, connected: boolean): Refusal | undefined {
  if (error instanceof Refusal) return error;
  const code = (error as { code?: unknown } | undefined)?.code;
  const known = typeof code === 'string' && Object.hasOwn(FRAMEWORK, code) ? FRAMEWORK[code] : undefined;
  if (known) return known();
  if (!connected) return new TransportRefusal('30', 400);
  return isUnavailable(error) ? new Refusal('91', { retryAfterSeconds: RETRY_AFTER_SECONDS }) : undefined;
}
