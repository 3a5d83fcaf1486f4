import PDFDocument from 'pdfkit';
import { CARD, drawCard, type Fitted, type Heading, NAME_WIDTH, widthOf, write } from './card.ts';
import { FONTS } from './fonts.ts';
import { printableNames } from './names.ts';
import type { PrintedBatch, PrintedVoucher } from './voucher.ts';

const PAGE = { width: 595.28, height: 841.89 } as const;
const COLUMNS = 2;
const ROWS = 5;
const CARDS = COLUMNS * ROWS;
const LEFT = (PAGE.width - COLUMNS * CARD.width) / 2;
const TOP = (PAGE.height - ROWS * CARD.height) / 2;
const MARK = { near: 4, far: 14 } as const;
const GREY = '#555';
const SMALL = { font: FONTS.text, size: 7 } as const;

/** What a sheet is made with beside its vouchers. */
type SheetOptions = {
  /** How many vouchers there will be: for the number of pages. */
  readonly count: number;
  readonly printedAt: Date;
  /** A font for names that the fonts which come along have no letters for. */
  readonly nameFont?: string | undefined;
};

/**
 * Writes vouchers as a PDF document of A4 pages: ten cards on each, with cut marks. A page is written out before the next
 * one is drawn, so any number of them takes the same memory but for a line of the document's index each.
 */
export async function* writeSheet(
  given: PrintedBatch,
  vouchers: AsyncIterable<PrintedVoucher[]>,
  options: SheetOptions,
): AsyncGenerator<Buffer> {
  const batch = printableNames(given, options.nameFont).names;
  const doc = new PDFDocument({
    size: 'A4',
    margin: 0,
    autoFirstPage: false,
    bufferPages: false,
    displayTitle: true,
    lang: 'en',
    info: { Title: `Vouchers ${given.reference}`, Creator: 'Scrip', CreationDate: options.printedAt },
  });
  const heading = prepareHeading(doc, batch, options.nameFont);
  let page = 0;
  const drawPage = (cards: PrintedVoucher[]) => {
    doc.addPage();
    page++;
    drawMarks(doc);
    drawMargins(doc, batch, cards, page, options);
    for (const [index, card] of cards.entries()) {
      const x = LEFT + (index % COLUMNS) * CARD.width;
      drawCard(doc, heading, card, x, TOP + Math.floor(index / COLUMNS) * CARD.height);
    }
  };
  for await (const cards of inTens(vouchers)) {
    drawPage(cards);
    yield* written(doc);
  }
  doc.end();
  for await (const chunk of doc) yield chunk as Buffer;
}

/** What the document has ready, without waiting for more. */
function* written(doc: PDFKit.PDFDocument): Generator<Buffer> {
  const chunk: Buffer | null = doc.read();
  if (chunk) yield chunk;
}

async function* inTens(vouchers: AsyncIterable<PrintedVoucher[]>): AsyncGenerator<PrintedVoucher[]> {
  let rest: PrintedVoucher[] = [];
  for await (const page of vouchers) {
    rest.push(...page);
    while (rest.length >= CARDS) {
      yield rest.slice(0, CARDS);
      rest = rest.slice(CARDS);
    }
  }
  if (rest.length > 0) yield rest;
}

function prepareHeading(doc: PDFKit.PDFDocument, { merchant, product }: PrintedBatch, nameFont?: string): Heading {
  return {
    merchant: fit(doc, { text: merchant, font: nameFont ?? FONTS.strong, size: 11.5 }),
    product: fit(doc, { text: product, font: nameFont ?? FONTS.text, size: 8 }),
  };
}

/** A name smaller, down to a size that can be read, until it fits beside the value; what is longer still is cut. */
function fit(doc: PDFKit.PDFDocument, wanted: Fitted): Fitted {
  let { text, size } = wanted;
  const isTooWide = () => widthOf(doc, { ...wanted, text, size }) > NAME_WIDTH;
  while (isTooWide() && size > 7) size -= 0.5;
  if (!isTooWide()) return { ...wanted, text, size };
  const letters = [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment);
  do {
    letters.pop();
    text = `${letters.join('').trimEnd()}…`;
  } while (letters.length > 0 && isTooWide());
  return { ...wanted, text, size };
}

/** Where to cut: marks outside of the cards for a machine, and a faint line between them for scissors. */
function drawMarks(doc: PDFKit.PDFDocument): void {
  const bottom = TOP + ROWS * CARD.height;
  const right = LEFT + COLUMNS * CARD.width;
  const xs = Array.from({ length: COLUMNS + 1 }, (_, index) => LEFT + index * CARD.width);
  const ys = Array.from({ length: ROWS + 1 }, (_, index) => TOP + index * CARD.height);
  doc.lineWidth(0.25);
  for (const x of xs) doc.moveTo(x, TOP).lineTo(x, bottom);
  for (const y of ys) doc.moveTo(LEFT, y).lineTo(right, y);
  doc.dash(1, { space: 2 }).stroke('#bbb').undash();
  for (const x of xs) {
    doc.moveTo(x, TOP - MARK.far).lineTo(x, TOP - MARK.near);
    doc.moveTo(x, bottom + MARK.near).lineTo(x, bottom + MARK.far);
  }
  for (const y of ys) {
    doc.moveTo(LEFT - MARK.far, y).lineTo(LEFT - MARK.near, y);
    doc.moveTo(right + MARK.near, y).lineTo(right + MARK.far, y);
  }
  doc.stroke('#000');
}

/** Says which sheet of which batch this is, in the margins that are cut off. */
function drawMargins(
  doc: PDFKit.PDFDocument,
  batch: PrintedBatch,
  cards: PrintedVoucher[],
  page: number,
  { count, printedAt }: SheetOptions,
): void {
  const pages = Math.max(Math.ceil(count / CARDS), page);
  const right = LEFT + COLUMNS * CARD.width;
  const toRight = (text: string, y: number) => {
    const line = { ...SMALL, text };
    write(doc, line, GREY, right - widthOf(doc, line), y);
  };
  const top = TOP - 32;
  const bottom = TOP + ROWS * CARD.height + 20;
  write(doc, { ...SMALL, text: `Batch ${batch.reference}` }, GREY, LEFT, top);
  toRight(`${count} vouchers, exported ${printedAt.toISOString().slice(0, 16).replace('T', ' ')} UTC`, top);
  const [first, last] = [cards[0]?.serialNumber, cards.at(-1)?.serialNumber];
  write(
    doc,
    { ...SMALL, text: `Serial no. ${first} to ${last}. Codes are money: keep under lock.` },
    GREY,
    LEFT,
    bottom,
  );
  toRight(`Page ${page} of ${pages}`, bottom);
}
