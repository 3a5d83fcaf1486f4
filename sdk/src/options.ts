import type { Connection } from './attempt.ts';
import type { Retry, RetryRules } from './retry.ts';
import type { Variant } from './types.ts';

export type ScripOptions<V extends Variant> = {
  /** Where the service is, such as `https://vouchers.example.com`; without the prefix of the variant. */
  readonly baseUrl: string;
  readonly keyId: string;
  readonly secret: string;
  readonly variant: V;
  /** The currency of the amounts, such as `USD`: amounts with more decimals than it has are then refused before they are sent. */
  readonly currency?: string | undefined;
  /** The language of `userMessage()`, such as `fr`; English unless said. */
  readonly language?: string | undefined;
  /** How long a call may take, all its attempts together; 30 seconds unless said. */
  readonly deadlineMs?: number | undefined;
  /** How long one attempt may take; 10 seconds unless said. */
  readonly attemptTimeoutMs?: number | undefined;
  /** How often a call is tried at most; 10 times unless said. */
  readonly maxAttempts?: number | undefined;
  /** How long to wait before the second attempt, give or take; doubled for every further one up to 4 seconds. 250 unless said. */
  readonly retryDelayMs?: number | undefined;
  /** Told before a call is tried again. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** Another fetch, such as one with a proxy. */
  readonly fetch?: typeof globalThis.fetch | undefined;
};

const DEADLINE_MS = 30_000;
const ATTEMPT_TIMEOUT_MS = 10_000;
const MAX_ATTEMPTS = 10;
const RETRY_DELAY_MS = 250;

/** A base64 text of UTF-8. */
function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

function requireText(value: unknown, name: string, pattern: RegExp): string {
  // The value stays out of the error: it may be the secret, or an address with one in it.
  if (typeof value !== 'string' || !pattern.test(value))
    throw new TypeError(`Scrip: ${name} is missing or has the wrong form`);
  return value;
}

function readBaseUrl(value: unknown): string {
  const text = requireText(value, 'baseUrl', /^https?:\/\//i);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    throw new TypeError('Scrip: baseUrl must be an http or https address without credentials and query');
  }
  return url.href.replace(/\/+$/, '');
}

function requirePositive(value: number | undefined, name: string, usual: number): number {
  if (value === undefined) return usual;
  if (typeof value !== 'number' || !(value > 0)) throw new TypeError(`Scrip: ${name} must be a number above zero`);
  return value;
}

/** What options come to, checked. */
export type Settings = {
  readonly baseUrl: string;
  readonly keyId: string;
  readonly connection: Connection;
  readonly rules: RetryRules;
  readonly confidential: readonly string[];
};

/**
 * @param prefix of the variant
 * @throws TypeError for what cannot be an option
 */
export function readOptions(options: ScripOptions<Variant>, prefix: string): Settings {
  const baseUrl = readBaseUrl(options.baseUrl);
  const keyId = requireText(options.keyId, 'keyId', /^[^:\p{Cc}]+$/u);
  const secret = requireText(options.secret, 'secret', /^[^\p{Cc}]+$/u);
  const credentials = base64(`${keyId}:${secret}`);
  // Called as a function of the global object, which some runtimes insist on; and looked up late, so that it can be replaced.
  const fetch = options.fetch ?? ((...args: Parameters<typeof globalThis.fetch>) => globalThis.fetch(...args));
  return {
    baseUrl,
    keyId,
    connection: { url: baseUrl + prefix, authorization: `Basic ${credentials}`, fetch },
    rules: {
      deadlineMs: requirePositive(options.deadlineMs, 'deadlineMs', DEADLINE_MS),
      attemptTimeoutMs: requirePositive(options.attemptTimeoutMs, 'attemptTimeoutMs', ATTEMPT_TIMEOUT_MS),
      maxAttempts: requirePositive(options.maxAttempts, 'maxAttempts', MAX_ATTEMPTS),
      retryDelayMs: requirePositive(options.retryDelayMs, 'retryDelayMs', RETRY_DELAY_MS),
      onRetry: options.onRetry,
    },
    confidential: [secret, credentials],
  };
}
