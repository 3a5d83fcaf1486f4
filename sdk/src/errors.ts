import type { CodeName } from './codes.ts';
import type { CallOptions, RedemptionUpdate } from './types.ts';
import { userMessageOf } from './user-messages.ts';

/** A field that the service, or the client before it, found wrong. Never holds the value. */
export type FieldError = { readonly field: string; readonly rule: string; readonly message: string };

/** The calls of a client, by the names of its methods. */
export type Operation =
  | 'generate'
  | 'download'
  | 'downloadVouchers'
  | 'waitForBatch'
  | 'activate'
  | 'balance'
  | 'redeem'
  | 'updateRedemption'
  | 'reverseRedemption'
  | 'redemptionUpdate'
  | 'transaction'
  | 'transactions';

export type ScripErrorDetails = {
  readonly operation: Operation;
  readonly code: CodeName;
  readonly message: string;
  readonly isRetryable: boolean;
  readonly statusCode?: string | undefined;
  readonly httpStatus?: number | undefined;
  readonly requestId?: string | undefined;
  readonly reference?: string | undefined;
  readonly fieldErrors?: readonly FieldError[] | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly update?: RedemptionUpdate | undefined;
  readonly language?: string | undefined;
  readonly cause?: unknown;
};

/**
 * A call that did not succeed. Neither its text nor anything that can be printed of it holds a code, a PIN or a secret.
 * Decide by `code` (a name) or `statusCode`; `message` is for developers, `userMessage()` for the customer at the till.
 */
export class ScripError extends Error {
  readonly operation: Operation;
  /** The name of what went wrong, such as `insufficientBalance`. */
  readonly code: CodeName;
  /** The interface's status code, such as `51`; null where the client itself tells of a failure. */
  readonly statusCode: string | null;
  /** Null where nothing was answered. */
  readonly httpStatus: number | null;
  /** Whether the same call, with the same reference, may succeed later. */
  readonly isRetryable: boolean;
  /** The service's id of the request, for its operator. */
  readonly requestId: string | null;
  /** The reference of the call, given or made. */
  readonly reference: string | null;
  readonly fieldErrors: readonly FieldError[];
  /** How long the service asked to wait before the next try. */
  readonly retryAfterMs: number | null;
  /** With `redemptionAlreadyUpdated`: what the first update came to. */
  readonly update: RedemptionUpdate | null;
  readonly #language: string | undefined;

  constructor(details: ScripErrorDetails) {
    super(details.message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'ScripError';
    this.operation = details.operation;
    this.code = details.code;
    this.statusCode = details.statusCode ?? null;
    this.httpStatus = details.httpStatus ?? null;
    this.isRetryable = details.isRetryable;
    this.requestId = details.requestId ?? null;
    this.reference = details.reference ?? null;
    this.fieldErrors = details.fieldErrors ?? [];
    this.retryAfterMs = details.retryAfterMs ?? null;
    this.update = details.update ?? null;
    this.#language = details.language;
  }

  /**
   * What to tell the customer at the till.
   * @param language a tag such as `fr` or `pt-BR`; the client's language, else English, where it is left out or unknown
   */
  userMessage(language?: string | null): string {
    return userMessageOf(this.code, language, this.#language);
  }

  /** For logs: everything that is known, nothing that is secret. */
  toJSON(): Record<string, unknown> {
    const { name, operation, code, statusCode, httpStatus, message, isRetryable, requestId, reference } = this;
    const { fieldErrors, retryAfterMs, update } = this;
    return {
      name,
      operation,
      code,
      statusCode,
      httpStatus,
      message,
      isRetryable,
      requestId,
      reference,
      fieldErrors,
      retryAfterMs,
      update,
    };
  }
}

/** How an unknown outcome is found out; the request that it takes stays inside. */
export type Settling<T> = {
  resolve(options: CallOptions): Promise<T>;
  lookup(options: CallOptions): Promise<T | null>;
};

/**
 * The request was sent, and no answer says what became of it: it had its effect once, or not at all. Do not ask the
 * customer to pay again before it is found out. After a restart, the same call with the same `reference` finds it out.
 */
export class UnknownOutcomeError<T = unknown> extends ScripError {
  override readonly reference: string;
  readonly #settling: Settling<T>;

  constructor(details: ScripErrorDetails & { readonly reference: string }, settling: Settling<T>) {
    super(details);
    this.name = 'UnknownOutcomeError';
    this.reference = details.reference;
    this.#settling = settling;
  }

  /**
   * Settles it by sending the same request again under the same reference: what happened already is told and nothing
   * happens twice; what did not happen happens now.
   * @returns what the call would have returned
   * @throws ScripError a refusal, which says that the request had no effect; UnknownOutcomeError as long as nobody answers
   */
  resolve(options: CallOptions = {}): Promise<T> {
    return this.#settling.resolve(options);
  }

  /**
   * Only looks, and changes nothing.
   * @returns what happened, or null where nothing is known under the reference so far; a request that is still on its way
   *   can yet arrive
   */
  lookup(options: CallOptions = {}): Promise<T | null> {
    return this.#settling.lookup(options);
  }
}
