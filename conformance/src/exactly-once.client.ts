import { Agent, type ClientRequest, type IncomingMessage, request as overHttp } from 'node:http';
import { request as overHttps, Agent as SecureAgent } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cut } from './exactly-once.history.ts';
import { type Access, authorizationOf, type Loose, PREFIXES, parse, type Variant } from './probe.ts';

/** Sends calls, and breaks some of their connections: the server sees what it sees behind a bad network. */

export type Reply = {
  readonly code: string;
  readonly replayed: boolean;
  readonly data: Loose;
};

/** The server could not be reached for a long time. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

const TIMEOUT_MS = 30_000;
/** A server that restarts has this much time. */
const AWAY_MAX_MS = 120_000;
const AGAIN_MS = 100;
/** A cut during a call comes within this time. Most servers answer in less. */
const DURING_MS = 8;
/** Errors of a connection that was never made. Nothing was sent. */
const NOT_SENT = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN'];

export type Sending = {
  readonly variant: Variant;
  readonly path: string;
  /** Undefined for GET. */
  readonly body?: object;
  readonly cut: Cut | null;
};

export class CuttingClient {
  readonly #base: URL;
  readonly #authorization: string;
  readonly #agent: Agent;
  readonly #random: () => number;
  #isClosed = false;

  /** @param random chooses the moments of cuts */
  constructor(access: Access, random: () => number) {
    this.#base = new URL(access.baseUrl);
    this.#authorization = authorizationOf(access);
    const AgentOfScheme = this.#base.protocol === 'https:' ? SecureAgent : Agent;
    this.#agent = new AgentOfScheme({ keepAlive: true });
    this.#random = random;
  }

  /**
   * Sends a call as soon as there is a connection.
   * @param onSending called each time that it is tried
   * @returns the answer, or undefined if there is none
   * @throws Unreachable
   */
  async send(sending: Sending, onSending: () => void): Promise<Reply | undefined> {
    const giveUpAt = Date.now() + AWAY_MAX_MS;
    while (Date.now() < giveUpAt && !this.#isClosed) {
      onSending();
      try {
        return await this.#once(sending);
      } catch (error) {
        if (!NOT_SENT.includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
        await sleep(AGAIN_MS);
      }
    }
    throw new Unreachable('the server cannot be reached');
  }

  /** Ends the calls in flight. Callers that do not know yet that the run is over send no others. */
  close(): void {
    this.#isClosed = true;
    this.#agent.destroy();
  }

  async #once(sending: Sending): Promise<Reply | undefined> {
    const response = await this.#exchange(sending);
    const body = parse((await buffer(response)).toString()) as Loose;
    if (typeof body?.statusCode !== 'string') return undefined;
    const replayed = response.headers['idempotent-replayed'] === 'true';
    return { code: body.statusCode, replayed, data: body.data };
  }

  #exchange(sending: Sending): Promise<IncomingMessage> {
    const { body, cut } = sending;
    const payload = body === undefined ? '' : JSON.stringify(body);
    return new Promise((resolve, reject) => {
      const request = this.#open(sending, Buffer.byteLength(payload));
      request.on('timeout', () => request.destroy());
      request.on('error', reject);
      request.on('close', () => reject(new Error('the connection ended without an answer')));
      request.on('response', (response) => {
        if (cut === null) resolve(response);
        else request.destroy();
      });
      if (cut === 'before') request.write(payload.slice(0, payload.length / 2), () => request.destroy());
      else request.end(payload);
      if (cut === 'during') setTimeout(() => request.destroy(), this.#random() * DURING_MS);
    });
  }

  #open({ variant, path, body }: Sending, bytes: number): ClientRequest {
    const url = new URL(`${this.#base.pathname.replace(/\/+$/, '')}${PREFIXES[variant]}${path}`, this.#base);
    const send = this.#base.protocol === 'https:' ? overHttps : overHttp;
    return send(url, {
      method: body === undefined ? 'GET' : 'POST',
      agent: this.#agent,
      timeout: TIMEOUT_MS,
      headers: {
        authorization: this.#authorization,
        ...(body !== undefined && { 'content-type': 'application/json', 'content-length': bytes }),
      },
    });
  }
}
