/** Writes XML: elements with text or children, a line each. Nothing in a text can end its element. */

export type Xml = string;

/** Characters that XML cannot hold, not even escaped. */
const FORBIDDEN = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;

function escaped(text: string): string {
  return text
    .replace(FORBIDDEN, ' ')
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;');
}

/** An element that holds a text. */
export function text(name: string, value: string, attributes: Readonly<Record<string, string>> = {}): Xml {
  return `<${name}${attributesOf(attributes)}>${escaped(value)}</${name}>`;
}

/** An element that holds others; what is undefined is left out. */
export function element(name: string, ...children: readonly (Xml | undefined)[]): Xml {
  return `<${name}>${children.filter((child) => child !== undefined).join('')}</${name}>`;
}

/** The start of an element whose end is written later. */
export function opening(name: string, attributes: Readonly<Record<string, string>> = {}): Xml {
  return `<${name}${attributesOf(attributes)}>`;
}

function attributesOf(attributes: Readonly<Record<string, string>>): string {
  return Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${escaped(value)}"`)
    .join('');
}

/** Cut to so many characters: what ISO 20022 allows of a text. */
export function cut(value: string, charactersMax: number): string {
  return [...value].slice(0, charactersMax).join('');
}
