import type { Retry, RetryRules } from './call.ts';
import { type Connection, judge } from './http.ts';
import type { PendingStore } from './pending.ts';
import type { Variant } from './types.ts';
import { portalConnection } from './undo.ts';

export type ScripOptions<V extends Variant> = {
  /**
   * The address of the service, such as `https://vouchers.example.com`, without the prefix of the variant.
   */
  readonly baseUrl: string;
  readonly keyId: string;
  readonly secret: string;
  readonly variant: V;
  /**
   * The currency of the amounts, such as `USD`: amounts with more decimals are then refused before they
   * are sent.
   */
  readonly currency?: string | undefined;
  /** The language of `userMessage()`, such as `fr` (default: English). */
  readonly language?: string | undefined;
  /** How long a call may take, with all its attempts (default: 30 seconds). */
  readonly deadlineMs?: number | undefined;
  /** How long one attempt may take (default: 10 seconds). */
  readonly attemptTimeoutMs?: number | undefined;
  /** How many attempts a call makes at most (default: 10). */
  readonly maxAttempts?: number | undefined;
  /** How long to wait before the second attempt, with jitter; it doubles up to 4 seconds (default: 250). */
  readonly retryDelayMs?: number | undefined;
  /** Called before a call is repeated. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /**
   * A token of the merchant's portal with the role `cashier` or `owner`, for `undo`. Its secret is kept like
   * that of the key.
   */
  readonly portalToken?: string | undefined;
  /** Keeps calls whose outcome is not known, for `recover` after a crash. */
  readonly pending?: PendingStore | undefined;
  /** Another fetch, such as one that uses a proxy. */
  readonly fetch?: typeof globalThis.fetch | undefined;
};

const DEADLINE_MS = 30_000;
const ATTEMPT_TIMEOUT_MS = 10_000;
const ATTEMPTS_MAX = 10;
const RETRY_DELAY_MS = 250;

/** No error contains a value: it may be the secret, or an address with a secret in it. */
function requireText(value: unknown, name: string, pattern: RegExp): string {
  if (typeof value !== 'string' || !pattern.test(value))
    throw new TypeError(`Scrip: ${name} is missing or has the wrong form`);
  return value;
}

function readBaseUrl(value: unknown): string {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username + url.password + url.search + url.hash !== '') {
    throw new TypeError(
      'Scrip: baseUrl must be an http:// or https:// address, without credentials and query, such as https://vouchers.example.com',
    );
  }
  return url.href.replace(/\/+$/, '');
}

function readPositive(value: number | undefined, name: string, fallback: number): number {
  if (value === undefined) return fallback;
  if (typeof value !== 'number' || !(value > 0))
    throw new TypeError(`Scrip: ${name} must be a number above zero`);
  return value;
}

/** Base64 of UTF-8. */
function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

export type Settings = {
  readonly baseUrl: string;
  readonly keyId: string;
  readonly connection: Connection;
  /** Undefined without a token of the portal. */
  readonly portal: Connection | undefined;
  readonly rules: RetryRules;
  readonly confidential: readonly string[];
};

/** @throws TypeError for options that cannot work */
export function readOptions(options: ScripOptions<Variant>, prefix: string): Settings {
  const baseUrl = readBaseUrl(options.baseUrl);
  const keyId = requireText(options.keyId, 'keyId', /^[^:\p{Cc}]+$/u);
  const secret = requireText(options.secret, 'secret', /^[^\p{Cc}]+$/u);
  const { portalToken } = options;
  if (portalToken !== undefined) requireText(portalToken, 'portalToken', /^[\x21-\x7e]+$/);
  const credentials = base64(`${keyId}:${secret}`);
  // Some runtimes only accept it as a method of the global object; and it may be replaced later.
  const fetch =
    options.fetch ?? ((...args: Parameters<typeof globalThis.fetch>) => globalThis.fetch(...args));
  const connection = { url: baseUrl + prefix, authorization: `Basic ${credentials}`, fetch, judge };
  return {
    baseUrl,
    keyId,
    connection,
    portal: portalConnection(connection, baseUrl, portalToken),
    rules: {
      deadlineMs: readPositive(options.deadlineMs, 'deadlineMs', DEADLINE_MS),
      attemptTimeoutMs: readPositive(options.attemptTimeoutMs, 'attemptTimeoutMs', ATTEMPT_TIMEOUT_MS),
      maxAttempts: readPositive(options.maxAttempts, 'maxAttempts', ATTEMPTS_MAX),
      retryDelayMs: readPositive(options.retryDelayMs, 'retryDelayMs', RETRY_DELAY_MS),
      onRetry: options.onRetry,
    },
    confidential: [secret, credentials, ...(portalToken === undefined ? [] : [portalToken])],
  };
}
