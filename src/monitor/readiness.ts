import {
  isClockRefused,
  isConnectionRefused,
  isOfTls,
  isUnavailable,
  STANDBY,
  sqlState,
} from '../db/errors.ts';
import { elapsed } from '../db/health.ts';
import type { Database } from '../db/pool.ts';
import type { HotStatement } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { checkKeyRing } from '../keyring/store.ts';
import { type Logger, onceAMinute } from '../log.ts';
import { Refusal } from '../refusal.ts';

/**
 * Whether this process can serve tills, and why not. An outage of the database is logged with its cause when
 * calls begin to be refused, again each minute, and when it is over.
 */

/**
 * Checks that the pool of the tills has a free connection, and that the server accepts bookings of this time.
 * Returns `writable`: a server that is full, for example, may only be read.
 */
export const CHECK_BOOKING: HotStatement = {
  name: 'check-booking',
  text: "select current_setting('transaction_read_only') = 'off' as writable from check_stamp($1)",
  background: true,
};

/** The causes, each with what it means for the operator. */
const CAUSES = {
  'database-away': 'the database does not answer: check that it runs and can be reached',
  'read-only':
    'the database takes no writes: it is a standby, it recovers, or default_transaction_read_only is on',
  'disk-full': 'the disk of the database is full: free space, nothing has to be restarted',
  connections: 'the database has no connection left: raise max_connections, or start fewer processes',
  resources: 'the database has no memory left, or not enough of another resource: look at its own log',
  storage: 'the database cannot read or write one of its files: look at its own log, and at its disk',
  credentials: 'the database refuses the account: check user, password and database of SCRIP_DATABASE_URL',
  tls: 'no connection by TLS: check the certificate of the database, sslmode and sslrootcert',
  clock: 'the clock of this machine differs from that of the database, or was set back: set it right',
  slow: 'statements take too long: look for locks and load in the database',
  'key-missing': 'the key ring of this process lacks a key that others use: give it the same keys',
  schema: 'a table or function is missing or forbidden: is the schema that of this release?',
} as const;

type Cause = keyof typeof CAUSES;

/** Why calls are refused. During an overload a process is ready: it serves other calls meanwhile. */
const REASONS = {
  ...CAUSES,
  overload: 'too many calls wait: look for a merchant that floods, and for what slows the database down',
} as const;

export const CAUSE_NAMES = Object.keys(CAUSES) as readonly Cause[];

/** The time limit of the check. Calls that wait longer for the database are not served well. */
const CHECK_TIMEOUT_MS = 1_000;
/** An outage is over when nothing was refused for this long. Single calls may succeed in its middle. */
const QUIET_MS = 2_000;
/** Causes that calls of tills meet, and seldom the check, which writes nothing. */
const OF_BOOKINGS = ['disk-full', 'resources', 'storage', 'slow'] as const;
/** The process is not ready for this long after one of them refused a call of a till… */
const OF_BOOKINGS_MS = 5_000;
/** … unless a booking succeeded this recently: a lock on one voucher, for example, stops no others. */
const BOOKED_MS = 1_000;

/** System errors of PostgreSQL, whose messages contain no values of statements. */
const SYSTEM = /^(53|57|58|XX)/;

function causeOf(error: unknown): Cause {
  const state = sqlState(error);
  const { code, message = '' } = (error ?? {}) as { code?: unknown; message?: string };
  if (state === '53100') return 'disk-full';
  if (state === '53300') return 'connections';
  if (state?.startsWith('53')) return 'resources';
  if (state?.startsWith('58')) return 'storage';
  if (/^(28|3D)/.test(state ?? '') || isConnectionRefused(error)) return 'credentials';
  if (state === STANDBY) return 'read-only';
  if (isOfTls(error)) return 'tls';
  if (isClockRefused(error)) return 'clock';
  if (code === 'EKEYMISSING') return 'key-missing';
  if (
    // Statements keep all connections of the process: the server has others.
    code === 'EPOOLEXHAUSTED' ||
    state === '57014' ||
    state === '55P03' ||
    /^(40|25P03)/.test(state ?? '') ||
    /read timeout/.test(message)
  )
    return 'slow';
  if (/^(3F|42)/.test(state ?? '')) return 'schema';
  return 'database-away';
}

type Outage = {
  readonly since: number;
  readonly due: () => number;
  refusedAt: number;
  /** When it last refused a call of a till. */
  tillRefusedAt: number;
  refused: number;
};

type Checked = {
  readonly db: Pick<Database, 'hot' | 'query'>;
  readonly clock: () => Date;
  readonly keys: KeyRing;
};

export class Readiness {
  readonly #log: Logger;
  readonly #timeoutMs: number;
  readonly #now: () => number;
  /** By cause: several can alternate, call by call. */
  readonly #outages = new Map<keyof typeof REASONS, Outage>();
  #bookedAt = Number.NEGATIVE_INFINITY;
  #lacksKey = false;

  /**
   * @param timeoutMs how long the database may take to answer the check
   * @param now the monotonic time in milliseconds
   */
  constructor(log: Logger, timeoutMs = CHECK_TIMEOUT_MS, now = () => performance.now()) {
    this.#log = log;
    this.#timeoutMs = timeoutMs;
    this.#now = now;
  }

  /** Notes the error that made a call fail. Errors of other kinds are ignored. */
  refused(error: unknown, { isOfTill = false } = {}): void {
    if (error instanceof Refusal && error.code === '91') this.#note('overload');
    else if (isUnavailable(error)) this.#note(causeOf(error), error, isOfTill);
  }

  #note(cause: keyof typeof REASONS, error?: unknown, isOfTill = false): void {
    const now = this.#now();
    if (cause === 'key-missing') this.#lacksKey = true;
    const never = Number.NEGATIVE_INFINITY;
    const outage = this.#outages.get(cause) ?? {
      since: now,
      due: onceAMinute(this.#now),
      refusedAt: now,
      tillRefusedAt: never,
      refused: 0,
    };
    this.#outages.set(cause, outage);
    outage.refused++;
    outage.refusedAt = now;
    if (isOfTill) outage.tillRefusedAt = now;
    if (outage.due() === 0) return;
    const state = sqlState(error);
    const { code, message } = (error ?? {}) as { code?: string; message?: string };
    this.#log.warn(
      {
        part: 'database',
        cause,
        refused: outage.refused,
        state: state ?? code,
        ...(state !== undefined && SYSTEM.test(state) && { error: message }),
      },
      `calls ${cause === 'schema' ? 'fail (96)' : 'are refused (91)'}: ${REASONS[cause]}`,
    );
  }

  /** Notes that a booking succeeded. */
  booked(): void {
    this.#bookedAt = this.#now();
  }

  /** Returns the cause that refused calls of tills since the last booking. */
  #stopsBookings(): { readonly cause: Cause; readonly at: number } | undefined {
    const at = (cause: Cause) => this.#outages.get(cause)?.tillRefusedAt ?? Number.NEGATIVE_INFINITY;
    const cause = OF_BOOKINGS.find((each) => at(each) > this.#bookedAt);
    return cause && { cause, at: at(cause) };
  }

  /** Notes that a call was served. */
  served(): void {
    if (this.#outages.size === 0 || this.#stopsBookings()) return;
    const now = this.#now();
    const all = [...this.#outages];
    if (all.some(([, { refusedAt }]) => now - refusedAt < QUIET_MS)) return;
    this.#outages.clear();
    for (const [cause, { since, refused, refusedAt }] of all)
      this.#log.info(
        { part: 'database', cause, refused, seconds: Math.round((refusedAt - since) / 100) / 10 },
        'calls are served again',
      );
  }

  /**
   * Checks whether calls of tills can be served: the database answers on their pool, takes writes, and
   * accepts bookings by the clock of this process.
   * @returns the cause if they cannot
   */
  async check({ db, clock, keys }: Checked): Promise<Cause | undefined> {
    const asked = db.hot<{ writable: boolean }>(CHECK_BOOKING, [clock()]).then(
      ([row]) => {
        if (row?.writable === true) return undefined;
        this.#note('read-only');
        return 'read-only';
      },
      (error: unknown) => {
        const cause = causeOf(error);
        this.#note(cause, error);
        return cause;
      },
    );
    const cause = await Promise.race([asked, elapsed(this.#timeoutMs)]);
    if (cause === false) return 'database-away';
    if (cause !== undefined) return cause;
    const now = this.#now();
    const stopped = this.#stopsBookings();
    if (stopped && now - stopped.at < OF_BOOKINGS_MS && now - this.#bookedAt > BOOKED_MS)
      return stopped.cause;
    if (this.#lacksKey && (await this.#stillLacksKey(db, keys))) return 'key-missing';
    this.served();
    return undefined;
  }

  /** Whether the key ring, whose file may have been mended, still lacks a key that is in use. */
  async #stillLacksKey(db: Pick<Database, 'query'>, keys: KeyRing): Promise<boolean> {
    const error = await checkKeyRing(db, keys).catch((refused: unknown) => refused);
    this.#lacksKey = error !== undefined && causeOf(error) === 'key-missing';
    return this.#lacksKey;
  }

  /** Returns 0 for the cause that keeps the process from being ready, and 1 for the others. */
  async gauge(checked: Checked): Promise<Record<Cause, number>> {
    const cause = await this.check(checked);
    return Object.fromEntries(CAUSE_NAMES.map((each) => [each, Number(each !== cause)])) as Record<
      Cause,
      number
    >;
  }
}
