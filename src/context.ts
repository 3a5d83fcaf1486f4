import { EventEmitter } from 'node:events';
import { Batcher } from './db/batcher.ts';
import type { Buckets } from './db/buckets.ts';
import { type Database, type Queries, within } from './db/pool.ts';
import type { KeyRing } from './keyring/ring.ts';
import type { Logger } from './log.ts';
import type { Deployment } from './monitor/doctor.ts';
import type { Metrics } from './monitor/metrics.ts';
import { Readiness } from './monitor/readiness.ts';
import type { Tracing } from './monitor/tracing.ts';
import { Tally } from './tally.ts';

/**
 * The resources of a process, which live as long as the process: the database and its buckets, the key ring,
 * the logger and the clock, which tests can move.
 */
export type Service = {
  readonly db: Database;
  /**
   * The database for lists and reports, which may be a standby; the database itself if there is none.
   * Decisions never read from it.
   */
  readonly readDb: Database;
  /** Batches the calls of the hot path. */
  readonly batcher: Batcher;
  readonly buckets: Buckets;
  readonly keys: KeyRing;
  readonly log: Logger;
  readonly clock: () => Date;
  /** The time of the world outside, which differs from `clock` in a sandbox whose clock was advanced. */
  readonly wallClock: () => Date;
  /** Whether webhooks may be sent to http and private addresses: only for development. */
  readonly allowPrivateWebhooks?: boolean;
  /** The metrics of the process; undefined if they are off. */
  readonly metrics?: Metrics | undefined;
  /** Whether the settings turn metrics on for the service, even if this process is only a command. */
  readonly hasMetrics?: boolean;
  /** Returns what the process stands on, for the checks of an installation. */
  readonly deployment: () => Promise<Deployment>;
  /** The traces of the process; undefined if they are off. */
  readonly tracing?: Tracing | undefined;
  /** Emits `added` for background work that this process has added, so that it begins at once. */
  readonly jobs: EventEmitter;
  /** Whether this process can serve tills. */
  readonly readiness: Readiness;
  /** The refused requests that are to be in the audit. */
  readonly refusals: Tally<RefusedEvent>;
  /** What the parts of the process keep in memory for this service, by what makes it (`kept`). */
  readonly memory: Map<unknown, unknown>;
};

/** What a service makes for itself unless it is given. */
type Standard = Pick<Service, 'jobs' | 'wallClock' | 'readiness' | 'refusals'>;
type Resources = Omit<Service, 'batcher' | 'memory' | keyof Standard> & Partial<Standard>;

export function createService(resources: Resources): Service {
  return {
    ...resources,
    jobs: resources.jobs ?? new EventEmitter(),
    wallClock: resources.wallClock ?? resources.clock,
    readiness: resources.readiness ?? new Readiness(resources.log),
    refusals: resources.refusals ?? new Tally(),
    memory: new Map(),
    batcher: new Batcher(resources.db, resources),
  };
}

/** Returns a service that works in a transaction. */
export function inside(service: Service, tx: Queries): Service {
  const db = within(service.db, tx);
  return createService({ ...service, db, readDb: db });
}

/**
 * Declares what a part keeps in memory for each service, such as a cache or a queue.
 * @param make makes it when it is first asked for
 * @returns a function that returns what is kept for a service
 */
export function kept<Value>(make: (service: Service) => Value): (service: Service) => Value {
  return (service) => {
    const { memory } = service;
    if (!memory.has(make)) memory.set(make, make(service));
    return memory.get(make) as Value;
  };
}

/** Declares work that a service does one piece at a time: a call ends after the earlier ones. */
export function inOrder<Args extends readonly unknown[]>(
  run: (service: Service, ...args: Args) => Promise<void>,
): (service: Service, ...args: Args) => Promise<void> {
  const last = kept(() => ({ done: Promise.resolve() }));
  return (service, ...args) => {
    const before = last(service);
    before.done = before.done.catch(() => undefined).then(() => run(service, ...args));
    return before.done;
  };
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

/** The merchant of a request, as of its key's last look-up (at most a second ago). */
export type Merchant = {
  readonly id: number;
  readonly name: string;
  readonly permissions: ReadonlySet<string>;
  /** Whether an unknown code gets the answer of a wrong PIN (`14`), so that the two cannot be told apart. */
  readonly opaque: boolean;
  readonly suspended: boolean;
  /** Whether it, or one of its keys, has a daily limit. */
  readonly isLimited: boolean;
  readonly defaultProductId: number;
};

/** The caller, the service and the time: the first argument of every operation of a merchant. */
export type Context = {
  readonly service: Service;
  readonly merchant: Merchant;
  /** The API key, or a name for the callers without one: `operator`, `portal-5`. */
  readonly keyId: string;
  readonly now: Date;
  /** The id of the HTTP request; left out for others. */
  readonly requestId?: string | undefined;
};

/**
 * The kind of an actor. `break-glass`: the command line, without the approval that an operation needs;
 * `alone`: a user without that approval, before there were two people; `service`: the service itself, in the
 * background.
 */
export const ACTOR_KINDS = ['command-line', 'break-glass', 'token', 'user', 'alone', 'service'] as const;
export type ActorKind = (typeof ACTOR_KINDS)[number];

/** The operator, the machine and the reason: the author of a change in the audit. */
export type Actor = {
  readonly kind: ActorKind;
  /** The id of the token or the user; null for others. */
  readonly id: string | null;
  readonly name: string;
  readonly origin: string;
  /** The id of the HTTP request; null for others. */
  readonly requestId: string | null;
  readonly reason: string | null;
  /** Who approved what the actor proposed; left out without an approval. */
  readonly approvedBy?: string;
};

/** Returns the service itself as the author of a change. */
export const byService = (origin: string, reason: string | null): Actor => ({
  kind: 'service',
  id: null,
  name: 'scrip',
  origin,
  requestId: null,
  reason,
});

/** Money that an operator moves by hand: not by a till, and not by a rule. */
export type Moved = {
  readonly currency: string;
  readonly minor: bigint;
  /** Whom or what it concerns, as in the audit, such as `merchant 5` and `voucher 10000000064`. */
  readonly subjects: readonly string[];
};

/** The actor and the service: the first argument of every operation of an operator. */
export type Operator = {
  readonly service: Service;
  readonly actor: Actor;
  /** Receives what is moved by hand, where it is counted against limits. */
  readonly onMoved?: (moved: Moved) => void;
};

/** A request that was refused, for the audit. */
export type RefusedEvent = {
  readonly action:
    | 'session.refused'
    | 'session.step-up-refused'
    | 'account.locked'
    | 'token.refused'
    | 'operation.refused';
  /** What was refused, such as `user 5` or `operation float.refund`. */
  readonly subject: string;
  /** Who was refused, if that is known; null for a stranger. */
  readonly actor: Actor | null;
  readonly address: string;
  readonly requestId: string;
  /** How it was tried, such as `password`. */
  readonly by: string | null;
};
