import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Merchant } from '../context.ts';
import { Refusal } from '../refusal.ts';

/**
 * Requests that are worked on at the same time. A thousand copies of one request at one moment are all
 * answered, and as many as the database takes from one operation may wait for it (src/db/batcher.ts).
 */
const CONCURRENT_MAX = 1_024;
/** Authorization headers whose merchant is remembered. A process is called by fewer keys than that. */
const REMEMBERED_MAX = 10_000;

const RETRY_AFTER_SECONDS = 1;

type MerchantId = Merchant['id'];

/** Requests that are not authenticated yet share one place in turn. */
const UNKNOWN = 'unknown';

/** The client whose share a request takes while it is worked on. */
type Client = MerchantId | typeof UNKNOWN;

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while the request is counted by the admission control. */
    countedFor: Client | undefined;
  }
}

/**
 * Admission control: bounds the requests that are worked on at the same time, with a fair share for each
 * merchant.
 *
 * Below the bound, every request is admitted. At the bound only clients are admitted that have less than an
 * equal share of it inside, so a merchant that floods the service keeps no other out. All others are refused
 * at once (`91`).
 *
 * The decision comes before authentication, which costs a query for an unknown key. A merchant is recognized
 * by the hash of an Authorization header that has been authenticated before. The key id alone would not do:
 * anyone who knows it could use up the merchant's share.
 */
export class AdmissionControl {
  #total = 0;
  /** Requests inside, by client; a client without any has no entry. */
  readonly #inside = new Map<Client, number>();
  /** By hash of the Authorization header, the oldest first. */
  readonly #merchants = new Map<string, MerchantId>();
  /** What the key cache returned last for each key: its header need not be hashed again. */
  readonly #remembered = new WeakSet<Merchant>();

  /**
   * Counts a request from here until `leave`.
   * @throws Refusal `91` where the service is full and the client has its share
   */
  enter(request: FastifyRequest): void {
    const client = this.#total < CONCURRENT_MAX ? UNKNOWN : this.#admitToFull(request);
    this.#total++;
    this.#count(request, client);
  }

  /** Counts an admitted request for its merchant once it has been authenticated. */
  recognize(request: FastifyRequest, merchant: Merchant): void {
    if (!this.#remembered.has(merchant)) this.#remember(request, merchant);
    if (request.countedFor === undefined || request.countedFor === merchant.id) return;
    this.#discount(request.countedFor);
    this.#count(request, merchant.id);
  }

  /** Forgets a header whose credentials have been refused. */
  forget({ headers }: FastifyRequest): void {
    if (this.#merchants.size > 0) this.#merchants.delete(nameOf(headers.authorization));
  }

  /** Ends the count of a request. To be called once its work is done; a second call has no effect. */
  leave(request: FastifyRequest): void {
    if (request.countedFor === undefined) return;
    this.#discount(request.countedFor);
    request.countedFor = undefined;
    this.#total--;
  }

  #admitToFull({ headers }: FastifyRequest): Client {
    const client = this.#merchants.get(nameOf(headers.authorization)) ?? UNKNOWN;
    const inside = this.#inside.get(client) ?? 0;
    const clients = inside > 0 ? this.#inside.size : this.#inside.size + 1;
    // The n-th client is admitted up to 1/n of the bound, so the total stays below the bound times (1 + ln
    // n).
    if (inside >= CONCURRENT_MAX / clients)
      throw new Refusal('91', { retryAfterSeconds: RETRY_AFTER_SECONDS });
    return client;
  }

  #remember({ headers }: FastifyRequest, merchant: Merchant): void {
    this.#remembered.add(merchant);
    const name = nameOf(headers.authorization);
    this.#merchants.delete(name);
    this.#merchants.set(name, merchant.id);
    if (this.#merchants.size > REMEMBERED_MAX)
      this.#merchants.delete(this.#merchants.keys().next().value as string);
  }

  #count(request: FastifyRequest, client: Client): void {
    request.countedFor = client;
    this.#inside.set(client, (this.#inside.get(client) ?? 0) + 1);
  }

  #discount(client: Client): void {
    const left = (this.#inside.get(client) ?? 0) - 1;
    if (left > 0) this.#inside.set(client, left);
    else this.#inside.delete(client);
  }
}

/** A header is remembered by its hash: no list of secrets lies in memory. */
function nameOf(authorization = ''): string {
  return hash('sha256', authorization, 'binary');
}
