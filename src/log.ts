import { type Logger, pino } from 'pino';

export type { Logger };

/** Names under which a secret could travel. None is ever passed to the logger; this is the net below. */
const SECRET = ['authorization', 'pin', 'code', 'voucherCode', 'secret', 'password', 'keys', 'url'];

/**
 * The logger: JSON lines on stderr, so that stdout stays for what a command prints.
 * A log line never holds a body, a URL, a header or a reference: each of them can carry a code.
 */
export function createLogger(level: string): Logger {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: SECRET.flatMap((name) => [name, `*.${name}`]), censor: '[hidden]' },
    },
    pino.destination({ fd: 2, sync: false, minLength: 0 }),
  );
}
