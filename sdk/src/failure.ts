import { InvalidArgument, Unsupported } from './check.ts';
import { type ClientCode, nameOf, textOf } from './codes.ts';
import { Ended } from './deadline.ts';
import { type Operation, ScripError, type ScripErrorDetails } from './errors.ts';
import { BrokenOff, Malformed } from './read.ts';

/** How errors of a call come about. */

/** The call that an error is about. */
export type About = {
  readonly operation: Operation;
  readonly reference?: string | undefined;
  readonly language: string | undefined;
  /** Codes and secrets of the call, which no error may hold. */
  readonly confidential: readonly string[];
};

/** Why one attempt failed. */
export class Failure extends Error {
  readonly error: ScripError;
  /** Whether the attempt may have had its effect all the same. */
  readonly mayHaveHappened: boolean;
  /** Whether another attempt is worthwhile. */
  readonly again: boolean;

  constructor(error: ScripError, { mayHaveHappened, again }: { mayHaveHappened: boolean; again: boolean }) {
    super(error.message);
    this.error = error;
    this.mayHaveHappened = mayHaveHappened;
    this.again = again;
  }
}

type Details = Partial<Omit<ScripErrorDetails, 'operation' | 'reference' | 'language' | 'code' | 'message'>>;

/** An error that the client found itself. */
export function clientError(
  about: About,
  code: ClientCode,
  detail?: string,
  details: Details = {},
): ScripError {
  const { operation, reference, language } = about;
  const message = `${operation}: ${textOf(code)}${detail === undefined ? '' : `: ${detail}`}`;
  return new ScripError({ operation, reference, language, code, message, isRetryable: true, ...details });
}

/** A refusal by the service, or by the client in its place. */
export function refusalError(
  about: About,
  statusCode: string,
  detail: string | undefined,
  details: Details,
): ScripError {
  const { operation, reference, language } = about;
  const text = textOf(statusCode);
  return new ScripError({
    operation,
    reference,
    language,
    code: nameOf(statusCode),
    statusCode,
    // The service sends the same text, unless it knows more.
    message: `${operation}: ${text} (${statusCode})${detail === undefined || detail === text ? '' : `: ${detail}`}`,
    isRetryable: statusCode === '91' || statusCode === '96' || statusCode === '97',
    ...details,
  });
}

/** The error for an argument that was refused; any other error is a bug and stays what it is. */
export function argumentError(about: About, thrown: unknown): unknown {
  if (thrown instanceof Unsupported)
    return clientError(about, 'unsupportedByVariant', thrown.message, { isRetryable: false });
  if (!(thrown instanceof InvalidArgument)) return thrown;
  const { statusCode, field, rule, problem } = thrown;
  return refusalError(about, statusCode, thrown.message, {
    fieldErrors: [{ field, rule, message: problem }],
  });
}

/** Codes of connections that were never made: nothing was sent. */
const NOT_CONNECTED: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/**
 * The code of an error of fetch. Neither the error nor its text is passed on: either may contain the request.
 */
function networkCodeOf(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; depth < 3 && typeof error === 'object' && error !== null; depth++) {
    const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
    if (typeof code === 'string' && /^[A-Z][A-Z_]{2,40}$/.test(code)) return code;
    error = cause;
  }
  return undefined;
}

/**
 * The failure behind an error of an attempt.
 * @param wasSent whether the request may have left
 */
export function failureOf(about: About, thrown: unknown, wasSent = true, signal?: AbortSignal): Failure {
  if (thrown instanceof Failure) return thrown;
  if (thrown instanceof Ended && thrown.why === 'aborted') {
    const error = clientError(about, 'aborted', undefined, { cause: signal?.reason });
    return new Failure(error, { mayHaveHappened: wasSent, again: false });
  }
  if (thrown instanceof Ended)
    return new Failure(clientError(about, 'timedOut'), { mayHaveHappened: wasSent, again: true });
  if (thrown instanceof Malformed && !(thrown instanceof BrokenOff)) {
    const error = clientError(about, 'invalidResponse', thrown.message, { isRetryable: false });
    return new Failure(error, { mayHaveHappened: true, again: false });
  }
  const code = thrown instanceof BrokenOff ? thrown.message : networkCodeOf(thrown);
  const mayHaveHappened = code === undefined || !NOT_CONNECTED.has(code);
  return new Failure(clientError(about, 'networkFailure', code), { mayHaveHappened, again: true });
}

/** A complete response that does not match the request. */
export function mismatch(about: About, detail: string, requestId?: string | null): Failure {
  const error = clientError(about, 'invalidResponse', detail, { requestId: requestId ?? undefined });
  return new Failure(error, { mayHaveHappened: true, again: true });
}

const MASK = '****';
const TEXT_MAX = 300;

/** A text of the service for an error message: anything that could be a code or a PIN is masked. */
export function redact(about: About, text: string): string {
  return redactId(about, text)
    .replace(/\d{4,}/g, MASK)
    .slice(0, TEXT_MAX);
}

/** An id may contain digits: only confidential texts, and digits in the form of a code, are masked. */
export function redactId({ confidential }: About, text: string): string {
  // The longest first: a code of 16 digits begins with one of 12.
  const known = confidential
    .filter((value) => value.length > 4)
    .sort((one, other) => other.length - one.length);
  return known
    .reduce((clean, value) => clean.replaceAll(value, MASK), text)
    .replace(/(?<!\w)\d{12}(\d{4})?(?!\w)/g, MASK);
}
