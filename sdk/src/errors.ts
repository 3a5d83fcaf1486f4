import type { CodeName } from './codes.ts';
import { messageFor } from './messages.ts';
import type { CallOptions, RedemptionUpdate } from './types.ts';

/** A field that the service, or the client before it, refused. It never holds the value. */
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
  | 'undo'
  | 'recover'
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

/** Fields that a customer at the till types. */
const TYPED = new Set(['code', 'voucherCode', 'pin']);

/**
 * A call that did not succeed. Neither its text nor anything that can be printed of it contains a code, a
 * PIN or a secret.
 * Decide by `code` (a name) or `statusCode`; `message` is for developers, `userMessage()` for the
 * customer at the till.
 */
export class ScripError extends Error {
  readonly operation: Operation;
  /** The name of the error, such as `insufficientBalance`. */
  readonly code: CodeName;
  /** The status code of the interface, such as `51`; null where the client itself found the error. */
  readonly statusCode: string | null;
  /** Null where there was no response. */
  readonly httpStatus: number | null;
  /** Whether the same call, with the same reference, may succeed later. */
  readonly isRetryable: boolean;
  /** The service's id of the request, for its operator. */
  readonly requestId: string | null;
  /** The reference of the call, given or generated. */
  readonly reference: string | null;
  readonly fieldErrors: readonly FieldError[];
  /** How long the service asked to wait before the next attempt. */
  readonly retryAfterMs: number | null;
  /** With `redemptionAlreadyUpdated`: the result of the first update. */
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
   * The message for the customer at the till.
   * @param language a tag such as `fr` or `pt-BR`; without a known one, that of the client, else English
   */
  userMessage(language?: string | null): string {
    // The code may be mistyped.
    const isMistyped =
      this.code === 'invalidRequest' && this.fieldErrors.some(({ field }) => TYPED.has(field));
    return messageFor(isMistyped ? 'invalidVoucher' : this.code, language, this.#language);
  }

  /** For logs: all that is known, without secrets. */
  toJSON(): Record<string, unknown> {
    return { ...(this as object), message: this.message };
  }
}

/** How to find an unknown outcome out. */
export type Settling<T> = {
  resolve(options: CallOptions): Promise<T>;
  lookup(options: CallOptions): Promise<T | null>;
};

/**
 * The request was sent, and there was no response: it had its effect once, or not at all. Do not ask the
 * customer to pay again before that is found out. After a restart, the same call with the same
 * `reference` finds it out.
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
   * Sends the same request again under the same reference. If it had its effect, that is returned, and
   * nothing happens a second time; if not, it happens now.
   * @returns what the call would have returned
   * @throws ScripError a refusal, which proves that the request had no effect; UnknownOutcomeError while
   *   there is no response
   */
  resolve(options: CallOptions = {}): Promise<T> {
    return this.#settling.resolve(options);
  }

  /**
   * Only looks, and changes nothing.
   * @returns the effect, or null where none is known under the reference; a request that is still on its
   *   way can yet arrive
   */
  lookup(options: CallOptions = {}): Promise<T | null> {
    return this.#settling.lookup(options);
  }
}

/** The result of a lookup, or null where it finds nothing. */
export async function orNull<T>(lookup: () => Promise<T>): Promise<T | null> {
  try {
    return await lookup();
  } catch (error) {
    if (error instanceof ScripError && error.code === 'notFound') return null;
    throw error;
  }
}
