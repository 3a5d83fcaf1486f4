/** What an error of the database means for whoever asked it. */

/** The SQLSTATE of an error of the database, if it is one. Each has a digit: EPIPE, an error of the network, is none. */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** What keeps balances from falling below zero (sql/001-core.sql). */
const NEVER_NEGATIVE: ReadonlySet<unknown> = new Set(['vouchers_never_negative', 'accounts_never_negative']);

/**
 * Whether a statement lost a race against another one and may be sent again as it is.
 *
 * One of these races looks like a fault: where a balance has grown since a statement began (an activation, money given
 * back, a top-up), the statement decides on the new balance, which it reads under the row's lock, but PostgreSQL checks the
 * constraints of its update on the old one first, and only then notices that there is a newer one.
 */
export function isRetryable(error: unknown): boolean {
  const { constraint } = (error ?? {}) as { constraint?: unknown };
  return lostRace(sqlState(error)) || NEVER_NEGATIVE.has(constraint);
}

/** Serialization failure, deadlock. */
function lostRace(state: string | undefined): boolean {
  return state === '40001' || state === '40P01';
}

/** Whether nobody answered at all: the server is gone, out of reach, or hangs. */
export function isAway(error: unknown): boolean {
  return sqlState(error) === undefined && isUnavailable(error);
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
  // A key of the key ring that another process was given, and this one was not yet.
  'EKEYMISSING',
]);

/** Whether an error means that there is no database to talk to just now (503), rather than a bug (500). */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isUnavailable);
  const state = sqlState(error);
  // 08 connection, 53 out of resources, 57 operator intervention (shutdown, statement timeout), 25006 read-only standby.
  if (state) return /^(08|53|57)/.test(state) || state === '25006' || state === '25P03' || lostRace(state);
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  if (typeof code === 'string' && NETWORK.has(code)) return true;
  return (
    typeof message === 'string' &&
    /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|Client has encountered a connection error|Cannot use a pool after)/.test(
      message,
    )
  );
}
