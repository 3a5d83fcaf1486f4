import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import { plainArray } from '../db/sql.ts';
import { type Delivery, makeBodies, type ReadBatch } from './body.ts';
import { CLAIM_DELIVERIES, releaseDeliveries } from './deliver.queries.ts';
import { ownerOf } from './endpoints.ts';
import { prune } from './prune.ts';
import type { Attempt, Prepared, Sender } from './send.ts';
import { type Made, settle } from './settle.ts';
import { signedHeaders } from './sign.ts';

/** How late an event is noticed at most. A notification of every redemption would make all commits wait for one lock. */
const POLL_MS = 200;
/** Under way at one endpoint: enough to keep a fast one busy, little enough that it is no flood. */
const ROOM_EACH = 64;
/** At one that fails, so that a few hundred dead ones leave room for all others. */
const ROOM_FAILING = 2;
/** Under way in this process: each holds a socket. */
const ROOM_ALL = 1_024;
/** Taken by one statement: what is prepared at once must not hold up the calls at the till. */
const MOST_CLAIMED = 128;
/** A sender that has not told what became of a delivery by then is dead: well above the receiver's time to answer. */
export const LEASE_MS = 25_000;
/** What is under way when the service stops gets this long; then it is given back to be sent again. */
const GRACE_MS = 3_000;
const PRUNE_MS = 600_000;

/** Signs a delivery by the secrets that hold now. */
export function prepare({ keys, clock }: Service, delivery: Delivery, body: string): Prepared {
  const owner = ownerOf(delivery.endpoint_id);
  const sealed = delivery.previous_secret ? [delivery.secret, delivery.previous_secret] : [delivery.secret];
  const secrets = sealed.map((each) => keys.openText(owner, each));
  return { url: delivery.url, headers: signedHeaders(delivery.event_id, body, secrets, clock()), body };
}

/** Sends what is due, for as long as the process lives. Any number of processes may do so side by side. */
export function startDelivery(service: Service, sender: Sender, read: ReadBatch): { stop(): Promise<void> } {
  const deliverer = new Deliverer(service, sender, read);
  const running = deliverer.run();
  return {
    async stop() {
      await deliverer.stop();
      await running;
      await sender.close();
    },
  };
}

class Deliverer {
  readonly #service: Service;
  readonly #sender: Sender;
  readonly #read: ReadBatch;
  readonly #stopping = new AbortController();
  readonly #hurrying = new AbortController();
  readonly #underWay = new Map<number, number>();
  #all = 0;
  #behind = 0;
  #made: Made[] = [];
  #recording = false;
  /** Resolved, and followed by another one, whenever there is room again. */
  #progress = Promise.withResolvers<void>();

  constructor(service: Service, sender: Sender, read: ReadBatch) {
    this.#service = service;
    this.#sender = sender;
    this.#read = read;
  }

  async run(): Promise<void> {
    const { log } = this.#service;
    let pruneAt = Date.now() + PRUNE_MS;
    while (!this.#stopping.signal.aborted) {
      const room = this.#progress.promise;
      const claimed = await this.#claim().catch((error: Error) => {
        log.warn({ part: 'webhooks', error: error.message }, 'deliveries cannot be read');
        return 0;
      });
      await (claimed > 0 ? Promise.race([room, this.#pause()]) : this.#pause());
      if (Date.now() < pruneAt) continue;
      pruneAt = Date.now() + PRUNE_MS;
      void prune(this.#service).catch((error: Error) =>
        log.warn({ part: 'webhooks', error: error.message }, 'old attempts cannot be deleted'),
      );
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const hurry = setTimeout(() => this.#hurrying.abort(), GRACE_MS);
    while (this.#all > 0) await Promise.race([this.#progress.promise, sleep(POLL_MS)]);
    clearTimeout(hurry);
  }

  #pause(): Promise<void> {
    return sleep(POLL_MS, undefined, { signal: this.#stopping.signal }).catch(() => {});
  }

  async #claim(): Promise<number> {
    const { db, clock, log } = this.#service;
    const all = Math.min(MOST_CLAIMED, ROOM_ALL - this.#all);
    if (all <= 0) return 1;
    const now = clock();
    const deliveries = await db.hot<Delivery>(CLAIM_DELIVERIES, [
      plainArray([...this.#underWay.keys()]),
      plainArray([...this.#underWay.values()]),
      ROOM_EACH,
      ROOM_FAILING,
      all,
      this.#behind,
      now,
      new Date(now.getTime() + LEASE_MS),
    ]);
    this.#behind = lastServed(deliveries, this.#behind, all);
    for (const { endpoint_id } of deliveries)
      this.#underWay.set(endpoint_id, (this.#underWay.get(endpoint_id) ?? 0) + 1);
    this.#all += deliveries.length;
    if (deliveries.length === 0) return 0;
    const bodies = await makeBodies(this.#service, deliveries, this.#read).catch((error: Error) => {
      log.warn({ part: 'webhooks', error: error.message }, 'deliveries cannot be prepared');
      return undefined;
    });
    deliveries.forEach((delivery, index) => {
      const body = bodies?.[index];
      if (body === undefined) void this.#release(delivery);
      else void this.#send(delivery, body);
    });
    return deliveries.length;
  }

  async #send(delivery: Delivery, body: string | Error): Promise<void> {
    const { clock, log } = this.#service;
    let attempt: Attempt;
    try {
      if (body instanceof Error) throw body;
      attempt = await this.#sender.send(prepare(this.#service, delivery, body), this.#hurrying.signal);
    } catch (error) {
      // Nothing that the receiver did: a key that is missing from the ring, or a bug. It is tried again like any failure.
      log.error({ part: 'webhooks', event: delivery.event_id, error: (error as Error).message }, 'cannot be sent');
      const failed = { status: null, error: 'it could not be prepared: see the log', retryAfterMs: undefined };
      attempt = { attemptedAt: clock(), durationMs: 0, ...failed };
    }
    if (attempt.error !== null && this.#hurrying.signal.aborted) return this.#release(delivery);
    this.#made.push({ delivery, attempt });
    if (!this.#recording) await this.#record();
  }

  /** What has come in while the last record was written is written by the next one. */
  async #record(): Promise<void> {
    this.#recording = true;
    while (this.#made.length > 0) {
      const made = this.#made;
      this.#made = [];
      try {
        await settle(this.#service, made);
      } catch (error) {
        this.#service.log.warn({ part: 'webhooks', error: (error as Error).message }, 'attempts cannot be recorded');
        // What is never recorded is sent again when its lease ends; with the service on its way out that is the way.
        if (!this.#stopping.signal.aborted) {
          this.#made.unshift(...made);
          await this.#pause();
          continue;
        }
      }
      this.#free(made.map(({ delivery }) => delivery));
    }
    this.#recording = false;
  }

  async #release(delivery: Delivery): Promise<void> {
    const ids = [plainArray([delivery.endpoint_id]), plainArray([delivery.event_id])] as const;
    await this.#service.db.query(releaseDeliveries(...ids, this.#service.clock())).catch(() => {});
    this.#free([delivery]);
  }

  #free(deliveries: readonly Delivery[]): void {
    for (const { endpoint_id } of deliveries) {
      const left = (this.#underWay.get(endpoint_id) ?? 1) - 1;
      if (left > 0) this.#underWay.set(endpoint_id, left);
      else this.#underWay.delete(endpoint_id);
    }
    this.#all -= deliveries.length;
    this.#progress.resolve();
    this.#progress = Promise.withResolvers();
  }
}

/** Where the turns of the endpoints go on: behind the last one served, or from the start where all were. */
function lastServed(deliveries: readonly Delivery[], behind: number, asked: number): number {
  if (deliveries.length < asked) return 0;
  const ids = deliveries.map(({ endpoint_id }) => endpoint_id);
  const again = ids.filter((id) => id <= behind);
  return Math.max(...(again.length > 0 ? again : ids));
}
