import { openSync } from 'fontkit';
import { FONTS } from './fonts.ts';
import type { PrintedBatch } from './voucher.ts';

/** Whether a font has a letter for every character of a text. */
type Covers = (text: string) => boolean;

/**
 * Opens a font that names can be set in.
 * @param path of a TrueType or OpenType file
 * @returns undefined where it is none, or a collection of several, of which nobody has named one
 */
export function openNameFont(path: string): Covers | undefined {
  let font: ReturnType<typeof openSync>;
  try {
    font = openSync(path);
  } catch {
    return undefined;
  }
  if (!('hasGlyphForCodePoint' in font)) return undefined;
  const single = font;
  return (text) => [...text].every((character) => single.hasGlyphForCodePoint(character.codePointAt(0) ?? 0));
}

/**
 * The names of a batch as they can be printed. One that the font has no letters for, or that runs in two directions (which
 * the document writer does not order), is replaced by an identifier: better a plain sheet than one with garbage on it.
 * @returns the names, and those that had to be replaced
 */
export function printableNames(batch: PrintedBatch, nameFont?: string): { names: PrintedBatch; replaced: string[] } {
  const covers = openNameFont(nameFont ?? FONTS.strong) ?? (() => false);
  const replaced: string[] = [];
  const printable = (name: string, substitute: string) => {
    const text = name
      .normalize('NFC')
      .replace(/\p{Cc}+/gu, ' ')
      .trim();
    if (covers(text) && runsOneWay(text)) return text;
    replaced.push(name);
    return substitute;
  };
  const names = {
    ...batch,
    merchant: printable(batch.merchant, `Merchant ${batch.merchantId}`),
    product: printable(batch.product, batch.productCode),
    reference: printable(batch.reference, batch.transactionId),
  };
  return { names, replaced };
}

/** Text from right to left is set as one piece, which is right only where nothing in it runs the other way. */
function runsOneWay(text: string): boolean {
  const fromRight = /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;
  return !fromRight.test(text) || /^[\p{Script=Arabic}\p{Script=Hebrew}\p{M} ]+$/u.test(text);
}
