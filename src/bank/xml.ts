/**
 * A strict reader of XML in linear time, without document type declarations. It refuses a document that is
 * not well formed, such as one that was cut off.
 */

export type Element = {
  /** Without the prefix of a namespace. */
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  readonly children: readonly Element[];
  /** The text in it, without that of its children. */
  readonly text: string;
};

/** Thrown for a document that is not well formed. */
export class XmlError extends Error {
  /** The line of the text, from 1. */
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.line = line;
  }
}

/** The byte order marks. UTF-16 without one is recognized by a `<` with a NUL beside it. */
const MARKS: readonly (readonly [bytes: string, label: string])[] = [
  ['efbbbf', 'utf-8'],
  ['fffe', 'utf-16le'],
  ['feff', 'utf-16be'],
  ['3c00', 'utf-16le'],
  ['003c', 'utf-16be'],
];
const DECLARED = /^<\?xml\s[^>]{0,200}?\bencoding\s{0,9}=\s{0,9}["']([\w.:-]{1,40})["']/;
/** The part of a document that holds its declaration. */
const HEAD_BYTES = 300;

/**
 * Decodes a document: in the encoding of its byte order mark, else in the one that it declares, else in
 * UTF-8.
 * @throws XmlError if its bytes are not in this encoding
 */
export function decodeXml(bytes: Buffer): string {
  const marked = MARKS.find(([start]) => bytes.toString('hex', 0, start.length / 2) === start)?.[1];
  const declared = DECLARED.exec(bytes.toString('latin1', 0, HEAD_BYTES))?.[1] ?? 'utf-8';
  const label = marked ?? declared;
  // A document without NUL bytes is not in UTF-16, whatever it declares.
  if (!marked && /^utf-?16/i.test(label))
    throw new XmlError(1, `the file declares ${label}, and is not in it`);
  try {
    return new TextDecoder(label, { fatal: true }).decode(bytes);
  } catch {
    throw new XmlError(1, `the file is not in ${label}, or this encoding is not known`);
  }
}

const SPACE = /[\t\n\r ]*/y;
const NAME = /[\p{L}_:][\p{L}\p{M}\p{N}_:.·-]*/uy;
const ENTITIES = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
]);
/** Characters that a document may not contain, not even as a reference. */
const FORBIDDEN = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/u;
/** Far more than statements of banks have. */
const DEPTH_MAX = 100;

type Open = {
  name: string;
  full: string;
  attributes: Map<string, string>;
  children: Element[];
  text: string;
};

/** Reads a document. @throws XmlError with the line and what is wrong */
export function readXml(text: string): Element {
  return new Reader(text).read();
}

class Reader {
  readonly #text: string;
  readonly #open: Open[] = [];
  #at = 0;
  #root: Element | undefined;

  constructor(text: string) {
    this.#text = text;
  }

  read(): Element {
    const forbidden = FORBIDDEN.exec(this.#text);
    if (forbidden) this.#fail('there is a character that XML does not allow', forbidden.index);
    while (this.#at < this.#text.length) {
      const start = this.#text.indexOf('<', this.#at);
      this.#addText(this.#text.slice(this.#at, start === -1 ? undefined : start));
      if (start === -1) break;
      this.#at = start;
      this.#readMarkup();
    }
    const [open] = this.#open;
    if (open) this.#fail(`the file ends within <${open.full}>: it was cut off`, this.#text.length);
    return this.#root ?? this.#fail('there is no element', 0);
  }

  #readMarkup(): void {
    if (this.#takes('<!--')) this.#until('-->');
    else if (this.#takes('<![CDATA[')) this.#addCharacters(this.#until(']]>'));
    else if (this.#takes('<?')) this.#until('?>');
    else if (this.#takes('<!')) this.#fail('document type declarations are not read');
    else if (this.#takes('</')) this.#close();
    else {
      this.#at++;
      this.#begin();
    }
  }

  #takes(start: string): boolean {
    if (!this.#text.startsWith(start, this.#at)) return false;
    this.#at += start.length;
    return true;
  }

  /** Returns the text before an end, and skips both. */
  #until(end: string): string {
    const found = this.#text.indexOf(end, this.#at);
    if (found === -1) this.#fail(`${end} is missing: the file was cut off`);
    const text = this.#text.slice(this.#at, found);
    this.#at = found + end.length;
    return text;
  }

  #matches(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }

  #begin(): void {
    const full = this.#matches(NAME);
    if (full === '') this.#fail('there is a < that begins no element');
    if (this.#root) this.#fail('there is an element after the end of the document');
    if (this.#open.length === DEPTH_MAX) this.#fail('the elements are nested too deeply');
    const attributes = this.#readAttributes();
    const isEmpty = this.#takes('/');
    if (!this.#takes('>')) this.#fail(`the tag <${full}> does not end`);
    this.#open.push({ name: localOf(full), full, attributes, children: [], text: '' });
    if (isEmpty) this.#end();
  }

  #readAttributes(): Map<string, string> {
    const attributes = new Map<string, string>();
    while (this.#matches(SPACE) !== '') {
      const full = this.#matches(NAME);
      if (full === '') break;
      this.#matches(SPACE);
      if (!this.#takes('=')) this.#fail(`the attribute ${full} has no value`);
      this.#matches(SPACE);
      const quote = this.#takes('"') ? '"' : this.#takes("'") ? "'" : this.#fail(`${full} has no quotes`);
      const value = this.#until(quote);
      if (value.includes('<') || attributes.has(full)) this.#fail(`the attribute ${full} is not well formed`);
      attributes.set(full, this.#decoded(value));
    }
    return attributes;
  }

  #close(): void {
    const full = this.#matches(NAME);
    this.#matches(SPACE);
    const open = this.#open.at(-1);
    if (!this.#takes('>') || open?.full !== full)
      this.#fail(`</${full}> ends no element that is open${open ? `, but <${open.full}> is` : ''}`);
    this.#end();
  }

  #end(): void {
    const { name, attributes, children, text } = this.#open.pop() as Open;
    const element = { name, attributes, children, text };
    const parent = this.#open.at(-1);
    if (parent) parent.children.push(element);
    else this.#root = element;
  }

  #addText(raw: string): void {
    if (this.#open.length > 0) this.#addCharacters(this.#decoded(raw));
    else if (raw.trim() !== '') this.#fail('there is text outside of the document');
  }

  #addCharacters(text: string): void {
    const open = this.#open.at(-1) ?? this.#fail('there is text outside of the document');
    open.text += text;
  }

  /** Replaces references to characters. */
  #decoded(raw: string): string {
    if (!raw.includes('&')) return raw;
    return raw.replace(/&([^;&]{0,10};)?/g, (_all, reference: string | undefined) => {
      const name = reference?.slice(0, -1) ?? '';
      const [, hex, decimal] = /^#(?:x([0-9a-fA-F]{1,6})|(\d{1,7}))$/.exec(name) ?? [];
      const number = hex ? Number.parseInt(hex, 16) : decimal ? Number(decimal) : undefined;
      if (number === undefined)
        return ENTITIES.get(name) ?? this.#fail('there is a & that stands for no character');
      const character = number <= 0x10ffff ? String.fromCodePoint(number) : '\0';
      return FORBIDDEN.test(character)
        ? this.#fail('a reference names a character that is forbidden')
        : character;
    });
  }

  #fail(message: string, at = this.#at): never {
    throw new XmlError(this.#text.slice(0, at).split('\n').length, message);
  }
}

const localOf = (full: string) => full.slice(full.indexOf(':') + 1);
