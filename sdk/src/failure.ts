import { InvalidArgument, Unsupported } from './check.ts';
import { type CodeName, isStatusCode, nameOf, wordsOf } from './codes.ts';
import { type Operation, ScripError, type ScripErrorDetails } from './errors.ts';
import { BrokenOff, Malformed } from './read.ts';
import type { Redact } from './redact.ts';

/** Which call an error tells of. */
export type About = {
  readonly operation: Operation;
  readonly reference?: string | undefined;
  readonly language: string | undefined;
  readonly redact: Redact;
};

/** What one attempt failed with. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly error: ScripError;
  /** Whether the attempt may have had its effect all the same. */
  readonly happened: 'no' | 'perhaps';
  /** Whether another attempt is worth making. */
  readonly again: boolean;

  constructor(error: ScripError, happened: 'no' | 'perhaps', again: boolean) {
    super(error.message);
    this.error = error;
    this.happened = happened;
    this.again = again;
  }
}

type Told = Omit<ScripErrorDetails, 'operation' | 'reference' | 'language' | 'code' | 'message'>;

/** An error that the client itself tells. */
export function ownError(
  about: About,
  code: Parameters<typeof wordsOf>[0] & CodeName,
  detail: string | undefined,
  told: Told,
): ScripError {
  const { operation, reference, language } = about;
  const message = `${operation}: ${wordsOf(code)}${detail === undefined ? '' : `: ${detail}`}`;
  return new ScripError({ operation, reference, language, code, message, ...told });
}

/** A refusal of the service, or of the client in its place. */
export function refusalError(
  about: About,
  statusCode: string,
  detail: string | undefined,
  told: Omit<Told, 'isRetryable' | 'statusCode'>,
): ScripError {
  const { operation, reference, language } = about;
  const words = isStatusCode(statusCode) ? wordsOf(statusCode) : wordsOf('unknownStatus');
  return new ScripError({
    operation,
    reference,
    language,
    code: nameOf(statusCode),
    statusCode,
    // The service says the same words, unless it has more to say.
    message: `${operation}: ${words} (${statusCode})${detail === undefined || detail === words ? '' : `: ${detail}`}`,
    isRetryable: statusCode === '91' || statusCode === '96' || statusCode === '97',
    ...told,
  });
}

/** Turns what a check threw into an error of the call; anything else is a bug and stays what it is. */
export function argumentError(about: About, thrown: unknown): unknown {
  if (thrown instanceof Unsupported) {
    return ownError(about, 'unsupportedByVariant', thrown.message, { isRetryable: false });
  }
  if (!(thrown instanceof InvalidArgument)) return thrown;
  const { statusCode, field, rule, message } = thrown.invalid;
  return refusalError(about, statusCode, thrown.message, { fieldErrors: [{ field, rule, message }] });
}

/** Failures of a connection that never came about: nothing was sent. */
const NEVER_CONNECTED: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/**
 * What is told of an error of fetch: its code. Neither the error itself nor its text is handed on, since either may hold
 * the request.
 */
function networkCodeOf(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; depth < 3 && typeof error === 'object' && error !== null; depth++) {
    const { code, cause } = error as { readonly code?: unknown; readonly cause?: unknown };
    if (typeof code === 'string' && /^[A-Z][A-Z_]{2,40}$/.test(code)) return code;
    error = cause;
  }
  return undefined;
}

/** The failure behind what an attempt threw while it asked or read. */
export function failureOf(about: About, thrown: unknown): Failure {
  if (thrown instanceof Failure) return thrown;
  if (thrown instanceof BrokenOff) {
    return new Failure(ownError(about, 'networkFailure', thrown.message, { isRetryable: true }), 'perhaps', true);
  }
  if (thrown instanceof Malformed) {
    return new Failure(ownError(about, 'invalidResponse', thrown.message, { isRetryable: false }), 'perhaps', false);
  }
  const code = networkCodeOf(thrown);
  const happened = code !== undefined && NEVER_CONNECTED.has(code) ? 'no' : 'perhaps';
  return new Failure(ownError(about, 'networkFailure', code, { isRetryable: true }), happened, true);
}
