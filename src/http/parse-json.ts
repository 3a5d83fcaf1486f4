import { parseDecimal } from '../money.ts';
import { NO_JSON, TransportRefusal } from './transport.ts';

/** Refuses invalid UTF-8 and leaves out a byte order mark. */
const decoder = new TextDecoder('utf-8', { fatal: true });

/**
 * A number whose double may say something else than the text: sixteen digits or more, or an exponent of three digits.
 * Below that a double tells every decimal number apart, so that almost every body is parsed once. A hit inside a
 * string costs a second parse and nothing else; a run right behind a quote (a code with its PIN) is not even a hit.
 */
const PERHAPS_INEXACT = /[^"\d.][\d.]{16}|[eE][+-]?\d{3}/;

/**
 * Parses the body of a request.
 *
 * A number that a double cannot carry exactly (`100.00000000000000001`, `9007199254740993`, `1e-400`) becomes Infinity,
 * which no amount, quantity or serial number may be: it is refused, never rounded. A key `__proto__` is a key like any
 * other here, since only the declared fields of a body are ever read.
 * @param body the bytes as received, undefined where there were none
 * @throws TransportRefusal `30` (HTTP 400) for an empty body, invalid UTF-8, and what is not JSON
 */
export function parseJson(body: Uint8Array | undefined): unknown {
  try {
    const text = decoder.decode(body);
    return PERHAPS_INEXACT.test(text) ? JSON.parse(text, exact as Reviver) : JSON.parse(text);
  } catch {
    throw new TransportRefusal('30', 400, { errors: NO_JSON });
  }
}

type Reviver = (key: string, value: unknown) => unknown;

/** Keeps a value as it is, unless it is a number that says something else than its source. */
function exact(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || context.source === undefined) return value;
  const written = parseDecimal(context.source);
  const read = parseDecimal(String(value));
  const same =
    written !== undefined && read !== undefined && written.digits === read.digits && written.scale === read.scale;
  return same ? value : Number.POSITIVE_INFINITY;
}
