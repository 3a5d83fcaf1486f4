import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

/** Names under which a secret could travel. None is ever passed to the logger; this is the net below. */
const SECRET = ['authorization', 'pin', 'code', 'voucherCode', 'secret', 'password', 'keys', 'url'];

/** Lines are written this many bytes at a time, */
const WRITE_BYTES = 32 * 1024;
/** and at least this often: a write for each line would cost the service a tenth of its time. */
const FLUSH_MS = 100;
const LAST_FLUSH_MS = 1_000;

/**
 * The logger: JSON lines on stderr, so that stdout stays for what a command prints.
 * A log line never holds a body, a URL, a header or a reference: each of them can carry a code.
 */
export function createLogger(level: string, destination: DestinationStream = standardError()): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
      redact: { paths: SECRET.flatMap((name) => [name, `*.${name}`]), censor: '[hidden]' },
    },
    destination,
  );
}

function standardError(): DestinationStream {
  const destination = pino.destination({
    fd: 2,
    sync: false,
    minLength: WRITE_BYTES,
    maxWrite: 2 * WRITE_BYTES,
    periodicFlush: FLUSH_MS,
  });
  // A log that nobody takes any more (its terminal was closed) must not end the service before it has stopped in order.
  destination.on('error', () => {});
  return destination;
}

/**
 * What is told of an error: no more than these. What PostgreSQL says beside its message (detail, where) quotes rows, and
 * with them references and what is stored of codes.
 */
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: `${typeof error} instead of an error` };
  const { type, message, stack } = pino.stdSerializers.err(error);
  const { code: state, table, constraint, routine } = error as Error & Record<string, unknown>;
  return { type, message, stack, state, table, constraint, routine };
}

/**
 * The logger of the access log. Its lines are made of a fixed list of fields, none of which can hold a secret, so that
 * looking through each of them for one would only cost time.
 */
export function accessLogger(log: Logger): Logger {
  return log.child({}, { redact: [] });
}

/** Writes what is still held back, before the process ends; not for longer than a moment, should nobody take it. */
export function flushLog(log: Logger): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LAST_FLUSH_MS);
    log.flush(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
