import { setTimeout as sleep } from 'node:timers/promises';
import { Broken } from './broken.ts';

/** Sends requests, right or wrong, and keeps the responses. */

export type Variant = 'a' | 'b';
export const PREFIXES: Readonly<Record<Variant, string>> = { a: '/merchant-client/v2', b: '/api/v2' };

// biome-ignore lint/suspicious/noExplicitAny: the rules check which fields a response has.
export type Loose = any;

export type Wanted = {
  readonly method?: 'GET' | 'POST' | 'DELETE' | 'PUT';
  /** Below the prefix. */
  readonly path: string;
  readonly body?: unknown;
  /** The body as text, where JSON.stringify would not write it so. */
  readonly text?: string;
  readonly type?: string;
  /** Replaces the Authorization header; null for none. */
  readonly authorization?: string | null;
  /** Whether the body is not JSON, which both variants answer with HTTP 400. */
  readonly isUnparsable?: boolean;
  /** Whether an earlier request had the effect, so that the response must be marked as a replay. */
  readonly isReplay?: boolean;
};

export type Seen = {
  /** Method and path, without references. */
  readonly what: string;
  readonly wanted: Wanted;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: Loose;
  readonly statusCode: string | undefined;
  readonly message: string | undefined;
  readonly data: Loose;
  readonly replayed: boolean;
};

export type Access = { readonly baseUrl: string; readonly keyId: string; readonly secret: string };

/** The service asks for a longer pause than the kit makes. */
export class Limited extends Error {
  override readonly name = 'Limited';
}

const TIMEOUT_MS = 30_000;
const PAUSE_MAX_MS = 10_000;
const PAUSES_MAX = 5;

export class Probe {
  readonly variant: Variant;
  readonly #access: Access;
  /** All responses, for the rules that hold for each of them. */
  readonly all: Seen[] = [];
  readonly authorization: string;

  constructor(variant: Variant, access: Access) {
    this.variant = variant;
    this.#access = access;
    this.authorization = authorizationOf(access);
  }

  /**
   * @throws Broken where there is no response
   * @throws Limited
   */
  async send(wanted: Wanted): Promise<Seen> {
    for (let pauses = 0; ; pauses++) {
      const seen = await this.#once(wanted);
      const isBusy = seen.status === 429 || seen.status === 503;
      if (!isBusy) return seen;
      const waitMs = Number(seen.headers.get('retry-after') ?? Number.NaN) * 1000;
      if (seen.status === 503 && (Number.isNaN(waitMs) || pauses >= PAUSES_MAX)) return seen;
      if (!(waitMs <= PAUSE_MAX_MS) || pauses >= PAUSES_MAX) {
        throw new Limited(
          'the service answers 429: this key has guessed or called too often; wait, or use another test merchant',
        );
      }
      await sleep(waitMs);
    }
  }

  async #once(wanted: Wanted): Promise<Seen> {
    const { method = 'GET', path, body: sent, authorization = this.authorization } = wanted;
    const what = `${method} ${path.replace(/^(\/(?:vouchers|transactions|redemptions\/update)\/).+/, '$1{reference}')}`;
    const payload = wanted.text ?? (sent === undefined ? undefined : JSON.stringify(sent));
    const { response, text } = await this.#fetch(what, `${PREFIXES[this.variant]}${path}`, {
      method,
      headers: {
        ...(authorization !== null && { authorization }),
        ...(payload !== undefined && { 'content-type': wanted.type ?? 'application/json' }),
      },
      ...(payload !== undefined && { body: payload }),
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const parsed = parse(text);
    const body = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Record<string, unknown>;
    const seen: Seen = {
      what,
      wanted,
      status: response.status,
      headers: response.headers,
      text,
      body: parsed,
      statusCode: typeof body['statusCode'] === 'string' ? body['statusCode'] : undefined,
      message: typeof body['message'] === 'string' ? body['message'] : undefined,
      data: body['data'],
      replayed: response.headers.get('idempotent-replayed') === 'true',
    };
    this.all.push(seen);
    return seen;
  }

  async #fetch(what: string, path: string, init: RequestInit): Promise<{ response: Response; text: string }> {
    try {
      const response = await fetch(this.#access.baseUrl.replace(/\/+$/, '') + path, init);
      return { response, text: await response.text() };
    } catch (error) {
      // The error of fetch may hold the request; its code is enough.
      const { code } = ((error as Error).cause ?? {}) as { readonly code?: unknown };
      throw new Broken('an answer', `none to ${what}${typeof code === 'string' ? ` (${code})` : ''}`);
    }
  }
}

/** The header of a key. */
export function authorizationOf({ keyId, secret }: Access): string {
  return `Basic ${btoa(String.fromCharCode(...new TextEncoder().encode(`${keyId}:${secret}`)))}`;
}

/** Undefined for what is no JSON. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
