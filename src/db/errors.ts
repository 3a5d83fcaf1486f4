/** Classifies errors of the database for their callers. */

/**
 * Returns the SQLSTATE of an error of the database. It always contains a digit, unlike EPIPE, a network
 * error.
 */
export function sqlState(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

const UNIQUE_VIOLATION = '23505';
const CHECK_VIOLATION = '23514';
const ID_NEAR_TIME = 'journal_id_near_time';
/**
 * Unique keys on which two transactions race for the same reference, update of a redemption, or statement of
 * a bank. Citus appends the number of the shard.
 */
const CLAIMED =
  /^(claims_pkey|redemption_updates_pkey|batches_reference_once|bank_files_once|bank_entries_once)(_\d+)?$/;

/**
 * Whether a statement lost a race and can be sent again unchanged. It then sees the changes of the other
 * transaction.
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

/** Whether the state is a serialization failure or a deadlock. */
function lostRace(state: string | undefined): boolean {
  return state === '40001' || state === '40P01';
}

/**
 * Whether a booking was refused for its stamp (sql/005-rules.sql). Either it waited too long, and is sent
 * again with a new stamp, or the clock of this process is wrong, and repetition does not help.
 */
export function isStampRefused(error: unknown): boolean {
  return sqlState(error) === 'SC001';
}

/**
 * Whether a booking was refused since the clock was set back (sql/005-rules.sql). Nothing is booked until the
 * clock is right again.
 */
function isClockBack(error: unknown): boolean {
  return sqlState(error) === 'SC002';
}

/**
 * Whether the clock was set between the making of a booking's id and its stamp (sql/001-core.sql). Citus
 * passes the name of the constraint in the message only.
 */
function isIdOff(error: unknown): boolean {
  return sqlState(error) === CHECK_VIOLATION && String((error as Error).message).includes(ID_NEAR_TIME);
}

/** Whether a booking was refused because the clock of this process is wrong, or was set meanwhile. */
export const isClockRefused = (error: unknown): boolean =>
  isStampRefused(error) || isClockBack(error) || isIdOff(error);

/**
 * Whether a statement waited too long for a lock. Maintenance that may not wait in front of tills is tried
 * again later.
 */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === '55P03';
}

/**
 * The messages of a server that was killed, of Citus, and of libpq when a connection is lost or refused.
 * Citus passes them on as internal errors (XX000) if a node gave no error of its own.
 */
const NODE_LOST = [
  /^failure on connection marked as essential/,
  /^postmaster was shut down/,
  /^terminating connection due to unexpected postmaster exit/,
  /^server closed the connection unexpectedly/,
  /^no connection to the server/,
  /^connection (?:not open|pointer is NULL|to the remote node|to server)/,
  /^could not (?:connect to|receive data from|send data to|translate host name)/,
  /^lost synchronization with server/,
  /^invalid (?:connection state|socket)/,
  /^(?:select|poll)\(\) failed/,
  /^timeout expired/,
  /^SSL (?:SYSCALL error|error|connection has been closed)/,
];

/** Whether Citus ended a transaction because it lost a node, or because its own server was killed. */
function isNodeLost(error: unknown): boolean {
  const { message } = error as { message?: unknown };
  return typeof message === 'string' && NODE_LOST.some((text) => text.test(message));
}

/**
 * Returns the host and port of another node of a Citus cluster that an error names: the coordinator answered,
 * but the node did not.
 */
export function nodeOf(error: unknown): string | undefined {
  const { message, where } = (error ?? {}) as { message?: unknown; where?: unknown };
  const text = `${message}\n${where}`;
  const [, node] =
    /(?:remote node (?:[^\s@]+@)?|marked as essential: |command on )([^\s@]+:\d+)/.exec(text) ?? [];
  return node;
}

/** Whether a call was sent to a server that its bucket has left (sql/citus/functions.sql). */
export function hasBucketMoved(error: unknown): boolean {
  return sqlState(error) === 'SC003';
}

/** Whether the server gave no answer: it is down, unreachable, or hangs. */
export function isAway(error: unknown): boolean {
  return sqlState(error) === undefined && !isBusy(error) && !isOfTls(error) && isUnavailable(error);
}

function isBusy(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === 'string' && BUSY.has(code);
}

/** Errors of a connection that was never made: nothing was sent. */
const NOT_CONNECTED = [
  ...['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'],
  // There is no port or file descriptor left for a connection.
  ...['EADDRNOTAVAIL', 'EMFILE', 'ENFILE'],
];
/** Of the pool, and of a connection without a pool. */
const NO_CONNECTION_IN_TIME = /^timeout (?:exceeded when trying to connect|expired$)/;
const NETWORK = new Set([
  ...NOT_CONNECTED,
  ...['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ETIMEDOUT', 'EHOSTDOWN', 'ENETDOWN'],
]);

/** The server's certificate is not accepted: it has expired, for example. */
const CERTIFICATE =
  /^(?:CERT_|CRL_|DEPTH_ZERO_|ERR_TLS_CERT_|HOSTNAME_|INVALID_[CP]|PATH_LENGTH_|SELF_SIGNED_|UNABLE_TO_)/;
const NO_TLS = /^(?:The server does not support SSL|There was an error establishing an SSL)/;

/** Whether no connection was made because of its certificate, or because the server knows no TLS. */
function isTlsRefused({ code = '', message = '' }: { code?: string; message?: string }): boolean {
  return CERTIFICATE.test(code) || NO_TLS.test(message);
}

/** Whether a connection was not made, or broke, because of TLS. */
export function isOfTls(error: unknown): boolean {
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string };
  return isTlsRefused({ code, message }) || /^(?:ERR_(?:SSL|TLS|OSSL)_|EPROTO$)/.test(code);
}

/** Errors of a service that cannot serve the request now, although the database is available. */
const BUSY = new Set([
  // The process does not have a key of the key ring yet that other processes use.
  'EKEYMISSING',
  'EPOOLEXHAUSTED',
]);

/** Whether a server refuses connections since it is starting, stopping or recovering. */
export function isStarting(error: unknown): boolean {
  return sqlState(error) === '57P03';
}

/** Whether the server ends each new session: the database takes no connections, or none of this account. */
export function isConnectionRefused(error: unknown): boolean {
  const { severity } = (error ?? {}) as { severity?: unknown };
  return severity === 'FATAL' && /^(?:42501|55000)$/.test(sqlState(error) ?? '');
}

/** The state of a server that takes no writes. */
export const STANDBY = '25006';

/** Whether an error means that the database is not available (503), rather than a bug (500). */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isUnavailable);
  const state = sqlState(error);
  // 08: connection; 28: the account is refused, as while its password is changed; 3D: there is no such
  // database; 53: out of resources; 57: operator intervention (shutdown, statement timeout); 58: its system.
  if (state)
    return (
      /^(08|28|3D|53|57|58)/.test(state) ||
      isConnectionRefused(error) ||
      state === STANDBY ||
      state === '25P03' ||
      lostRace(state) ||
      isLockTimeout(error) ||
      isClockRefused(error) ||
      hasBucketMoved(error) ||
      isNodeLost(error)
    );
  const { code, message, syscall } = (error ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof code === 'string' && (NETWORK.has(code) || BUSY.has(code))) return true;
  if (isOfTls(error)) return true;
  // The socket of a server that does not run. Any other file that is missing is not the database.
  if (code === 'ENOENT' && syscall === 'connect') return true;
  return (
    typeof message === 'string' &&
    (NO_CONNECTION_IN_TIME.test(message) ||
      /^(Connection terminated|Query read timeout|Client has encountered a connection error|Cannot use a pool after)/.test(
        message,
      ))
  );
}

/** Returns what a server that has answered cannot do, to follow its name. */
export const refusalOf = (error: unknown): string =>
  sqlState(error) === '53100' ? 'has no space left on its disk' : 'cannot do this now';

/** Whether a connection broke after a commit may have been sent. */
export function isOutcomeUnknown(error: unknown): boolean {
  const state = sqlState(error);
  if (state) return /^(08|57P0[12])/.test(state);
  const { code = '', message = '' } = (error ?? {}) as { code?: string; message?: string };
  if (NOT_CONNECTED.includes(code) || isTlsRefused({ code, message })) return false;
  return isUnavailable(error) && !NO_CONNECTION_IN_TIME.test(message);
}

/** The number of repetitions after lost races. More than these in a row are no coincidence. */
const RETRIES_MAX = 8;

/**
 * Runs a statement or a transaction, and repeats it if it lost a race that is not an error of the request.
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
 * The reason why Scrip cannot start or continue, in one line for the operator. Every command prints it and
 * exits with the status for it.
 */
export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartError';
  }
}
