import { checkTimes } from './check.ts';
import { textOf } from './codes.ts';
import { pause } from './deadline.ts';
import { type Operation, type ScripError, type Settling, UnknownOutcomeError } from './errors.ts';
import { type About, argumentError, clientError, Failure, failureOf } from './failure.ts';
import { type Answer, attempt, type Connection, type Request } from './http.ts';
import type { Pending, PendingCall } from './pending.ts';
import type { CallOptions, DownloadOptions, EffectOptions } from './types.ts';

/** A call: attempts until there is a definite response, and what is known about its effect. */

/** An attempt that is about to be repeated. */
export type Retry = {
  readonly operation: Operation;
  readonly reference: string | null;
  /** How many attempts there were. */
  readonly attempts: number;
  readonly delayMs: number;
  readonly error: ScripError;
};

export type RetryRules = {
  readonly deadlineMs: number;
  readonly attemptTimeoutMs: number;
  readonly maxAttempts: number;
  readonly retryDelayMs: number;
  readonly onRetry: ((retry: Retry) => void) | undefined;
};

/** A call that has an effect. */
export type EffectiveCall<T> = {
  readonly about: About;
  readonly request: Request;
  /** Where it goes, if not to the merchant's API. */
  readonly connection?: Connection;
  /** Reads the result. @throws Malformed, Failure */
  take(answer: Answer): T;
  /** Whether a refusal proves that no earlier copy of the request had its effect. */
  proves(error: ScripError): boolean;
  /** The result behind a refusal that an earlier copy of the request caused. */
  recover?(error: ScripError): T | undefined;
  lookup(options: CallOptions): Promise<T | null>;
  /** The part that the store keeps while the outcome is unknown; absent if the call is not kept. */
  readonly pending?: PendingCall;
};

/** What `retry` needs to know about a call that has an effect. */
type Effect<T> = Pick<EffectiveCall<T>, 'proves' | 'recover'> & {
  readonly settling: Settling<T>;
  /** Whether the outcome of an earlier call is unknown. */
  readonly isOpen: boolean;
};

const DELAY_MAX_MS = 4_000;

/** Doubles with every attempt, with jitter, and is never shorter than the service asked for. */
function delayOf(attempts: number, firstDelayMs: number, retryAfterMs: number | null): number {
  const delay = Math.min(DELAY_MAX_MS, firstDelayMs * 2 ** (attempts - 1)) * (0.5 + Math.random() / 2);
  return retryAfterMs === null ? delay : Math.max(delay, retryAfterMs * (1 + Math.random() / 10));
}

/** Makes the calls of a client. */
export class Caller {
  readonly connection: Connection;
  readonly rules: RetryRules;
  readonly #language: string | undefined;
  readonly #confidential: readonly string[];
  readonly #pending: Pending | undefined;

  constructor(
    connection: Connection,
    rules: RetryRules,
    {
      language,
      confidential,
      pending,
    }: {
      language: string | undefined;
      confidential: readonly string[];
      pending: Pending | undefined;
    },
  ) {
    this.#pending = pending;
    this.connection = connection;
    this.rules = rules;
    this.#language = language;
    this.#confidential = confidential;
  }

  /** @param confidential texts that no error of the call may hold, beside the client's secret */
  about(operation: Operation, reference?: string, confidential: readonly string[] = []): About {
    return {
      operation,
      reference,
      language: this.#language,
      confidential: [...this.#confidential, ...confidential],
    };
  }

  /** Runs the checks of a call's arguments. @throws ScripError */
  check<T>(operation: Operation, reference: string | undefined, run: () => T): T {
    try {
      return run();
    } catch (error) {
      throw argumentError(this.about(operation, reference), error);
    }
  }

  checkTimes({ operation, reference }: About, options: DownloadOptions & CallOptions): void {
    this.check(operation, reference, () => checkTimes(options));
  }

  /** A call that changes nothing. */
  async read<T>(
    about: About,
    request: Request,
    options: CallOptions,
    take: (answer: Answer) => T,
  ): Promise<T> {
    this.checkTimes(about, options);
    const make = (timeoutMs: number) => this.#attempt({ about, request, take }, options, timeoutMs);
    return this.retry(about, options, make);
  }

  /** A call that has an effect: once, however many attempts it takes. */
  effect<T>(call: EffectiveCall<T>, options: EffectOptions<T>): Promise<T> {
    return this.#keep(call, options, (isOpen) => this.#effect(call, options, isOpen));
  }

  /** Sends the same request again. If the refusal does not prove the outcome, it looks the effect up. */
  async resolve<T>(call: EffectiveCall<T>, options: CallOptions): Promise<T> {
    try {
      return await this.#effect(call, options, true);
    } catch (error) {
      const isRefused =
        error instanceof UnknownOutcomeError && (error.cause as ScripError).statusCode !== null;
      // If the lookup fails, the outcome is as unknown as before.
      const found = isRefused ? await call.lookup(options).catch(() => null) : null;
      if (found === null) throw error;
      return found;
    }
  }

  /**
   * Makes attempts until there is a definite response, the time is over, or the caller aborts.
   * @param make one attempt, which may take so many milliseconds; throws Failure
   * @throws ScripError; UnknownOutcomeError where an attempt may have had an effect
   */
  async retry<T>(
    about: About,
    {
      signal,
      deadlineMs = this.rules.deadlineMs,
      attemptTimeoutMs = this.rules.attemptTimeoutMs,
    }: CallOptions,
    make: (timeoutMs: number) => Promise<T>,
    effect?: Effect<T>,
  ): Promise<T> {
    const { maxAttempts, retryDelayMs, onRetry } = this.rules;
    const endsAt = performance.now() + deadlineMs;
    let isOpen = effect?.isOpen ?? false;
    const conclude = (error: ScripError) =>
      effect && isOpen && !effect.proves(error) ? unknownOutcome(about, error, effect.settling) : error;

    for (let attempts = 1; ; attempts++) {
      const outcome = await outcomeOf(make(Math.min(attemptTimeoutMs, endsAt - performance.now())));
      if (!(outcome instanceof Failure)) return outcome.value;
      const { error, mayHaveHappened, again } = outcome;
      const recovered = isOpen ? effect?.recover?.(error) : undefined;
      if (recovered !== undefined) return recovered;
      isOpen ||= mayHaveHappened;
      const delayMs = delayOf(attempts, retryDelayMs, error.retryAfterMs);
      if (!again || attempts >= maxAttempts || performance.now() + delayMs >= endsAt) throw conclude(error);
      onRetry?.({ operation: about.operation, reference: about.reference ?? null, attempts, delayMs, error });
      if (!(await pause(delayMs, signal)))
        throw conclude(clientError(about, 'aborted', undefined, { cause: signal?.reason }));
    }
  }

  async #effect<T>(call: EffectiveCall<T>, options: CallOptions, isOpen: boolean): Promise<T> {
    const { about } = call;
    this.checkTimes(about, options);
    const effect: Effect<T> = {
      isOpen,
      settling: {
        resolve: (how) => this.#keep(call, how, () => this.resolve(call, how)),
        lookup: (how) => call.lookup(how),
      },
      proves: (error) => call.proves(error),
      recover: (error) => call.recover?.(error),
    };
    const make = (timeoutMs: number) => this.#attempt(call, options, timeoutMs);
    return this.retry(about, options, make, effect);
  }

  /** Keeps a call as pending while it runs. */
  #keep<T>(
    call: EffectiveCall<T>,
    { record }: EffectOptions<T>,
    run: (isOpen: boolean) => Promise<T>,
  ): Promise<T> {
    const recorded = async (isOpen: boolean) => {
      const result = await run(isOpen);
      await record?.(result);
      return result;
    };
    const { about, pending } = call;
    return pending && this.#pending ? this.#pending.keep(about, pending, recorded) : recorded(false);
  }

  async #attempt<T>(
    call: Pick<EffectiveCall<T>, 'about' | 'request' | 'connection' | 'take'>,
    { signal }: CallOptions,
    timeoutMs: number,
  ): Promise<T> {
    const { about, request, connection = this.connection } = call;
    const answer = await attempt(connection, about, request, { signal, timeoutMs });
    try {
      return call.take(answer);
    } catch (error) {
      throw failureOf(about, error);
    }
  }
}

async function outcomeOf<T>(attempting: Promise<T>): Promise<{ readonly value: T } | Failure> {
  try {
    return { value: await attempting };
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
}

function unknownOutcome<T>(about: About, cause: ScripError, settling: Settling<T>): UnknownOutcomeError<T> {
  const { operation, language } = about;
  const details = {
    operation,
    language,
    // Calls that have an effect always have a reference.
    reference: about.reference as string,
    code: 'unknownOutcome' as const,
    message: `${operation}: ${textOf('unknownOutcome')} (last: ${cause.message})`,
    isRetryable: true,
    httpStatus: cause.httpStatus ?? undefined,
    requestId: cause.requestId ?? undefined,
    retryAfterMs: cause.retryAfterMs ?? undefined,
    cause,
  };
  return new UnknownOutcomeError<T>(details, settling);
}
