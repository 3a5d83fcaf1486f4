import { parseBody } from '../../answer.ts';
import { pause } from '../../watch.ts';
import { Broken } from './rule.ts';

/** Sends requests as they are, right or wrong, and keeps what came back. */

export type Variant = 'a' | 'b';
const PREFIXES: Readonly<Record<Variant, string>> = { a: '/merchant-client/v2', b: '/api/v2' };

// biome-ignore lint/suspicious/noExplicitAny: whether an answer has the fields that it must have is what the rules find out.
export type Loose = any;

export type Wanted = {
  readonly method?: 'GET' | 'POST' | 'DELETE' | 'PUT';
  /** Below the prefix. */
  readonly path: string;
  readonly body?: unknown;
  /** A body that is not what JSON makes of one. */
  readonly text?: string;
  readonly type?: string;
  /** Another header than the right one; null for none. */
  readonly authorization?: string | null;
  /** Whether the body is no JSON at all, which is answered alike in both variants. */
  readonly isUnparsable?: boolean;
  /** Whether an earlier request had the effect, so that the answer must say so. */
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

/** The service wants no more requests for now. */
export class Limited extends Error {
  override readonly name = 'Limited';
}

const TIMEOUT_MS = 30_000;
const LONGEST_PAUSE_MS = 10_000;
const MOST_PAUSES = 5;

export class Probe {
  readonly variant: Variant;
  readonly #access: Access;
  /** All that came back, for the rules that hold for every answer. */
  readonly all: Seen[] = [];
  readonly authorization: string;

  constructor(variant: Variant, access: Access) {
    this.variant = variant;
    this.#access = access;
    const pair = new TextEncoder().encode(`${access.keyId}:${access.secret}`);
    this.authorization = `Basic ${btoa(String.fromCharCode(...pair))}`;
  }

  /**
   * @throws Broken where nothing comes back
   * @throws Limited where the service asks for a longer pause than is sensible here
   */
  async send(wanted: Wanted): Promise<Seen> {
    for (let pauses = 0; ; pauses++) {
      const seen = await this.#once(wanted);
      const isBusy = seen.status === 429 || seen.status === 503;
      if (!isBusy) return seen;
      const waitMs = Number(seen.headers.get('retry-after') ?? Number.NaN) * 1000;
      if (seen.status === 503 && (Number.isNaN(waitMs) || pauses >= MOST_PAUSES)) return seen;
      if (!(waitMs <= LONGEST_PAUSE_MS) || pauses >= MOST_PAUSES) {
        throw new Limited(
          'the service answers 429: this key has guessed or asked too often; wait, or use another test merchant',
        );
      }
      await pause(waitMs, undefined);
    }
  }

  async #once(wanted: Wanted): Promise<Seen> {
    const { method = 'GET', path, body, authorization = this.authorization } = wanted;
    const what = `${method} ${path.replace(/^(\/(?:vouchers|transactions|redemptions\/update)\/).+/, '$1{reference}')}`;
    const payload = wanted.text ?? (body === undefined ? undefined : JSON.stringify(body));
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
    const parsed = parseBody(text);
    const told = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Record<string, unknown>;
    const seen: Seen = {
      what,
      wanted,
      status: response.status,
      headers: response.headers,
      text,
      body: parsed,
      statusCode: typeof told['statusCode'] === 'string' ? told['statusCode'] : undefined,
      message: typeof told['message'] === 'string' ? told['message'] : undefined,
      data: told['data'],
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
      // The error of fetch may hold the request; its code says enough.
      const { code } = ((error as Error).cause ?? {}) as { readonly code?: unknown };
      throw new Broken('an answer', `none to ${what}${typeof code === 'string' ? ` (${code})` : ''}`);
    }
  }
}
