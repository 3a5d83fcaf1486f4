import { statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { openSync } from 'fontkit';
import type { Batch } from './batch.ts';
import { type Language, WORDS } from './language.ts';

const fontFile = (name: string) => fileURLToPath(import.meta.resolve(`dejavu-fonts-ttf/ttf/${name}.ttf`));

/** The fonts of a sheet. They are embedded in it, so that it looks the same at the printer's. */
export const FONTS = {
  text: fontFile('DejaVuSansCondensed'),
  strong: fontFile('DejaVuSansCondensed-Bold'),
  digits: fontFile('DejaVuSansMono-Bold'),
} as const;

/** Whether a font has a letter for every character of a text. */
type Covers = (text: string) => boolean;

/**
 * Opens a TrueType or OpenType file; undefined for other files, and for a collection, of which no font is
 * named.
 */
function openFont(path: string): Covers | undefined {
  let font: ReturnType<typeof openSync>;
  try {
    // A device has no end: its content would fill the memory of the machine.
    if (!statSync(path).isFile()) return undefined;
    font = openSync(path);
  } catch {
    return undefined;
  }
  if (!('hasGlyphForCodePoint' in font)) return undefined;
  const single = font;
  return (text) => [...text].every((character) => single.hasGlyphForCodePoint(character.codePointAt(0) ?? 0));
}

/** Whether a file is a font that names can be set in: TrueType or OpenType. */
export function isFont(path: string): boolean {
  return openFont(path) !== undefined;
}

/** The names of a batch that a font (the font of the package, if none is given) has no letters for. */
export function findUnprintable(batch: Batch, font?: string): string[] {
  return printableNames(batch, 'en', font).replaced;
}

/**
 * The names of a batch as they can be printed. A name that the font has no letters for, or that mixes
 * directions (which the PDF writer does not order), is replaced by its identifier: a plain sheet is
 * better than one with garbage.
 * @param language of what replaces the name of a merchant
 * @returns the names, and those that were replaced
 */
export function printableNames(
  batch: Batch,
  language: Language,
  font?: string,
): { names: Batch; replaced: string[] } {
  const covers = openFont(font ?? FONTS.strong) ?? (() => false);
  const replaced: string[] = [];
  const printable = (name: string, substitute: string) => {
    const text = plainText(name);
    if (covers(text) && hasOneDirection(text)) return text;
    replaced.push(name);
    return substitute;
  };
  const { design } = batch;
  const names = {
    ...batch,
    merchant: printable(design?.title ?? batch.merchant, `${WORDS[language].merchant} ${batch.merchantId}`),
    product: printable(design?.subtitle ?? batch.product, batch.productCode),
    reference: printable(batch.reference, batch.transactionId),
  };
  return { names, replaced };
}

const plainText = (text: string) =>
  text
    .normalize('NFC')
    .replace(/\p{Cc}+/gu, ' ')
    .trim();

/** Whether the fonts of this package can set a text. */
export function isPrintable(text: string): boolean {
  const covers = openFont(FONTS.strong) ?? (() => false);
  return covers(plainText(text)) && hasOneDirection(text);
}

/** Text from right to left is set as one run, which is right only if nothing in it runs the other way. */
function hasOneDirection(text: string): boolean {
  const fromRight = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
  return !fromRight.test(text) || /^[\p{Script=Arabic}\p{Script=Hebrew}\p{M} ]+$/u.test(text);
}

let covers: Covers | undefined;

/**
 * A text as the fonts of this package can set it: a character that they have no letter for becomes a
 * question mark.
 */
export function printableText(text: string): string {
  covers ??= openFont(FONTS.text) ?? (() => false);
  const has = covers;
  const plain = text.normalize('NFC').replace(/\p{Cc}+/gu, ' ');
  return [...plain].map((character) => (has(character) ? character : '?')).join('');
}
