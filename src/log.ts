import { type DestinationStream, type Logger, pino } from 'pino';
import { isoTime } from './time.ts';

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
  // A log that nobody takes any more (its terminal was closed) must not end the service before it has
  // stopped in order.
  destination.on('error', () => {});
  return destination;
}

/**
 * What is told of an error: no more than these. What PostgreSQL says beside its message (detail, where)
 * quotes rows, and with them references and what is stored of codes.
 */
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: `${typeof error} instead of an error` };
  const { type, message, stack } = pino.stdSerializers.err(error);
  const { code: state, table, constraint, routine } = error as Error & Record<string, unknown>;
  return { type, message, stack, state, table, constraint, routine };
}

/** What the access log tells of a request. None of it can hold a secret. */
export type AccessLine = {
  readonly requestId: string;
  readonly method: string;
  readonly route: string | undefined;
  readonly httpStatus: number;
  readonly statusCode: string | undefined;
  readonly merchantId: number | undefined;
  readonly keyId: string | undefined;
  /** By which the journal knows what the call did: with the key's id it tells which key did it. */
  readonly transactionId: string | undefined;
  readonly durationMs: number;
  /** Whether the answer could not be sent as a whole: the client went away, or a download broke off. */
  readonly aborted: boolean;
};

const INFO = 30;

/**
 * Makes the writer of the access log: lines as the logger writes them, put together by hand and handed
 * over once a turn of the event loop. Made by the logger, a line each, they took a ninth of what a
 * balance enquiry costs.
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
    // What needs quoting is written by JSON; ids, routes and codes are our own words and do not.
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

/** Now, written down once a millisecond. */
function timeText(): string {
  const ms = Date.now();
  if (ms !== lastTime.ms) lastTime = { ms, text: isoTime(ms) };
  return lastTime.text;
}

/**
 * Writes what is still held back, before the process ends; not for longer than a moment, should nobody
 * take it.
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
