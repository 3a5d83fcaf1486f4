// The package's named export `raw` is a symbology of that name; the encoder is on the object.
import bwip from 'bwip-js/node';

/** The part of a PDF document that symbols are drawn with. */
export type Pen = {
  save(): unknown;
  restore(): unknown;
  translate(x: number, y: number): unknown;
  scale(factor: number): unknown;
  rect(x: number, y: number, width: number, height: number): unknown;
  fill(color: string): unknown;
};

/** Sixteen digits fit the smallest QR code (21 × 21) even at the highest error correction. */
export const QR_MODULES = 21;
/**
 * Draws a QR code as areas, sharp at any size.
 * @param text 16 digits: the code, then the PIN
 * @param x its upper left corner, with `y`; the caller keeps the quiet zone of 4 modules around it
 * @param module the side of a module
 */
export function drawQr(pen: Pen, text: string, x: number, y: number, module: number): void {
  const [symbol] = bwip.raw('qrcode', text, 'eclevel=H version=1');
  if (!symbol || !('pixs' in symbol) || symbol.pixx !== QR_MODULES)
    throw new Error('a QR code has an unexpected size');
  pen.save();
  pen.translate(x, y);
  pen.scale(module);
  for (let row = 0; row < QR_MODULES; row++) {
    const modules = symbol.pixs.slice(row * QR_MODULES, (row + 1) * QR_MODULES);
    // Neighbors become one area: less to write, and no hairline between them.
    for (let start = 0; start < QR_MODULES; start++) {
      if (!modules[start]) continue;
      const from = start;
      while (modules[start + 1]) start++;
      pen.rect(from, row, start - from + 1, 1);
    }
  }
  pen.fill('#000');
  pen.restore();
}

/**
 * A bar code, of a known width. GS1 DataBar Expanded is the one that GS1 admits for a product with a serial
 * number at the point of sale.
 */
export type Bars = {
  readonly kind: 'code128' | 'databarexpanded';
  readonly text: string;
  /** The most modules that it may be wide. */
  readonly modulesMax: number;
};

/** Returns the bar code of a code: 12 digits, two to a character, with start, check and stop. */
export const barsOfCode = (code: string): Bars => ({ kind: 'code128', text: code, modulesMax: 101 });

/**
 * Returns the bar code of a serial number, which is no secret. With a GTIN, it names the product too, as a
 * GS1 element string.
 */
export function barsOfSerial(serialNumber: bigint, gtin: string | null): Bars {
  if (gtin === null) return { kind: 'code128', text: String(serialNumber), modulesMax: 123 };
  const text = `(01)${gtin.padStart(14, '0')}(21)${serialNumber}`;
  return { kind: 'databarexpanded', text, modulesMax: 232 };
}

/**
 * Draws a bar code as areas.
 * @param x its upper left corner, with `y`; the caller keeps the quiet zone of 10 modules on both sides
 * @param module the width of the narrowest bar
 * @param height of the bars
 */
export function drawBars(
  pen: Pen,
  { kind, text, modulesMax }: Bars,
  x: number,
  y: number,
  module: number,
  height: number,
): void {
  const [symbol] = bwip.raw(kind, text);
  if (!symbol || !('sbs' in symbol)) throw new Error('a bar code has no bars');
  pen.save();
  pen.translate(x, y);
  pen.scale(module);
  let at = 0;
  // Bars and spaces in turn, beginning and ending with a bar.
  for (const [index, width] of symbol.sbs.entries()) {
    if (index % 2 === 0 && width > 0) pen.rect(at, 0, width, height / module);
    at += width;
  }
  if (at > modulesMax) throw new Error('a bar code is too wide');
  pen.fill('#000');
  pen.restore();
}
