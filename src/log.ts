import { type DestinationStream, type Logger, pino } from 'pino';
import { readableLines } from './log-lines.ts';
import { isoTime } from './time.ts';

export type { Logger };

/**
 * Names under which a secret could travel. No secret is ever passed to the logger; this is the safety
 * net.
 */
const SECRET = ['authorization', 'pin', 'code', 'voucherCode', 'secret', 'password', 'keys', 'url'];

/** Lines are written this many bytes at a time, */
const WRITE_BYTES = 32 * 1024;
/** and at least this often: a write for each line would cost the service a tenth of its time. */
const FLUSH_MS = 100;
const LAST_FLUSH_MS = 1_000;

/**
 * The logger: JSON lines on stderr, so that stdout has only the output of commands; on a terminal, lines
 * for people. A log line never has a body, a URL, a header or a reference, since each of them can contain
 * a code.
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
  // A closed terminal must not end the service before it has stopped in order.
  destination.on('error', () => {});
  return process.stderr.isTTY ? forPeople(destination) : destination;
}

/** @param destination takes text, and can be flushed */
function forPeople(destination: ReturnType<typeof pino.destination>): DestinationStream {
  const write = (text: string) => void destination.write(readableLines(text));
  return Object.assign({ write }, { flush: (done: () => void) => destination.flush(done) });
}

/**
 * What is logged of an error. The other fields of PostgreSQL (detail, where) quote rows, with
 * references and stored values of codes.
 */
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: `${typeof error} instead of an error` };
  const { type, message, stack } = pino.stdSerializers.err(error);
  const { code: state, table, constraint, routine } = error as Error & Record<string, unknown>;
  return { type, message, stack, state, table, constraint, routine };
}

/** What the access log shows of a request. None of it can hold a secret. */
export type AccessLine = {
  readonly requestId: string;
  readonly method: string;
  readonly route: string | undefined;
  readonly httpStatus: number;
  readonly statusCode: string | undefined;
  readonly merchantId: number | undefined;
  readonly keyId: string | undefined;
  /** Links the journal to the API key that made the call. */
  readonly transactionId: string | undefined;
  readonly durationMs: number;
  /** Whether the answer was not sent completely: the client went away, or a download broke off. */
  readonly aborted: boolean;
};

const INFO = 30;

/**
 * Makes the writer of the access log. Its lines look like the logger's, but are built by hand and
 * written once a turn of the event loop. As single calls of the logger they took a ninth of a balance.
 */
export function accessLog(log: Logger): (line: AccessLine) => void {
  const destination = (log as Logger & { [pino.symbols.streamSym]: DestinationStream })[
    pino.symbols.streamSym
  ];
  let lines = '';
  const flush = () => {
    const text = lines;
    lines = '';
    destination.write(text);
  };
  return (line) => {
    if (!log.isLevelEnabled('info')) return;
    // JSON writes what needs quoting. Ids, routes and codes do not.
    const who =
      line.merchantId === undefined ? '' : `,"merchantId":${line.merchantId},"keyId":"${line.keyId}"`;
    const what = `${optional('route', line.route)},"httpStatus":${line.httpStatus}${optional('statusCode', line.statusCode)}`;
    const end = `${optional('transactionId', line.transactionId)},"durationMs":${line.durationMs}${line.aborted ? ',"aborted":true' : ''},"msg":"request"}\n`;
    if (lines === '') setImmediate(flush);
    lines += `{"level":${INFO},"time":"${timeText()}","requestId":"${line.requestId}","method":${JSON.stringify(line.method)}${what}${who}${end}`;
  };
}

function optional(name: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${name}":"${value}"`;
}

let lastTime = { ms: 0, text: '' };

/** The current time as text, made once a millisecond. */
function timeText(): string {
  const ms = Date.now();
  if (ms !== lastTime.ms) lastTime = { ms, text: isoTime(ms) };
  return lastTime.text;
}

/**
 * Writes the buffered lines before the process ends. It waits only a moment, in case nothing reads the
 * log.
 */
export function flushLog(log: Logger): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, LAST_FLUSH_MS);
    log.flush(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
