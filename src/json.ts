import { parseDecimal } from './money.ts';

/** Reads JSON so strictly that no other reader of the same text can see another amount. */

/** An object contains a key twice: another reader may take the other value. */
export class DuplicateKey extends Error {}

/**
 * Finds numbers whose double may differ from their text: sixteen digits or more, or an exponent of three
 * digits. All shorter decimal numbers have distinct doubles, so almost every body is parsed only once. A
 * match inside a string only costs a second parse. Digits directly after a quote (a code with its PIN) do not
 * match.
 */
const PERHAPS_INEXACT = /[^"\d.][\d.]{16}|[eE][+-]?\d{3}/;

/** A string of a JSON text, with the colon after it if it is a key. */
const STRING = /("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?/g;

/**
 * Reads JSON.
 *
 * A number that a double cannot represent exactly (`100.00000000000000001`, `9007199254740993`, `1e-400`)
 * becomes Infinity, which is no valid amount, quantity or serial number: it is refused, never rounded. A key
 * `__proto__` is an ordinary key, since only declared fields are read.
 * @throws SyntaxError for text that is not JSON
 * @throws DuplicateKey for an object with a duplicate key in any spelling
 */
export function readJson(text: string): unknown {
  const plain = spellKeysPlainly(text);
  const value = PERHAPS_INEXACT.test(plain) ? JSON.parse(plain, exact as Reviver) : JSON.parse(plain);
  if (hasKeyTwice(plain)) throw new DuplicateKey();
  return value;
}

/**
 * Spells equal keys equally, without needless escapes.
 *
 * JSON.parse of Node 24 may take an escaped key for another one (nodejs/node issue 63785). Once it has parsed
 * an object with the key `\\u0061moun`, which begins with a backslash, it reads `\u0061mountUsed` in the same
 * place as that key: the body of one client could make a field of another client's body disappear.
 */
function spellKeysPlainly(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(STRING, (whole, string: string, colon?: string) =>
    colon && string.includes('\\') ? JSON.stringify(JSON.parse(string)) + colon : whole,
  );
}

/** Whether an object contains a key twice. The text must be JSON in which equal keys are spelled equally. */
function hasKeyTwice(text: string): boolean {
  const open: Set<string>[] = [];
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '{') open.push(new Set());
    else if (char === '}') open.pop();
    else if (char === '"') {
      const start = at++;
      while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
      const string = text.slice(start, at + 1);
      while (/\s/.test(text[at + 1] ?? '')) at++;
      if (text[at + 1] !== ':') continue;
      const keys = open.at(-1);
      if (keys?.has(string)) return true;
      keys?.add(string);
    }
  }
  return false;
}

type Reviver = (key: string, value: unknown) => unknown;

/** Returns a value unchanged, unless it is a number that differs from its source. */
function exact(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || context.source === undefined) return value;
  const written = parseDecimal(context.source);
  const read = parseDecimal(String(value));
  const isSame =
    written !== undefined &&
    read !== undefined &&
    written.digits === read.digits &&
    written.scale === read.scale;
  return isSame ? value : Number.POSITIVE_INFINITY;
}
