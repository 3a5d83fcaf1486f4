/** When a failed delivery is tried again. Pure, so that it can be tested without a network. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** After the first attempt, each counted from the one before. */
const DELAYS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];
/** Up to a fifth is added at random, so that deliveries that failed together do not return together. */
const JITTER = 0.2;
/** A receiver may delay a delivery, but not for ever. */
const RETRY_AFTER_MAX_MS = 24 * HOUR;

/**
 * @param tries made so far, including the one that has just failed
 * @param retryAfterMs the delay that the receiver asked for: it is never tried earlier
 * @param random from 0 to 1
 * @returns the delay in milliseconds, or undefined if it is given up
 */
export function nextTry(tries: number, retryAfterMs: number | undefined, random: number): number | undefined {
  const delay = DELAYS_MS[tries - 1];
  if (delay === undefined) return undefined;
  return Math.max(delay * (1 + JITTER * random), Math.min(retryAfterMs ?? 0, RETRY_AFTER_MAX_MS));
}

const IMF_FIXDATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Reads the header Retry-After (RFC 9110): seconds, or a date.
 * @returns milliseconds from now, undefined without a valid value
 */
export function readRetryAfter(header: string | undefined, now: Date): number | undefined {
  if (header === undefined) return undefined;
  const text = header.trim();
  if (/^\d{1,10}$/.test(text)) return Number(text) * SECOND;
  const date = IMF_FIXDATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now.getTime());
}
