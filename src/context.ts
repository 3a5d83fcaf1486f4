import { Batcher } from './db/batcher.ts';
import type { Buckets } from './db/buckets.ts';
import type { Database } from './db/pool.ts';
import type { KeyRing } from './keyring/ring.ts';
import type { Logger } from './log.ts';
import type { Metrics } from './metrics.ts';

/**
 * What a process is given: the database and its buckets, the key ring, the logger and the clock (tests
 * move it).
 */
type Resources = {
  readonly db: Database;
  /**
   * For lists and reports, which may be answered by a standby; the database itself where there is none.
   * Never for a decision.
   */
  readonly readDb: Database;
  readonly buckets: Buckets;
  readonly keys: KeyRing;
  readonly log: Logger;
  readonly clock: () => Date;
  /** Whether webhooks may be sent to http and private addresses: for development only. */
  readonly allowPrivateWebhooks?: boolean;
  /** Where the process counts what it does; left out where no metrics are wanted. */
  readonly metrics?: Metrics | undefined;
};

/** What a process holds for its life. */
export type Service = Resources & {
  /** Gathers the calls of the hot path. */
  readonly batcher: Batcher;
};

export function createService(resources: Resources): Service {
  return { ...resources, batcher: new Batcher(resources.db, resources.metrics) };
}

/** Whether a reference and its voucher may lie on different shards (docs/how-to/citus.md). */
export function isSharded({ buckets }: Pick<Service, 'buckets'>): boolean {
  return buckets.all.length > 1;
}

export const PERMISSIONS = [
  'generate',
  'download',
  'activate',
  'balance',
  'redeem',
  'update-redemption',
] as const;
export type Permission = (typeof PERMISSIONS)[number];

/**
 * The merchant on whose behalf a request is made, as its key's last look-up found it (at most a second ago).
 */
export type Merchant = {
  readonly id: number;
  readonly name: string;
  readonly permissions: ReadonlySet<string>;
  /** An unknown code and a wrong PIN are told apart, unless the merchant is opaque (then both are `14`). */
  readonly opaque: boolean;
  readonly suspended: boolean;
  readonly defaultProductId: number;
};

/**
 * Who asks, with which service, at what time: the first argument of everything that a merchant can ask for.
 */
export type Context = {
  readonly service: Service;
  readonly merchant: Merchant;
  readonly keyId: string;
  readonly now: Date;
};

/**
 * What an actor is. `break-glass`: the command line, with what two people would have to agree on;
 * `service`: the service itself, in the background.
 */
export type ActorKind = 'command-line' | 'break-glass' | 'token' | 'user' | 'service';

/** Who operates the service, from where, and why: the author of a change in the audit. */
export type Actor = {
  readonly kind: ActorKind;
  /** Of the token or the user; null for others. */
  readonly id: string | null;
  readonly name: string;
  readonly origin: string;
  /** Of the request over HTTP; null for others. */
  readonly requestId: string | null;
  readonly reason: string | null;
};

/** Who operates, with which service: the first argument of everything that only an operator can ask for. */
export type Operator = { readonly service: Service; readonly actor: Actor };
