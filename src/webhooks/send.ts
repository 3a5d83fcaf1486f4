import { Webhook } from 'standardwebhooks';
import { ForbiddenAddress, guardedLookup, type Resolve, readEndpointUrl } from './address.ts';
import { webhookId } from './outbox.ts';

/** Sends one attempt as a signed request, and returns its result. */

export type Prepared = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type Attempt = {
  readonly attemptedAt: Date;
  readonly durationMs: number;
  /** The HTTP status; null: there was no answer. */
  readonly status: number | null;
  /** The reason for the failure; null for a 2xx answer. Never the content of the answer. */
  readonly error: string | null;
  readonly retryAfterMs: number | undefined;
};

export type Sender = {
  send(prepared: Prepared, signal?: AbortSignal): Promise<Attempt>;
  close(): Promise<void>;
};

type SenderOptions = {
  readonly allowPrivate: boolean;
  readonly clock: () => Date;
  readonly timeoutMs?: number;
  readonly resolve?: Resolve;
};

/** The time limit of the whole request, including the connection. */
const TIMEOUT_MS = 15_000;
/** The body of an answer is not used. Up to this size it is read, so that the connection can be kept. */
const BODY_READ_MAX_BYTES = 16_384;
const HEADER_MAX_BYTES = 16_384;
const KEEP_ALIVE_MS = 10_000;

const IMF_FIXDATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Reads the header Retry-After (RFC 9110): seconds, or a date.
 * @returns milliseconds from now, undefined without a valid value
 */
export function readRetryAfter(header: string | undefined, now: Date): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,10}$/.test(text)) return Number(text) * 1_000;
  const date = IMF_FIXDATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime());
}

/**
 * Creates a sender. It keeps connections open, follows no redirects, and ignores proxy settings of the
 * environment.
 */
export function createSender({
  allowPrivate,
  clock,
  timeoutMs = TIMEOUT_MS,
  resolve,
}: SenderOptions): Sender {
  let opened: ReturnType<typeof open> | undefined;
  // Loading the client takes a fifth of the start of a service, which may have nothing to send.
  async function open() {
    const { Agent, request } = await import('undici');
    const dispatcher = new Agent({
      connect: { lookup: guardedLookup(allowPrivate, resolve), timeout: timeoutMs },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      maxHeaderSize: HEADER_MAX_BYTES,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      pipelining: 1,
    });
    return { dispatcher, request };
  }

  async function attempt({ url, headers, body }: Prepared, signal: AbortSignal) {
    // The setting may have changed since the endpoint was added, and a literal address is not resolved.
    const target = readEndpointUrl(url, allowPrivate);
    opened ??= open();
    const { dispatcher, request } = await opened;
    const response = await request(target, {
      dispatcher,
      method: 'POST',
      headers: { ...headers },
      body,
      signal,
    });
    // The status is known. The rest of the answer does not matter.
    await response.body.dump({ limit: BODY_READ_MAX_BYTES, signal }).catch(() => {});
    return { status: response.statusCode, retryAfter: response.headers['retry-after'] };
  }

  return {
    async send(prepared, signal) {
      const attemptedAt = clock();
      const started = performance.now();
      const limit = AbortSignal.timeout(timeoutMs);
      const made = (status: number | null, error: string | null, retryAfterMs?: number) => {
        const durationMs = Math.round(performance.now() - started);
        return { attemptedAt, durationMs, status, error, retryAfterMs };
      };
      try {
        const answer = await attempt(prepared, signal ? AbortSignal.any([limit, signal]) : limit);
        const { status, retryAfter } = answer;
        if (status >= 200 && status < 300) return made(status, null);
        const isRedirect = status >= 300 && status < 400;
        const error = isRedirect ? 'redirects are not followed' : `answered ${status}`;
        return made(status, error, readRetryAfter([retryAfter].flat()[0], clock()));
      } catch (error) {
        return made(null, describe(error, limit.aborted));
      }
    },
    close: async () => (await opened)?.dispatcher.destroy(),
  };
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection closed without an answer',
  UND_ERR_SOCKET: 'connection closed without an answer',
  ENOTFOUND: 'the name is not known',
  EAI_AGAIN: 'the name cannot be resolved just now',
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the network cannot be reached',
};

/** Describes a failure in words of a closed list, or by the error's code, never in words of the receiver. */
function describe(error: unknown, timedOut: boolean): string {
  const cause = error instanceof AggregateError ? error.errors[0] : error;
  if (cause instanceof ForbiddenAddress) return cause.message;
  const code = (cause as { code?: unknown } | undefined)?.code;
  if (timedOut || (typeof code === 'string' && /TIMEOUT|TIMEDOUT/.test(code))) return 'no answer in time';
  return typeof code === 'string' ? (REASONS[code] ?? `failed: ${code}`) : 'failed';
}

/**
 * Returns the headers of a delivery (Standard Webhooks 1.0): its id, the time of this attempt, and a
 * signature for each valid secret, separated by spaces.
 */
export function signedHeaders(eventId: string, body: string, secrets: readonly string[], now: Date) {
  const id = webhookId(eventId);
  return {
    'content-type': 'application/json',
    'user-agent': 'Scrip-Webhooks/1',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1_000)),
    'webhook-signature': secrets.map((secret) => new Webhook(secret).sign(id, now, body)).join(' '),
  };
}
