import { isSameDecimal } from './money.ts';

/** Returns JSON in canonical form: names in order, times in ISO 8601, ids and large numbers as text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (name, each: unknown) => {
    if (typeof each === 'bigint' || (typeof each === 'number' && name.endsWith('Id'))) return String(each);
    if (typeof each !== 'object' || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).sort(([one], [other]) => (one < other ? -1 : 1)));
  });
}

/** Reads JSON so strictly that no other reader of the same text can see another amount. */

/** An object contains a key twice: another reader may take the other value. */
export class DuplicateKey extends Error {}

/** Objects and lists are nested deeper than any request needs. */
export class TooDeep extends Error {}

/**
 * Finds numbers whose double may differ from their text: sixteen digits or more, or an exponent of three
 * digits. All shorter decimal numbers have distinct doubles, so almost every body is parsed only once. A
 * match inside a string only costs a second parse. Digits directly after a quote (a code with its PIN) do not
 * match.
 */
const PERHAPS_INEXACT = /[^"\d.][\d.]{16}|[eE][+-]?\d{3}/;

/** The most objects and lists within each other. No request needs a third of it. */
const DEPTH_MAX = 32;

/**
 * Reads JSON, in time that is linear in the length of the text, whatever the text is.
 *
 * A number that a double cannot represent exactly (`100.00000000000000001`, `9007199254740993`, `1e-400`)
 * becomes Infinity, which is no valid amount, quantity or serial number: it is refused, never rounded. A key
 * `__proto__` is an ordinary key, since only declared fields are read.
 * @throws SyntaxError for text that is not JSON
 * @throws TooDeep for more than 32 objects and lists within each other
 * @throws DuplicateKey for an object with a duplicate key in any spelling
 */
export function readJson(text: string): unknown {
  const { plain, isTwice } = readKeys(text);
  const value = PERHAPS_INEXACT.test(plain) ? JSON.parse(plain, exact as Reviver) : JSON.parse(plain);
  if (isTwice) throw new DuplicateKey();
  return value;
}

/**
 * Reads the keys of a JSON text from its beginning to its end, each character once. Text that is not JSON may
 * pass; JSON.parse refuses it.
 *
 * JSON.parse of Node 24 may take an escaped key for another one (nodejs/node issue 63785). Once it has parsed
 * an object with the key `\\u0061moun`, which begins with a backslash, it reads `\u0061mountUsed` in the same
 * place as that key: the body of one client could make a field of another client's body disappear.
 * @returns `plain`: the text with its keys spelled without needless escapes; `isTwice`: whether an object
 *   contains a key twice
 */
function readKeys(text: string): { readonly plain: string; readonly isTwice: boolean } {
  /** The keys of each object that is open; undefined for a list. */
  const open: (Set<string> | undefined)[] = [];
  let isTwice = false;
  let plain = '';
  let copied = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === OBJECT || char === LIST) {
      if (open.push(char === OBJECT ? new Set() : undefined) > DEPTH_MAX) throw new TooDeep();
    } else if (char === OBJECT_END || char === LIST_END) open.pop();
    else if (char === QUOTE) {
      const start = at;
      at = endOfString(text, at);
      const end = at + 1;
      while (isSpace(text.charCodeAt(at + 1))) at++;
      if (text.charCodeAt(at + 1) !== COLON) continue;
      const written = text.slice(start, end);
      const key = written.includes('\\') ? JSON.stringify(JSON.parse(written)) : written;
      if (key !== written) {
        plain += text.slice(copied, start) + key;
        copied = end;
      }
      const keys = open.at(-1);
      isTwice ||= keys?.has(key) === true;
      keys?.add(key);
    }
  }
  return { plain: plain + text.slice(copied), isTwice };
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OBJECT = 0x7b;
const OBJECT_END = 0x7d;
const LIST = 0x5b;
const LIST_END = 0x5d;

/** Returns the place of the quote that ends a string. @throws SyntaxError if none does */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const char = text.charCodeAt(at);
    if (char === QUOTE) return at;
    if (char === BACKSLASH) at++;
  }
  throw new SyntaxError('a string has no end');
}

/** Whether a character is the white space of JSON. */
const isSpace = (char: number) => char === 0x20 || char === 0x0a || char === 0x0d || char === 0x09;

type Reviver = (key: string, value: unknown) => unknown;

/** Returns a value unchanged, unless it is a number that differs from its source. */
function exact(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || context.source === undefined) return value;
  return Number.isFinite(value) && isSameDecimal(context.source, String(value))
    ? value
    : Number.POSITIVE_INFINITY;
}
