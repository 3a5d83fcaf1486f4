import type { Voucher } from './index.ts';
import { amountIn, type Language, WORDS } from './language.ts';
import { FONTS } from './names.ts';
import { drawBars, drawQr, QR_MODULES } from './symbols.ts';

/** Points per millimeter. */
const MM = 72 / 25.4;
/** A card that fits a wallet. */
export const CARD = { width: 90 * MM, height: 51 * MM } as const;

type Document = PDFKit.PDFDocument;

const PAD = 12;
const INK = '#000';
const GREY = '#555';
const LINE = '#999';
const QR_MODULE = 2.6;
const QR_SIDE = QR_MODULES * QR_MODULE;
/** More than a third of a millimeter: any printer prints it, any scanner reads it. */
const BAR_MODULE = 1.1;
const BAR_HEIGHT = 25;
const CODE_SIZE = 14.5;
/** The distance of the baseline from the top of the text, as a share of the font size. */
const ASCENT = 0.928;

/** The parts that all cards of a batch share: the names, in sizes that fit. */
export type Heading = {
  readonly merchant: Line;
  readonly product: Line;
  readonly needsActivation: boolean;
  readonly language: Language;
};
export type Line = { readonly text: string; readonly font: string; readonly size: number };

/** The width of the names, and what is left of the line for the value. */
export const NAME_WIDTH = 128;
const VALUE_WIDTH = 98;

/** Draws a voucher with its upper left corner at a point of the page. */
export function drawCard(doc: Document, heading: Heading, voucher: Voucher, x: number, y: number): void {
  const { code, pin, serialNumber, value } = voucher;
  const words = WORDS[heading.language];
  const left = x + PAD;
  const right = x + CARD.width - PAD;

  write(doc, heading.merchant, INK, left, y + 22 - heading.merchant.size * ASCENT);
  write(doc, heading.product, GREY, left, y + 26);
  drawValue(doc, voucher, heading.language, right, y + 11);
  doc
    .moveTo(left, y + 41)
    .lineTo(right, y + 41)
    .lineWidth(0.5)
    .stroke(LINE);

  const digits = { font: FONTS.digits, size: CODE_SIZE };
  const pinLeft = right - QR_SIDE;
  label(doc, words.code, left, y + 47);
  label(doc, words.pin, pinLeft, y + 47);
  write(doc, { ...digits, text: code.replace(/(\d{4})(?=\d)/g, '$1 ') }, INK, left, y + 54);
  write(doc, { ...digits, text: pin }, INK, pinLeft, y + 54);

  drawBars(doc, code, left, y + 79, BAR_MODULE, BAR_HEIGHT);
  drawQr(doc, `${code}${pin}`, right - QR_SIDE, y + 78, QR_MODULE);

  const serialLeft = left + 104;
  label(doc, words.validUntil, left, y + 114);
  const lastDay = words.day.format(Date.parse(voucher.lastDay));
  write(doc, { text: lastDay, font: FONTS.strong, size: 8 }, INK, left, y + 121);
  label(doc, words.serialNumber, serialLeft, y + 114);
  write(doc, { text: String(serialNumber), font: FONTS.text, size: 8 }, INK, serialLeft, y + 121);
  if (heading.needsActivation || value === null) label(doc, words.needsActivation, left, y + 133);
}

/** The value on the right; room for it beside the currency where it is given at activation. */
function drawValue(
  doc: Document,
  { value, currency }: Voucher,
  language: Language,
  right: number,
  y: number,
): void {
  const unit = { text: currency, font: FONTS.strong, size: 9 };
  if (value === null) {
    const note = { text: WORDS[language].valueAtActivation, font: FONTS.text, size: 5 };
    write(doc, unit, INK, right - widthOf(doc, unit), y + 1);
    write(doc, note, GREY, right - widthOf(doc, note), y + 15);
    return;
  }
  const room = VALUE_WIDTH - widthOf(doc, unit) - 5;
  let amount = { text: amountIn(language, value), font: FONTS.strong, size: 20 };
  const width = widthOf(doc, amount);
  if (width > room) amount = { ...amount, size: (amount.size * room) / width };
  const left = right - Math.min(width, room);
  // On one baseline, whatever the size.
  write(doc, amount, INK, left, y + 17 - amount.size * ASCENT);
  write(doc, unit, GREY, left - widthOf(doc, unit) - 5, y + 17 - unit.size * ASCENT);
}

/** Words that every card has are laid out once, and kept. */
const REPEATED = {};

function label(doc: Document, text: string, x: number, y: number): void {
  write(doc, { text, font: FONTS.text, size: 5 }, GREY, x, y, REPEATED);
}

/**
 * Laid out as a whole, and not kept. Word by word, the words of a name from right to left would be in the
 * wrong order, and the document would keep every code in memory.
 */
const ONE_RUN = { features: [] };

/** Writes one line. */
export function write(
  doc: Document,
  line: Line,
  color: string,
  x: number,
  y: number,
  layout: object = ONE_RUN,
): void {
  const { text, font, size } = line;
  doc
    .font(font)
    .fontSize(size)
    .fillColor(color)
    .text(text, x, y, { ...layout, lineBreak: false });
}

export function widthOf(doc: Document, { text, font, size }: Line): number {
  return doc.font(font).fontSize(size).widthOfString(text, ONE_RUN);
}
