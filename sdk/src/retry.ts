import { wordsOf } from './codes.ts';
import { type Operation, type ScripError, type Settling, UnknownOutcomeError } from './errors.ts';
import { type About, Failure, ownError } from './failure.ts';
import type { CallOptions } from './types.ts';
import { pause } from './watch.ts';

/** Told before a call is tried again. */
export type Retry = {
  readonly operation: Operation;
  readonly reference: string | null;
  /** How many attempts there were. */
  readonly attempts: number;
  readonly delayMs: number;
  readonly error: ScripError;
};

/** How a client tries again. */
export type RetryRules = {
  readonly deadlineMs: number;
  readonly attemptTimeoutMs: number;
  readonly maxAttempts: number;
  readonly retryDelayMs: number;
  readonly onRetry: ((retry: Retry) => void) | undefined;
};

/** What a call that has an effect adds: how it is known what became of it. */
export type Effect<T> = {
  /** Whether a refusal proves that no earlier copy of the request had its effect. */
  tells(error: ScripError): boolean;
  /** The result behind a refusal that an earlier copy of the request brought about. */
  settle?(error: ScripError): T | undefined;
  readonly settling: Settling<T>;
  /** Whether an earlier call left it open what became of the request. */
  readonly isOpen: boolean;
};

const LONGEST_DELAY_MS = 4_000;

/** Doubles with every attempt, with jitter, and never below what the service asked for. */
function delayOf(attempts: number, firstDelayMs: number, retryAfterMs: number | null): number {
  const delay = Math.min(LONGEST_DELAY_MS, firstDelayMs * 2 ** (attempts - 1)) * (0.5 + Math.random() / 2);
  return retryAfterMs === null ? delay : Math.max(delay, retryAfterMs * (1 + Math.random() / 10));
}

/**
 * Makes attempts until one is answered for good, time or patience is over, or the caller aborts.
 * @param make one attempt, of at most so many milliseconds; throws Failure
 * @throws ScripError; UnknownOutcomeError where an attempt may have had an effect and nothing since tells
 */
export async function retry<T>(
  about: About,
  rules: RetryRules,
  { signal, deadlineMs = rules.deadlineMs, attemptTimeoutMs = rules.attemptTimeoutMs }: CallOptions,
  make: (timeoutMs: number) => Promise<T>,
  effect?: Effect<T>,
): Promise<T> {
  const endsAt = performance.now() + deadlineMs;
  let isOpen = effect?.isOpen ?? false;
  const conclude = (error: ScripError) =>
    effect && isOpen && !effect.tells(error) ? unknownOutcome(about, error, effect) : error;

  for (let attempts = 1; ; attempts++) {
    const outcome = await tryOnce(() => make(Math.min(attemptTimeoutMs, endsAt - performance.now())));
    if (!(outcome instanceof Failure)) return outcome.value;
    const { error, happened, again } = outcome;
    const settled = isOpen ? effect?.settle?.(error) : undefined;
    if (settled !== undefined) return settled;
    if (happened === 'perhaps') isOpen = true;
    const delayMs = delayOf(attempts, rules.retryDelayMs, error.retryAfterMs);
    if (!again || attempts >= rules.maxAttempts || performance.now() + delayMs >= endsAt) throw conclude(error);
    rules.onRetry?.({ operation: about.operation, reference: about.reference ?? null, attempts, delayMs, error });
    if (!(await pause(delayMs, signal))) {
      throw conclude(ownError(about, 'aborted', undefined, { isRetryable: true, cause: signal?.reason }));
    }
  }
}

async function tryOnce<T>(make: () => Promise<T>): Promise<{ readonly value: T } | Failure> {
  try {
    return { value: await make() };
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
}

function unknownOutcome<T>(about: About, cause: ScripError, effect: Effect<T>): UnknownOutcomeError<T> {
  const { operation, language } = about;
  const { httpStatus, requestId, retryAfterMs } = cause;
  return new UnknownOutcomeError<T>(
    {
      operation,
      language,
      // Whatever has an effect has a reference: it is made where the caller gave none.
      reference: about.reference as string,
      code: 'unknownOutcome',
      message: `${operation}: ${wordsOf('unknownOutcome')} (last: ${cause.message})`,
      isRetryable: true,
      httpStatus: httpStatus ?? undefined,
      requestId: requestId ?? undefined,
      retryAfterMs: retryAfterMs ?? undefined,
      cause,
    },
    effect.settling,
  );
}
