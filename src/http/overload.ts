import { hash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Merchant } from '../context.ts';
import { Refusal } from '../refusal.ts';

/**
 * Places that clients share. Below the limit, every client is admitted. At the limit, a client is admitted
 * only if it has less than an equal share of the places, so a client that floods the service does not exclude
 * others. The n-th client is admitted up to 1/n of the limit, so the total stays below the limit times
 * (1 + ln n).
 */
export class Shares<Client> {
  readonly #max: number;
  #total = 0;
  /** Places in use, by client. A client without any has no entry. */
  readonly #inside = new Map<Client, number>();

  constructor(max: number) {
    this.#max = max;
  }

  get isFull(): boolean {
    return this.#total >= this.#max;
  }

  /** Whether a client may take another place. */
  hasPlace(client: Client): boolean {
    if (!this.isFull) return true;
    const inside = this.#inside.get(client) ?? 0;
    const clients = inside > 0 ? this.#inside.size : this.#inside.size + 1;
    return inside < this.#max / clients;
  }

  /** Takes a place, whether there is one or not. */
  take(client: Client): void {
    this.#total++;
    this.#inside.set(client, (this.#inside.get(client) ?? 0) + 1);
  }

  /** Gives a place back. */
  leave(client: Client): void {
    this.#total--;
    const left = (this.#inside.get(client) ?? 0) - 1;
    if (left > 0) this.#inside.set(client, left);
    else this.#inside.delete(client);
  }
}

/**
 * The maximum of requests in progress. A thousand simultaneous copies of one request are all answered. As
 * many requests as the database takes from one operation may wait for it (src/db/batcher.ts).
 */
const CONCURRENT_MAX = 1_024;
/**
 * The number of Authorization headers whose merchant is remembered. Fewer keys than this call one process.
 */
const REMEMBERED_MAX = 10_000;

type MerchantId = Merchant['id'];

/** Requests that are not yet authenticated share one place in turn. */
const UNKNOWN = 'unknown';

/** The client to which a request in progress is attributed. */
type Client = MerchantId | typeof UNKNOWN;

declare module 'fastify' {
  interface FastifyRequest {
    /** Set while the request is counted by the admission control. */
    countedFor: Client | undefined;
  }
}

/**
 * Admission control: limits the requests in progress, with a fair share for each merchant. A
 * request without a place is refused at once (`91`).
 *
 * The decision is made before authentication, which costs a query for an unknown key. A merchant is
 * recognized by the hash of an Authorization header that was authenticated before. The key id alone would not
 * be enough: anyone who knows it could use up the merchant's share.
 */
export class AdmissionControl {
  readonly #shares = new Shares<Client>(CONCURRENT_MAX);
  /** Merchants by the hash of the Authorization header, oldest first. */
  readonly #merchants = new Map<string, MerchantId>();
  /** The key cache's last result for each key, whose header need not be hashed again. */
  readonly #remembered = new WeakSet<Merchant>();

  /**
   * Counts a request until `leave` is called.
   * @throws Refusal `91` if the service is full and the client has its share
   */
  enter(request: FastifyRequest): void {
    const client = this.#shares.isFull ? this.#admitToFull(request) : UNKNOWN;
    this.#shares.take(client);
    request.countedFor = client;
  }

  /** Attributes an admitted request to its merchant after authentication. */
  recognize(request: FastifyRequest, merchant: Merchant): void {
    if (!this.#remembered.has(merchant)) this.#remember(request, merchant);
    if (request.countedFor === undefined || request.countedFor === merchant.id) return;
    this.#shares.leave(request.countedFor);
    this.#shares.take(merchant.id);
    request.countedFor = merchant.id;
  }

  /** Forgets a header with refused credentials. */
  forget({ headers }: FastifyRequest): void {
    if (this.#merchants.size > 0) this.#merchants.delete(nameOf(headers.authorization));
  }

  /** Ends the count of a request after its work is done. A second call has no effect. */
  leave(request: FastifyRequest): void {
    if (request.countedFor === undefined) return;
    this.#shares.leave(request.countedFor);
    request.countedFor = undefined;
  }

  #admitToFull({ headers }: FastifyRequest): Client {
    const client = this.#merchants.get(nameOf(headers.authorization)) ?? UNKNOWN;
    if (!this.#shares.hasPlace(client)) throw new Refusal('91');
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
}

/** Returns the hash by which a header is remembered, so that memory contains no list of secrets. */
function nameOf(authorization = ''): string {
  return hash('sha256', authorization, 'binary');
}
