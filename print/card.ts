import type { Voucher } from './batch.ts';
import { amountIn, type Language, WORDS } from './language.ts';
import { FONTS } from './names.ts';
import { barsOfCode, barsOfSerial, drawBars, drawQr, QR_MODULES } from './symbols.ts';

/** Points per millimeter. */
const MM = 72 / 25.4;
/** A card that fits a wallet. */
export const CARD = { width: 90 * MM, height: 51 * MM } as const;

type Document = PDFKit.PDFDocument;

const PAD = 12;
export const INK = '#000';
export const GREY = '#555';
const LINE = '#999';
/** More than a third of a millimeter: any printer prints it, any scanner reads it. */
const BAR_MODULE = 1.1;
/** The least module (0.264 mm) and the least height, in modules, that GS1 admits at the point of sale. */
const SERIAL_MODULE = 0.75;
const SERIAL_HEIGHT = 34 * SERIAL_MODULE;
const CODE_SIZE = 14.5;
/** The distance of the baseline from the top of the text, as a share of the font size. */
const ASCENT = 0.928;

/** The parts that all cards of a batch share: the names, in sizes that fit. */
export type Heading = {
  readonly merchant: Line;
  readonly product: Line;
  readonly needsActivation: boolean;
  readonly gtin: string | null;
  readonly language: Language;
  readonly head: Head;
};
/** The colors and the logo of the head of a card. */
export type Head = {
  /** Undefined: white, with a line below. */
  readonly background: string | undefined;
  readonly ink: string;
  readonly quiet: string;
  readonly logo: Logo | undefined;
};
/** A picture, as a `data:` address, and its size on the card. */
type Logo = { readonly address: string; readonly width: number; readonly height: number };
export type Line = { readonly text: string; readonly font: string; readonly size: number };

/** The width of the names, and what is left of the line for the value. */
export const NAME_WIDTH = 128;
const VALUE_WIDTH = 98;
/** The head, with the names and the value, and the room for a logo in it. */
const HEAD_HEIGHT = 41;
export const LOGO = { width: 44, height: 30 } as const;
export const LOGO_GAP = 8;

/** Where the rows of a card are, from its top. */
type Rows = {
  readonly labels: number;
  readonly digits: number;
  readonly symbols: number;
  readonly barHeight: number;
  readonly qrModule: number;
  readonly validity: number;
};
const ROWS: Rows = { labels: 47, digits: 54, symbols: 79, barHeight: 25, qrModule: 2.6, validity: 114 };
/** Those of a card that has to be activated, with room for the bar code of its serial number below. */
const ROWS_ABOVE_SERIAL: Rows = {
  labels: 45,
  digits: 51,
  symbols: 71,
  barHeight: 16,
  qrModule: 2.2,
  validity: 89,
};
const ACTIVATION = { label: 107, bars: 114 } as const;

/** Draws a voucher with its upper left corner at a point of the page. */
export function drawCard(doc: Document, heading: Heading, voucher: Voucher, x: number, y: number): void {
  const { code, pin, serialNumber, value } = voucher;
  const words = WORDS[heading.language];
  const left = x + PAD;
  const right = x + CARD.width - PAD;
  const needsActivation = heading.needsActivation || value === null;
  const rows = needsActivation ? ROWS_ABOVE_SERIAL : ROWS;

  drawHead(doc, heading, voucher, x, y);
  const digits = { font: FONTS.digits, size: CODE_SIZE };
  const pinLeft = right - QR_MODULES * rows.qrModule;
  label(doc, words.code, left, y + rows.labels);
  label(doc, words.pin, pinLeft, y + rows.labels);
  write(doc, { ...digits, text: code.replace(/(\d{4})(?=\d)/g, '$1 ') }, INK, left, y + rows.digits);
  write(doc, { ...digits, text: pin }, INK, pinLeft, y + rows.digits);

  drawBars(doc, barsOfCode(code), left, y + rows.symbols, BAR_MODULE, rows.barHeight);
  drawQr(doc, `${code}${pin}`, pinLeft, y + rows.symbols - 1, rows.qrModule);

  const serialLeft = left + 104;
  label(doc, words.validUntil, left, y + rows.validity);
  const lastDay = words.day.format(Date.parse(voucher.lastDay));
  write(doc, { text: lastDay, font: FONTS.strong, size: 8 }, INK, left, y + rows.validity + 7);
  label(doc, words.serialNumber, serialLeft, y + rows.validity);
  write(
    doc,
    { text: String(serialNumber), font: FONTS.text, size: 8 },
    INK,
    serialLeft,
    y + rows.validity + 7,
  );
  if (!needsActivation) return;
  label(doc, words.needsActivation, left, y + ACTIVATION.label);
  const serialBars = barsOfSerial(serialNumber, heading.gtin);
  drawBars(doc, serialBars, left, y + ACTIVATION.bars, SERIAL_MODULE, SERIAL_HEIGHT);
}

function drawHead(doc: Document, heading: Heading, voucher: Voucher, x: number, y: number): void {
  const { background, ink, quiet, logo } = heading.head;
  const [left, right] = [x + PAD, x + CARD.width - PAD];
  if (background === undefined)
    doc
      .moveTo(left, y + HEAD_HEIGHT)
      .lineTo(right, y + HEAD_HEIGHT)
      .lineWidth(0.5)
      .stroke(LINE);
  else doc.rect(x, y, CARD.width, HEAD_HEIGHT).fill(background);
  if (logo) {
    const top = y + (HEAD_HEIGHT - logo.height) / 2;
    doc.image(logo.address, left, top, { width: logo.width, height: logo.height });
  }
  const textLeft = logo ? left + logo.width + LOGO_GAP : left;
  write(doc, heading.merchant, ink, textLeft, y + 22 - heading.merchant.size * ASCENT);
  write(doc, heading.product, quiet, textLeft, y + 26);
  drawValue(doc, voucher, heading, right, y + 11);
}

/** The value on the right; room for it beside the currency where it is given at activation. */
function drawValue(
  doc: Document,
  { value, currency }: Voucher,
  { language, head: { ink, quiet } }: Heading,
  right: number,
  y: number,
): void {
  const unit = { text: currency, font: FONTS.strong, size: 9 };
  if (value === null) {
    const note = { text: WORDS[language].valueAtActivation, font: FONTS.text, size: 5 };
    write(doc, unit, ink, right - widthOf(doc, unit), y + 1);
    write(doc, note, quiet, right - widthOf(doc, note), y + 15);
    return;
  }
  const room = VALUE_WIDTH - widthOf(doc, unit) - 5;
  let amount = { text: amountIn(language, value), font: FONTS.strong, size: 20 };
  const width = widthOf(doc, amount);
  if (width > room) amount = { ...amount, size: (amount.size * room) / width };
  const left = right - Math.min(width, room);
  // On one baseline, whatever the size.
  write(doc, amount, ink, left, y + 17 - amount.size * ASCENT);
  write(doc, unit, quiet, left - widthOf(doc, unit) - 5, y + 17 - unit.size * ASCENT);
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
