import type { WebhookEvent } from './webhook-events.ts';

/** Why a delivery was refused. */
export type WebhookRefusal =
  | 'missingHeader'
  | 'invalidTimestamp'
  | 'tooOld'
  | 'tooNew'
  | 'noMatchingSignature'
  | 'invalidBody';

const WORDS: Readonly<Record<WebhookRefusal, string>> = {
  missingHeader: 'a header webhook-id, webhook-timestamp or webhook-signature is missing',
  invalidTimestamp: 'the header webhook-timestamp is no time',
  tooOld: 'it is too old',
  tooNew: 'it is from the future',
  noMatchingSignature: 'no signature of it was made with the secret',
  invalidBody: 'its body is no event',
};

/** A delivery that cannot be trusted: answer it with HTTP 400, and ignore its event. */
export class WebhookVerificationError extends Error {
  readonly reason: WebhookRefusal;

  constructor(reason: WebhookRefusal) {
    super(`The webhook was not verified: ${WORDS[reason]}`);
    this.name = 'WebhookVerificationError';
    this.reason = reason;
  }
}

/** The headers of a request, of any server: names in any case. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export type VerifyOptions = {
  /** How far the time of a delivery may be from now (default: 300 seconds). */
  readonly toleranceSeconds?: number | undefined;
  /** The time, in milliseconds since 1970. */
  readonly now?: (() => number) | undefined;
};

const TOLERANCE_SECONDS = 300;
/** While a secret is rotated there are two. More than a few would only cost time. */
const SIGNATURES_MAX = 10;

/**
 * Verifies a delivery (Standard Webhooks 1.0), and reads its event.
 * @param rawBody exactly as received: a body that was parsed and written again has another signature
 * @param secrets `whsec_…`, or several of them while one is rotated
 * @throws WebhookVerificationError for a delivery that cannot be trusted; TypeError for an invalid secret
 *   or other argument
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secrets: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS, now = Date.now }: VerifyOptions = {},
): Promise<WebhookEvent> {
  const id = headerOf(headers, 'webhook-id');
  const timestamp = headerOf(headers, 'webhook-timestamp');
  const signatures = headerOf(headers, 'webhook-signature');
  const keys = (Array.isArray(secrets) ? secrets : [secrets]).map(readSecret);
  checkTime(timestamp, toleranceSeconds, now());
  const body = bytesOf(rawBody);
  const signed = concatenate(new TextEncoder().encode(`${id}.${timestamp}.`), body);
  if (!(await isSigned(signed, signatures, keys))) throw new WebhookVerificationError('noMatchingSignature');
  return readEvent(id, body);
}

/**
 * Signs a delivery as the service does, to test a receiver.
 * @param body the text that is sent, exactly
 * @param secret `whsec_…`
 * @returns the headers of the delivery
 * @throws TypeError for an invalid secret
 */
export async function signWebhook(
  body: string,
  secret: string,
  {
    id = `msg_${crypto.randomUUID()}`,
    now = Date.now,
  }: { readonly id?: string; readonly now?: () => number } = {},
): Promise<Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>> {
  const timestamp = String(Math.floor(now() / 1000));
  const key = await crypto.subtle.importKey(
    'raw',
    readSecret(secret),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign'],
  );
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  const signature = new Uint8Array(await crypto.subtle.sign('HMAC', key, signed));
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${btoa(String.fromCharCode(...signature))}`,
  };
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value =
    'get' in headers && typeof headers.get === 'function' ? headers.get(name) : fieldOf(headers, name);
  if (typeof value !== 'string' || value === '') throw new WebhookVerificationError('missingHeader');
  return value;
}

function fieldOf(headers: WebhookHeaders, name: string): unknown {
  const value = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return Array.isArray(value) ? value[0] : value;
}

function readSecret(secret: unknown): Uint8Array<ArrayBuffer> {
  const key = typeof secret === 'string' ? decodeBase64(secret.replace(/^whsec_/, '')) : undefined;
  // The secret itself stays out of the error.
  if (!key || key.length === 0) throw new TypeError('a webhook secret must be whsec_ and base64');
  return key;
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** The bytes that were signed. A body that was parsed already does not have them any more. */
function bytesOf(rawBody: unknown): Uint8Array {
  if (typeof rawBody === 'string') return new TextEncoder().encode(rawBody);
  // `instanceof` would refuse bytes of another realm.
  const kind = Object.prototype.toString.call(rawBody);
  if (kind === '[object ArrayBuffer]') return new Uint8Array(rawBody as ArrayBuffer);
  if (kind === '[object Uint8Array]') return rawBody as Uint8Array;
  throw new TypeError('verifyWebhook: rawBody must be the body as it came, as text or bytes, and not parsed');
}

function checkTime(timestamp: string, toleranceSeconds: number, now: number): void {
  // NaN would accept every time.
  if (!(toleranceSeconds >= 0) || !Number.isFinite(now)) {
    throw new TypeError('verifyWebhook: toleranceSeconds and now must be numbers');
  }
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookVerificationError('invalidTimestamp');
  const age = Math.floor(now / 1000) - Number(timestamp);
  if (age > toleranceSeconds) throw new WebhookVerificationError('tooOld');
  if (age < -toleranceSeconds) throw new WebhookVerificationError('tooNew');
}

function concatenate(head: Uint8Array, tail: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(head.length + tail.length);
  all.set(head);
  all.set(tail, head.length);
  return all;
}

/** Whether one of the signatures was made with one of the keys. WebCrypto compares in constant time. */
async function isSigned(
  signed: Uint8Array<ArrayBuffer>,
  signatures: string,
  keys: readonly Uint8Array<ArrayBuffer>[],
): Promise<boolean> {
  const given = signatures
    .split(' ')
    .filter((each) => each.startsWith('v1,'))
    .slice(0, SIGNATURES_MAX)
    .map((each) => decodeBase64(each.slice(3)));
  for (const key of keys) {
    const imported = await crypto.subtle.importKey('raw', key, { name: 'HMAC', hash: 'SHA-256' }, false, [
      'verify',
    ]);
    for (const signature of given) {
      if (signature && (await crypto.subtle.verify('HMAC', imported, signature, signed))) return true;
    }
  }
  return false;
}

/** Checks the frame of an event only: its data is signed by the service. */
function readEvent(id: string, body: Uint8Array): WebhookEvent {
  const { type, timestamp, data } = (parseJson(body) ?? {}) as Readonly<Record<string, unknown>>;
  if (
    typeof type !== 'string' ||
    typeof timestamp !== 'string' ||
    typeof data !== 'object' ||
    data === null
  ) {
    throw new WebhookVerificationError('invalidBody');
  }
  return { id, type, timestamp, data } as WebhookEvent;
}

/** Without the error of the parser, which quotes the body. */
function parseJson(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return undefined;
  }
}
