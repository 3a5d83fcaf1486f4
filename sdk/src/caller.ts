import type { Answer } from './answer.ts';
import { attempt, type Connection, type Request } from './attempt.ts';
import { checkTimes } from './check.ts';
import { type Operation, type ScripError, UnknownOutcomeError } from './errors.ts';
import { type About, argumentError, failureOf } from './failure.ts';
import { redactor } from './redact.ts';
import { type Effect, type RetryRules, retry } from './retry.ts';
import type { CallOptions, DownloadOptions } from './types.ts';

/** What a call that has an effect is made of. */
export type EffectiveCall<T> = {
  readonly about: About;
  readonly request: Request;
  /** Reads the result; throws Malformed, or Failure. */
  take(answer: Answer): T;
  tells(error: ScripError): boolean;
  settle?(error: ScripError): T | undefined;
  lookup(options: CallOptions): Promise<T | null>;
};

/** Makes the calls of a client, with its patience and in its language. */
export class Caller {
  readonly connection: Connection;
  readonly rules: RetryRules;
  readonly #language: string | undefined;
  readonly #confidential: readonly string[];

  constructor(
    connection: Connection,
    rules: RetryRules,
    language: string | undefined,
    confidential: readonly string[],
  ) {
    this.connection = connection;
    this.rules = rules;
    this.#language = language;
    this.#confidential = confidential;
  }

  /** @param confidential what the call carries that no error may hold, beside the client's secret */
  about(operation: Operation, reference?: string, confidential: readonly string[] = []): About {
    return {
      operation,
      reference,
      language: this.#language,
      redact: redactor([...this.#confidential, ...confidential]),
    };
  }

  /** Runs the checks of a call's arguments. */
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
  async read<T>(about: About, request: Request, options: CallOptions, take: (answer: Answer) => T): Promise<T> {
    this.checkTimes(about, options);
    return retry(about, this.rules, options, (timeoutMs) => this.#attempt(about, request, options, timeoutMs, take));
  }

  /** A call that has an effect: however often it is tried, once. */
  effect<T>(call: EffectiveCall<T>, options: CallOptions): Promise<T> {
    return this.#effect(call, options, false);
  }

  async #effect<T>(call: EffectiveCall<T>, options: CallOptions, isOpen: boolean): Promise<T> {
    const { about, request } = call;
    this.checkTimes(about, options);
    const settling = {
      resolve: (how: CallOptions) => this.#resolve(call, how),
      lookup: (how: CallOptions) => call.lookup(how),
    };
    const effect: Effect<T> = {
      isOpen,
      settling,
      tells: (error) => call.tells(error),
      settle: (error) => call.settle?.(error),
    };
    const make = (timeoutMs: number) =>
      this.#attempt(about, request, options, timeoutMs, (answer) => call.take(answer));
    return retry(about, this.rules, options, make, effect);
  }

  /** The same request again; and where the service refuses it for a reason that says nothing, a look. */
  async #resolve<T>(call: EffectiveCall<T>, options: CallOptions): Promise<T> {
    try {
      return await this.#effect(call, options, true);
    } catch (error) {
      const isRefused = error instanceof UnknownOutcomeError && (error.cause as ScripError).statusCode !== null;
      // Whatever keeps the look from being made, the outcome is as unknown as before.
      const found = isRefused ? await call.lookup(options).catch(() => null) : null;
      if (found === null) throw error;
      return found;
    }
  }

  async #attempt<T>(
    about: About,
    request: Request,
    { signal }: CallOptions,
    timeoutMs: number,
    take: (answer: Answer) => T,
  ): Promise<T> {
    const answer = await attempt(this.connection, about, request, { signal, timeoutMs });
    try {
      return take(answer);
    } catch (error) {
      throw failureOf(about, error);
    }
  }
}
