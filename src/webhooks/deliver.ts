import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../context.ts';
import { type HotStatement, plainArray, sql } from '../db/sql.ts';
import { warningsOf } from '../log.ts';
import { ownerOf } from './endpoints.ts';
import { type Delivery, makeBodies, type ReadBatch } from './outbox.ts';
import { judgeEndpoints, type Made, recordAttempts } from './record.ts';
import { type Attempt, type Prepared, type Sender, signedHeaders } from './send.ts';

/** The function of sql/013-deliveries.sql. */
export const CLAIM_DELIVERIES: HotStatement = {
  name: 'claim-deliveries',
  background: true,
  text: `
select endpoint_id as "endpointId", event_id as "eventId", type, subject_id as "subjectId", data,
  occurred_at as "occurredAt", attempts, tries, url, full_vouchers as "full", secret,
  previous_secret as "previousSecret", failing_since as "failingSince"
from claim_deliveries($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
};

/**
 * The longest delay of an event. A notification for every redemption would make all commits wait for one
 * lock.
 */
const POLL_MS = 200;
/** The most deliveries in flight at one endpoint: enough for a fast one, too few to flood it. */
const ENDPOINT_MAX = 64;
/** The same limit for a failing endpoint, so that hundreds of dead ones leave capacity for all others. */
const FAILING_ENDPOINT_MAX = 2;
/** The most deliveries in flight in this process. Each holds a socket. */
const IN_FLIGHT_MAX = 1_024;
/** The most deliveries of one claim: preparing them must not delay the calls of tills. */
const CLAIM_MAX = 128;
/** The most buckets that are asked at once, and the longest pause of one in which nothing was due. */
const CLAIMS_AT_ONCE = 4;
const IDLE_MAX_MS = 1_600;
/** The most endpoints that one claim visits. With a thousand dead ones, each is visited once a second. */
const VISITS_MAX = 200;
/** The time after which a sender without a report is dead. It is longer than the time limit of receivers. */
export const LEASE_MS = 25_000;
/**
 * The time that deliveries in flight have when the service stops. Then they are released, to be sent again.
 */
const GRACE_MS = 3_000;

/**
 * Signs a delivery with the secrets that are currently valid. Receivers compare the time of a signature with
 * their own clocks.
 */
export function prepare({ keys, wallClock }: Service, delivery: Delivery, body: string): Prepared {
  const { endpointId, eventId, url, secret, previousSecret } = delivery;
  const sealed = previousSecret ? [secret, previousSecret] : [secret];
  const secrets = sealed.map((each) => keys.openText(ownerOf(endpointId), each));
  return { url, headers: signedHeaders(eventId, body, secrets, wallClock()), body };
}

/** Sends deliveries that are due until it is stopped. Any number of processes can run it at the same time. */
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
  readonly #warn: ReturnType<typeof warningsOf>;
  readonly #sender: Sender;
  readonly #read: ReadBatch;
  readonly #stopping = new AbortController();
  readonly #abandoning = new AbortController();
  /** The number of deliveries in flight of each endpoint. */
  readonly #inFlight = new Map<number, number>();
  /** For each bucket, the endpoint after which the next claim continues. */
  readonly #next = new Map<number, number>();
  /** The buckets in which nothing was due, and when they are asked again. */
  readonly #idle = new Map<number, { readonly pauseMs: number; readonly until: number }>();
  #all = 0;
  #made: Made[] = [];
  #recording = false;
  /** Resolved, and replaced by a new promise, whenever there is capacity again. */
  #progress = Promise.withResolvers<void>();

  constructor(service: Service, sender: Sender, read: ReadBatch) {
    this.#service = service;
    this.#warn = warningsOf(service.log, 'webhooks');
    this.#sender = sender;
    this.#read = read;
  }

  async run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const room = this.#progress.promise;
      const claimed = await this.#claimAll();
      await (claimed > 0 ? Promise.race([room, this.#pause()]) : this.#pause());
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    const grace = setTimeout(() => this.#abandoning.abort(), GRACE_MS);
    while (this.#all > 0) await Promise.race([this.#progress.promise, sleep(POLL_MS)]);
    clearTimeout(grace);
  }

  #pause(): Promise<void> {
    return sleep(POLL_MS, undefined, { signal: this.#stopping.signal }).catch(() => {});
  }

  /**
   * Claims deliveries that are due in the buckets, several at once. A bucket that is down does not delay the
   * others, and one in which nothing is due is asked less often: with many buckets, all those questions would
   * keep the database busy.
   * @returns how many were claimed
   */
  async #claimAll(): Promise<number> {
    const now = performance.now();
    const asked = this.#service.buckets.all.filter((bucket) => (this.#idle.get(bucket)?.until ?? 0) <= now);
    const atOnce = Math.min(CLAIMS_AT_ONCE, asked.length);
    let claimed = 0;
    const claimNext = async () => {
      for (let bucket = asked.pop(); bucket !== undefined; bucket = asked.pop()) {
        const room = Math.min(CLAIM_MAX, Math.floor((IN_FLIGHT_MAX - this.#all) / atOnce));
        if (room <= 0) return void claimed++;
        const count = await this.#claim(bucket, room).catch((error: Error) => {
          this.#warn(error, 'deliveries cannot be read');
          return 0;
        });
        claimed += count;
        this.#restBucket(bucket, count > 0);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, claimNext));
    return claimed;
  }

  /** Doubles the pause of a bucket in which nothing was due; the only bucket of a server never rests. */
  #restBucket(bucket: number, isBusy: boolean): void {
    if (isBusy || this.#service.buckets.all.length === 1) return void this.#idle.delete(bucket);
    const pauseMs = Math.min(IDLE_MAX_MS, 2 * (this.#idle.get(bucket)?.pauseMs ?? POLL_MS / 2));
    this.#idle.set(bucket, { pauseMs, until: performance.now() + pauseMs });
  }

  async #claim(bucket: number, room: number): Promise<number> {
    const { db, clock } = this.#service;
    const now = clock();
    const leaseUntil = new Date(now.getTime() + LEASE_MS);
    const rows = await db.hot<Delivery>(
      CLAIM_DELIVERIES,
      [
        bucket,
        this.#next.get(bucket) ?? 0,
        plainArray([...this.#inFlight.keys()]),
        plainArray([...this.#inFlight.values()]),
        ENDPOINT_MAX,
        FAILING_ENDPOINT_MAX,
        room,
        VISITS_MAX,
        now,
        leaseUntil,
      ],
      bucket,
    );
    // The last row is not a delivery: it names the endpoint after which the next claim continues.
    this.#next.set(bucket, rows.at(-1)?.endpointId ?? 0);
    const deliveries = rows.slice(0, -1).map((row) => ({ ...row, bucket, leaseUntil }));
    for (const { endpointId } of deliveries)
      this.#inFlight.set(endpointId, (this.#inFlight.get(endpointId) ?? 0) + 1);
    this.#all += deliveries.length;
    if (deliveries.length === 0) return 0;
    const bodies = await makeBodies(this.#service, deliveries, this.#read).catch((error: Error) => {
      this.#warn(error, 'deliveries cannot be prepared');
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
    const { clock, log, tracing } = this.#service;
    const { eventId, type, endpointId, attempts } = delivery;
    const span = tracing?.attempt({ eventId, type, endpointId, attempt: attempts + 1 });
    let attempt: Attempt;
    try {
      if (body instanceof Error) throw body;
      attempt = await this.#sender.send(prepare(this.#service, delivery, body), this.#abandoning.signal);
    } catch (error) {
      // Not the receiver's fault: a key is missing from the ring, or there is a bug. It is tried again like
      // any other failure.
      log.error({ part: 'webhooks', event: eventId, error: (error as Error).message }, 'cannot be sent');
      const failed = {
        status: null,
        error: 'it could not be prepared: see the log',
        retryAfterMs: undefined,
      };
      attempt = { attemptedAt: clock(), durationMs: 0, ...failed };
    }
    span?.end(attempt.status, attempt.error);
    if (attempt.error !== null && this.#abandoning.signal.aborted) return this.#release(delivery);
    this.#made.push({ delivery, attempt });
    if (!this.#recording) await this.#record();
  }

  /** Records attempts. Those that end while a record is written go into the next one. */
  async #record(): Promise<void> {
    this.#recording = true;
    while (this.#made.length > 0) {
      const made = this.#made;
      this.#made = [];
      try {
        await recordAttempts(this.#service, made);
      } catch (error) {
        this.#warn(error, 'attempts cannot be recorded');
        // An unrecorded delivery is sent again when its lease ends, so nothing is lost if the service stops.
        if (!this.#stopping.signal.aborted) {
          this.#made.unshift(...made);
          await this.#pause();
          continue;
        }
      }
      // The places are free now, whatever happens with the endpoints.
      this.#free(made.map(({ delivery }) => delivery));
      await judgeEndpoints(this.#service, made).catch((error: Error) =>
        this.#warn(error, 'endpoints cannot be judged'),
      );
    }
    this.#recording = false;
  }

  async #release(delivery: Delivery): Promise<void> {
    const { db, clock } = this.#service;
    const { bucket, endpointId, eventId, leaseUntil } = delivery;
    // Unless another sender has taken it over. Without an answer of the database, its lease ends by itself.
    const statement = sql`
update webhook_deliveries set due_at = ${clock()}
where bucket = ${bucket} and endpoint_id = ${endpointId} and event_id = ${eventId}
  and due_at = ${leaseUntil} and finished_at is null`;
    await db.query(statement).catch(() => {});
    this.#free([delivery]);
  }

  #free(deliveries: readonly Delivery[]): void {
    for (const { endpointId } of deliveries) {
      const left = (this.#inFlight.get(endpointId) ?? 1) - 1;
      if (left > 0) this.#inFlight.set(endpointId, left);
      else this.#inFlight.delete(endpointId);
    }
    this.#all -= deliveries.length;
    this.#progress.resolve();
    this.#progress = Promise.withResolvers();
  }
}
