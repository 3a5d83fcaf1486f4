import { BrokenOff, Malformed } from './read.ts';

/** A voucher is far shorter. */
const ITEM_MAX = 64 * 1024;
/** The text around the vouchers. */
const FRAME_MAX = 1024 * 1024;

/**
 * The state of the parser: in the frame, which is everything around the items of `data.vouchers`; or in
 * that list, before an item or the end of an empty list (`first`), before an item (`next`), in an item,
 * or behind one.
 */
type Place = 'frame' | 'first' | 'next' | 'item' | 'behind';

const isBlank = (character: string) =>
  character === ' ' || character === '\n' || character === '\r' || character === '\t';

/**
 * Reads the JSON of a batch in pieces and returns its vouchers one by one: a batch of any size takes the
 * memory of one voucher. It only cuts the text at the items of the list and gives each piece to JSON.parse,
 * so it accepts what JSON.parse accepts.
 */
export class BatchParser {
  #place: Place = 'frame';
  #frame = '';
  #hasVouchers = false;
  /** The position of the list of vouchers in the frame. */
  #headLength = 0;
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** The last string at a depth at which names matter, without its quotes. */
  #name = '';
  /** The names of the current objects at depths 1 and 2. */
  readonly #path: (string | undefined)[] = [];
  #item = '';
  #itemDepth = 0;

  /** Whether the list of vouchers has begun. */
  get hasVouchers(): boolean {
    return this.#hasVouchers;
  }

  /**
   * Takes the next piece of text.
   * @returns the items that it completes
   * @throws Malformed for text that is not JSON; it never quotes the text
   */
  push(text: string): unknown[] {
    const items: unknown[] = [];
    let at = 0;
    while (at < text.length) {
      if (this.#place === 'frame') at = this.#readFrame(text, at);
      else if (this.#place === 'item') at = this.#readItem(text, at, items);
      else at = this.#readBetween(text, at);
    }
    if (this.#frame.length > FRAME_MAX) throw new Malformed('the response is too long');
    return items;
  }

  /** The object before the vouchers; undefined until they begin. */
  head(): unknown {
    return this.#hasVouchers ? parse(`${this.#frame.slice(0, this.#headLength)}]}}`) : undefined;
  }

  /**
   * Ends the reading.
   * @returns the whole response, with an empty list of vouchers
   * @throws BrokenOff for an incomplete text
   */
  finish(): unknown {
    if (this.#place !== 'frame') throw new BrokenOff('the response broke off');
    if (this.#depth > 0 || this.#inString || this.#frame === '')
      throw new BrokenOff('the response broke off');
    return parse(this.#frame);
  }

  #readFrame(text: string, from: number): number {
    let at = from;
    while (at < text.length && this.#place === 'frame') {
      const character = text[at] as string;
      if (this.#inString) this.#stepInString(character, this.#depth <= 2);
      else this.#stepInFrame(character);
      at++;
    }
    this.#frame += text.slice(from, at);
    if (this.#place !== 'frame') this.#headLength = this.#frame.length;
    return at;
  }

  #stepInString(character: string, keep: boolean): void {
    if (!this.#escaped && character === '"') {
      this.#inString = false;
      return;
    }
    if (keep) this.#name += character;
    this.#escaped = !this.#escaped && character === '\\';
  }

  #stepInFrame(character: string): void {
    if (character === '"') {
      this.#inString = true;
      this.#name = '';
    } else if (character === ':' && this.#depth <= 2) this.#path[this.#depth] = nameOf(this.#name);
    else if (character === ',') this.#path.length = Math.min(this.#path.length, this.#depth);
    else if (character === '{') this.#depth++;
    else if (character === '}' || character === ']') this.#depth--;
    else if (character === '[') {
      if (this.#depth === 2 && this.#path[1] === 'data' && this.#path[2] === 'vouchers')
        this.#beginVouchers();
      else this.#depth++;
    }
    if (this.#depth < 0) throw new Malformed('the response is not JSON');
    this.#path.length = Math.min(this.#path.length, this.#depth + 1);
  }

  #beginVouchers(): void {
    // Of two lists the later one would win, when the vouchers of the first are returned already.
    if (this.#hasVouchers) throw new Malformed('the response has two lists of vouchers');
    this.#hasVouchers = true;
    this.#place = 'first';
  }

  #readBetween(text: string, at: number): number {
    const character = text[at] as string;
    if (isBlank(character)) return at + 1;
    if (this.#place === 'behind') {
      if (character === ',') this.#place = 'next';
      else this.#endVouchers(character);
      return at + 1;
    }
    if (character === ']' && this.#place === 'first') {
      this.#endVouchers(character);
      return at + 1;
    }
    // If there is no value here, JSON.parse refuses the item.
    this.#place = 'item';
    this.#item = '';
    this.#itemDepth = 0;
    return at;
  }

  #endVouchers(character: string): void {
    if (character !== ']') throw new Malformed('the list of vouchers is not JSON');
    this.#place = 'frame';
    this.#frame += ']';
  }

  #readItem(text: string, from: number, items: unknown[]): number {
    let at = from;
    let isWhole = false;
    for (; at < text.length && !isWhole; at++) {
      const character = text[at] as string;
      if (this.#inString) {
        this.#stepInString(character, false);
        isWhole = !this.#inString && this.#itemDepth === 0;
      } else if (character === '"') this.#inString = true;
      else if (character === '{' || character === '[') this.#itemDepth++;
      else if (this.#itemDepth > 0) {
        if (character === '}' || character === ']') isWhole = --this.#itemDepth === 0;
      } else if (character === ',' || character === ']' || isBlank(character)) break;
    }
    this.#item += text.slice(from, at);
    if (this.#item.length > ITEM_MAX) throw new Malformed('a voucher is too long');
    // A number or a word only ends with the character behind it.
    if (isWhole || at < text.length) {
      items.push(parse(this.#item));
      this.#place = 'behind';
    }
    return at;
  }
}

function nameOf(raw: string): string | undefined {
  return raw.includes('\\') ? String(parse(`"${raw}"`)) : raw;
}

/** Parses a piece. The parser's own error would quote it. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Malformed('the response is not JSON');
  }
}
