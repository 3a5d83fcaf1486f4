import { toText } from '../../money.ts';
import { FONTS } from './fonts.ts';
import { drawBars, drawQr, QR_MODULES } from './symbols.ts';
import type { PrintedVoucher } from './voucher.ts';

/** Points in a millimeter. */
const MM = 72 / 25.4;
/** A card, as large as one that fits a wallet's pocket. */
export const CARD = { width: 90 * MM, height: 51 * MM } as const;

type Document = PDFKit.PDFDocument;

const PAD = 12;
const INK = '#000';
const GREY = '#555';
const LINE = '#999';
const QR_MODULE = 2.6;
const QR_SIDE = QR_MODULES * QR_MODULE;
/** A third of a millimeter and more: read by any scanner, printed by any printer. */
const BAR_MODULE = 1.1;
const BAR_HEIGHT = 25;
const CODE_SIZE = 14.5;
/** Of the font's size: how far its line lies below the top at which text is written. */
const ASCENT = 0.928;

/** What stands on every card of a batch, made ready once: names in sizes in which they fit. */
export type Heading = { readonly merchant: Fitted; readonly product: Fitted };
export type Fitted = { readonly text: string; readonly font: string; readonly size: number };

/** The width that names have, and what is left of the line for the value. */
export const NAME_WIDTH = 128;
const VALUE_WIDTH = 98;

/** Draws a voucher with its upper left corner at a point of the page. */
export function drawCard(doc: Document, heading: Heading, voucher: PrintedVoucher, x: number, y: number): void {
  const { code, pin, serialNumber, expiresAt } = voucher;
  const left = x + PAD;
  const right = x + CARD.width - PAD;

  write(doc, heading.merchant, INK, left, y + 22 - heading.merchant.size * ASCENT);
  write(doc, heading.product, GREY, left, y + 26);
  drawValue(doc, voucher, right, y + 11);
  doc
    .moveTo(left, y + 41)
    .lineTo(right, y + 41)
    .lineWidth(0.5)
    .stroke(LINE);

  const digits = { font: FONTS.digits, size: CODE_SIZE };
  const pinLeft = right - QR_SIDE;
  label(doc, 'CODE', left, y + 47);
  label(doc, 'PIN', pinLeft, y + 47);
  write(doc, { ...digits, text: code.replace(/(\d{4})(?=\d)/g, '$1 ') }, INK, left, y + 54);
  write(doc, { ...digits, text: pin }, INK, pinLeft, y + 54);

  drawBars(doc, code, left, y + 79, BAR_MODULE, BAR_HEIGHT);
  drawQr(doc, `${code}${pin}`, right - QR_SIDE, y + 78, QR_MODULE);

  const serialLeft = left + 104;
  label(doc, 'VALID UNTIL', left, y + 114);
  write(doc, { text: formatExpiry(expiresAt), font: FONTS.strong, size: 8 }, INK, left, y + 121);
  label(doc, 'SERIAL NO.', serialLeft, y + 114);
  write(doc, { text: String(serialNumber), font: FONTS.text, size: 8 }, INK, serialLeft, y + 121);
}

/** The value on the right. One that is told at the counter leaves its place for it, with the currency. */
function drawValue(doc: Document, { value, currency }: PrintedVoucher, right: number, y: number): void {
  const unit = { text: currency, font: FONTS.strong, size: 9 };
  if (!value) {
    const note = { text: 'VALUE GIVEN AT ACTIVATION', font: FONTS.text, size: 5 };
    write(doc, unit, INK, right - widthOf(doc, unit), y + 1);
    write(doc, note, GREY, right - widthOf(doc, note), y + 15);
    return;
  }
  const room = VALUE_WIDTH - widthOf(doc, unit) - 5;
  let amount = { text: toText(value), font: FONTS.strong, size: 20 };
  const width = widthOf(doc, amount);
  if (width > room) amount = { ...amount, size: (amount.size * room) / width };
  const left = right - Math.min(width, room);
  // Both stand on one line, whatever the size.
  write(doc, amount, INK, left, y + 17 - amount.size * ASCENT);
  write(doc, unit, GREY, left - widthOf(doc, unit) - 5, y + 17 - unit.size * ASCENT);
}

/** The same words on every card are laid out once. */
const REPEATED = {};

function label(doc: Document, text: string, x: number, y: number): void {
  write(doc, { text, font: FONTS.text, size: 5 }, GREY, x, y, REPEATED);
}

/**
 * Laid out as a whole, and not kept. Word by word, the words of a name from right to left would stand in the wrong order,
 * and the document would keep every word in memory: each code that it ever wrote.
 */
const ONE_RUN = { features: [] };

/** Writes one line. */
export function write(
  doc: Document,
  line: Fitted,
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

export function widthOf(doc: Document, { text, font, size }: Fitted): number {
  return doc.font(font).fontSize(size).widthOfString(text, ONE_RUN);
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** A day that can be mistaken for no other; with the time, unless it is valid to the end of that day. */
function formatExpiry(date: Date): string {
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]} ${date.getUTCFullYear()}`;
  const time = date.toISOString().slice(11, 16);
  return time === '23:59' ? day : `${day}, ${time} UTC`;
}
