import { styleText } from 'node:util';
import { type DestinationStream, type Logger, pino } from 'pino';
import { isoTime, MINUTE_MS } from './time.ts';

export type { Logger };

/**
 * Fields whose values are removed from the log. No secret is ever passed to the logger; this list is a second
 * line of defense.
 */
const SECRET = ['authorization', 'pin', 'code', 'voucherCode', 'secret', 'password', 'keys', 'url'];

/** The size of the log buffer in bytes. A full buffer is written. */
const WRITE_BYTES = 32 * 1024;
/** The longest delay of a line. A write for each line would cost the service a tenth of its time. */
const FLUSH_MS = 100;
const LAST_FLUSH_MS = 1_000;

/**
 * Creates the logger. It writes to stderr, so that stdout contains only the output of commands: JSON lines,
 * or readable lines on a terminal. A log line never has a body, a URL, a header or a reference, since each of
 * them can contain a code.
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
  // A closed terminal must not end the service before its orderly shutdown.
  destination.on('error', () => {});
  return process.stderr.isTTY ? forPeople(destination) : destination;
}

/** Formats log lines for people. @param destination accepts text, and can be flushed */
function forPeople(destination: ReturnType<typeof pino.destination>): DestinationStream {
  const write = (text: string) => void destination.write(readableLines(text));
  return Object.assign({ write }, { flush: (done: () => void) => destination.flush(done) });
}

/**
 * Returns the fields of an error for the log. The other fields of PostgreSQL (detail, where) quote rows, with
 * references and stored values of codes.
 */
function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: `${typeof error} instead of an error` };
  const { type, message, stack } = pino.stdSerializers.err(error);
  const { code: state, table, constraint, routine } = error as Error & Record<string, unknown>;
  return { type, message, stack, state, table, constraint, routine };
}

/**
 * Decides when a fault that lasts is logged: at once, and then once a minute. Each call of the function that
 * it returns is one time.
 * @param now the monotonic time in milliseconds
 * @returns the number of times since the last line; 0 if no line is due
 */
export function onceAMinute(now = () => performance.now()): () => number {
  let loggedAt = Number.NEGATIVE_INFINITY;
  let times = 0;
  return () => {
    times++;
    if (now() - loggedAt < MINUTE_MS) return 0;
    const due = times;
    times = 0;
    loggedAt = now();
    return due;
  };
}

/** Returns the warnings of a loop, which would repeat a fault several times a second while it lasts. */
export function warningsOf(log: Logger, part: string, now?: () => number) {
  const faults = new Map<string, () => number>();
  return (error: unknown, message: string): void => {
    const due = faults.get(message) ?? onceAMinute(now);
    faults.set(message, due);
    const times = due();
    if (times > 0) log.warn({ part, times, error: (error as Error).message }, message);
  };
}

/** The fields of a request in the access log. None of them can contain a secret. */
type AccessLine = {
  readonly requestId: string;
  readonly method: string;
  readonly route: string | undefined;
  readonly httpStatus: number;
  readonly statusCode: string | undefined;
  /** The address of the client; behind a trusted proxy, the one that it reports. */
  readonly address: string | undefined;
  readonly merchantId: number | undefined;
  /** The API key of a till. */
  readonly keyId: string | undefined;
  /** The caller of the operator API or the portal: `user 5`, `token 7`. */
  readonly principal: string | undefined;
  /** Links the journal to the API key that made the call. */
  readonly transactionId: string | undefined;
  readonly durationMs: number;
  /** Whether the answer was cut off: the client disconnected, or a download failed. */
  readonly aborted: boolean;
};

const INFO = 30;

/**
 * Creates the writer of the access log. Its lines look like those of the logger, but are built by hand and
 * written once in each turn of the event loop. Single calls of the logger took a ninth of a balance enquiry.
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
    // JSON.stringify is only needed where text may need escapes. Ids, routes and codes do not.
    const merchant = line.merchantId === undefined ? '' : `,"merchantId":${line.merchantId}`;
    const who = `,"address":${JSON.stringify(line.address ?? null)}${merchant}${optional('keyId', line.keyId)}${optional('principal', line.principal)}`;
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

/** Returns the current time as text, formatted once a millisecond. */
function timeText(): string {
  const ms = Date.now();
  if (ms !== lastTime.ms) lastTime = { ms, text: isoTime(ms) };
  return lastTime.text;
}

/**
 * Writes the buffered lines before the process ends. It waits only briefly, in case nothing reads the log.
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

/** The levels of log lines for a person at a terminal. Programs get them as JSON. */
const LEVELS: Readonly<
  Record<number, { readonly name: string; readonly style: Parameters<typeof styleText>[0] }>
> = {
  10: { name: 'TRACE', style: 'gray' },
  20: { name: 'DEBUG', style: 'gray' },
  30: { name: 'INFO ', style: 'cyan' },
  40: { name: 'WARN ', style: 'yellow' },
  50: { name: 'ERROR', style: 'red' },
  60: { name: 'FATAL', style: 'red' },
};
/** The time of day in `2027-03-01T14:03:07.123Z`. */
const TIME = /T([\d:.]+)Z$/;
/** Control characters, and characters that change how others are displayed. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

type Line = {
  readonly level: number;
  readonly time: string;
  readonly msg?: string;
  readonly err?: { readonly message?: string; readonly stack?: string } & Record<string, unknown>;
} & Record<string, unknown>;

/** Formats JSON lines of the log as text for a person. Text that is not JSON is not changed. */
export function readableLines(text: string): string {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => `${readableLine(line)}\n`)
    .join('');
}

function readableLine(text: string): string {
  let line: Line;
  try {
    line = JSON.parse(text) as Line;
  } catch {
    return text;
  }
  const { level, time, msg = '', err, ...fields } = line;
  const { name, style } = LEVELS[level] ?? { name: String(level), style: 'white' };
  const head = `${TIME.exec(time)?.[1] ?? time} ${paint(style, name)} ${clean(msg)}`;
  const rest = Object.entries(fields).map(([key, value]) => ` ${paint('gray', `${key}=`)}${asText(value)}`);
  return `${head}${rest.join('')}${err === undefined ? '' : errorOf(err)}`;
}

const clean = (text: string): string =>
  text.replace(CONTROLS, (each) => `\\u{${(each.codePointAt(0) ?? 0).toString(16)}}`);

function asText(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=]+$/.test(value)) return clean(value);
  return clean(JSON.stringify(value));
}

/** Formats the stack of an error below its line, indented. */
function errorOf({ stack, message = '', ...fields }: NonNullable<Line['err']>): string {
  const known = Object.entries(fields).filter(([key, value]) => key !== 'type' && value !== undefined);
  const more = known.map(([key, value]) => ` ${key}=${asText(value)}`).join('');
  const lines = (stack ?? message).split('\n').map((each) => `    ${clean(each.trim())}`);
  return `${more}\n${lines.join('\n')}`;
}

/** Respects NO_COLOR. */
const paint = (style: Parameters<typeof styleText>[0], text: string): string =>
  styleText(style, text, { stream: process.stderr });
