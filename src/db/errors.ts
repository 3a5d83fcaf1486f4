/** What an error of the database means for its caller. */

/**
 * The SQLSTATE of an error of the database, if it is one. It always has a digit; EPIPE, a network
 * error, has none.
 */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

const UNIQUE_VIOLATION = '23505';
/**
 * Unique keys on which two transactions race for one reference, or for the one update of a redemption.
 * Citus appends the number of the shard.
 */
const CLAIMED = /^(claims_pkey|redemption_updates_pkey|batches_reference_once)(_\d+)?$/;

/**
 * Whether a statement lost a race and can be sent again unchanged: it then sees what the other
 * transaction did.
 */
export function isRetryable(error: unknown): boolean {
  const { constraint } = (error ?? {}) as { constraint?: unknown };
  const state = sqlState(error);
  return (
    lostRace(state) ||
    isStampRefused(error) ||
    (state === UNIQUE_VIOLATION && typeof constraint === 'string' && CLAIMED.test(constraint))
  );
}

/** Serialization failure, deadlock. */
function lostRace(state: string | undefined): boolean {
  return state === '40001' || state === '40P01';
}

/**
 * Whether a booking was refused for its stamp (sql/005-rules.sql): it waited too long, and is sent again
 * with a new one; or the clock of this process is wrong, and no repetition helps.
 */
export function isStampRefused(error: unknown): boolean {
  return sqlState(error) === 'SC001';
}

/**
 * Whether Citus ended a transaction since a server is gone: it lost another node, or its own server was
 * killed. Both come as internal errors (XX000).
 */
function isNodeLost(error: unknown): boolean {
  const { message } = error as { message?: unknown };
  return (
    typeof message === 'string' &&
    /^(failure on connection marked as essential|postmaster was shut down|terminating connection due to unexpected postmaster exit)/.test(
      message,
    )
  );
}

/** Whether the server gave no answer: it is gone, out of reach, or hangs. */
export function isAway(error: unknown): boolean {
  return sqlState(error) === undefined && !isBusy(error) && isUnavailable(error);
}

function isBusy(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && BUSY.has(code);
}

const NETWORK = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENOENT',
  // No port or no file descriptor is left for a connection.
  'EADDRNOTAVAIL',
  'EMFILE',
  'ENFILE',
]);

/** The service cannot serve the request now, although the database is there. */
const BUSY = new Set([
  // A key of the key ring that other processes have, and this one does not have yet.
  'EKEYMISSING',
  'EPOOLEXHAUSTED',
]);

/** Whether an error means that the database is not available (503), rather than a bug (500). */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isUnavailable);
  const state = sqlState(error);
  // 08 connection, 53 out of resources, 57 operator intervention (shutdown, statement timeout), 25006
  // read-only standby.
  if (state)
    return (
      /^(08|53|57)/.test(state) ||
      state === '25006' ||
      state === '25P03' ||
      lostRace(state) ||
      isStampRefused(error) ||
      isNodeLost(error)
    );
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && (NETWORK.has(code) || BUSY.has(code))) return true;
  return (
    typeof message === 'string' &&
    /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after)/.test(
      message,
    )
  );
}

/** How often work is repeated after it lost a race. More in a row are no accident. */
const RETRIES_MAX = 8;

/**
 * Runs a statement or a transaction, and repeats it if it lost a race that says nothing about the
 * request.
 */
export async function retrying<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (attempt > RETRIES_MAX || !isRetryable(error)) throw error;
    }
  }
}

/**
 * Why Scrip cannot start or continue, in one line for the operator. Every command prints it and ends
 * with the status for it.
 */
export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartError';
  }
}
