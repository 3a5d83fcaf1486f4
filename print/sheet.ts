import PDFDocument from 'pdfkit';
import type { Batch, Design, Voucher } from './batch.ts';
import {
  CARD,
  drawCard,
  GREY,
  type Head,
  type Heading,
  INK,
  type Line,
  LOGO,
  LOGO_GAP,
  NAME_WIDTH,
  widthOf,
  write,
} from './card.ts';
import { type Language, WORDS } from './language.ts';
import { FONTS, printableNames } from './names.ts';

const PAGE = { width: 595.28, height: 841.89 } as const;
const COLUMNS = 2;
const ROWS = 5;
const CARDS = COLUMNS * ROWS;
const LEFT = (PAGE.width - COLUMNS * CARD.width) / 2;
const TOP = (PAGE.height - ROWS * CARD.height) / 2;
const MARK = { near: 4, far: 14 } as const;
const SMALL = { font: FONTS.text, size: 7 } as const;

type SheetOptions = {
  /** The number of vouchers, for the number of pages. */
  readonly count: number;
  readonly printedAt: Date;
  /** Of what the sheet says; the names are as they are. By default that of the design, or English. */
  readonly language?: Language | undefined;
  /** The path of a font for the names, where the fonts of this package lack letters. */
  readonly nameFont?: string | undefined;
  /** The password of the document (AES-256). Without it, the document is not encrypted. */
  readonly passphrase?: string | undefined;
};

/**
 * Writes vouchers as a PDF of A4 pages, ten cards on each, with cut marks. A page is written before the
 * next one is drawn, so memory grows by a line of the document's index for each page only.
 */
export async function* writeSheet(
  given: Batch,
  vouchers: AsyncIterable<Voucher[]>,
  options: SheetOptions,
): AsyncGenerator<Buffer> {
  const language = options.language ?? given.design?.language ?? 'en';
  const batch = printableNames(given, language, options.nameFont).names;
  const doc = new PDFDocument({
    size: 'A4',
    margin: 0,
    autoFirstPage: false,
    bufferPages: false,
    displayTitle: true,
    lang: language,
    info: {
      Title: WORDS[language].title(given.reference),
      Creator: 'Scrip',
      CreationDate: options.printedAt,
    },
    // Without the permission, some readers print no document that is encrypted.
    ...(options.passphrase !== undefined && {
      pdfVersion: '1.7ext3',
      userPassword: options.passphrase,
      permissions: { printing: 'highResolution' },
    }),
  });
  const heading = prepareHeading(doc, batch, { ...options, language });
  let page = 0;
  const drawPage = (cards: Voucher[]) => {
    doc.addPage();
    page++;
    drawMarks(doc);
    drawMargins(doc, batch, cards, page, { ...options, language });
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

/** What the document has ready. */
function* written(doc: PDFKit.PDFDocument): Generator<Buffer> {
  const chunk: Buffer | null = doc.read();
  if (chunk) yield chunk;
}

async function* inTens(vouchers: AsyncIterable<Voucher[]>): AsyncGenerator<Voucher[]> {
  let rest: Voucher[] = [];
  for await (const page of vouchers) {
    rest.push(...page);
    while (rest.length >= CARDS) {
      yield rest.slice(0, CARDS);
      rest = rest.slice(CARDS);
    }
  }
  if (rest.length > 0) yield rest;
}

type Drawn = SheetOptions & { readonly language: Language };

function prepareHeading(
  doc: PDFKit.PDFDocument,
  { merchant, product, needsActivation, gtin, design }: Batch,
  { language, nameFont }: Drawn,
): Heading {
  const head = prepareHead(design);
  const room = NAME_WIDTH - (head.logo ? head.logo.width + LOGO_GAP : 0);
  return {
    merchant: fit(doc, { text: merchant, font: nameFont ?? FONTS.strong, size: 11.5 }, room),
    product: fit(doc, { text: product, font: nameFont ?? FONTS.text, size: 8 }, room),
    needsActivation,
    gtin,
    language,
    head,
  };
}

function prepareHead(design: Design | null): Head {
  if (!design) return { background: undefined, ink: INK, quiet: GREY, logo: undefined };
  const { background, color: ink, logo } = design;
  if (!logo) return { background, ink, quiet: ink, logo: undefined };
  const picture = Buffer.from(logo);
  const [width, height] = [picture.readUInt32BE(16), picture.readUInt32BE(20)];
  const scale = Math.min(LOGO.width / width, LOGO.height / height);
  // The document has a picture once for each address.
  const address = `data:image/png;base64,${picture.toString('base64')}`;
  return {
    background,
    ink,
    quiet: ink,
    logo: { address, width: width * scale, height: height * scale },
  };
}

/** Makes a name smaller, down to a readable size, until it fits beside the value; a longer one is cut. */
function fit(doc: PDFKit.PDFDocument, wanted: Line, room: number): Line {
  let { text, size } = wanted;
  const isTooWide = () => widthOf(doc, { ...wanted, text, size }) > room;
  while (isTooWide() && size > 7) size -= 0.5;
  if (!isTooWide()) return { ...wanted, text, size };
  const letters = [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment);
  do {
    letters.pop();
    text = `${letters.join('').trimEnd()}…`;
  } while (letters.length > 0 && isTooWide());
  return { ...wanted, text, size };
}

/** Draws cutting guides: marks outside the cards for a machine, faint lines between them for scissors. */
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

/** Names the batch and the page in the margins, which are cut off. */
function drawMargins(
  doc: PDFKit.PDFDocument,
  batch: Batch,
  cards: Voucher[],
  page: number,
  { count, printedAt, language }: Drawn,
): void {
  const words = WORDS[language];
  const pages = Math.max(Math.ceil(count / CARDS), page);
  const right = LEFT + COLUMNS * CARD.width;
  const toRight = (text: string, y: number) => {
    const line = { ...SMALL, text };
    write(doc, line, GREY, right - widthOf(doc, line), y);
  };
  const top = TOP - 32;
  const bottom = TOP + ROWS * CARD.height + 20;
  write(doc, { ...SMALL, text: words.batch(batch.reference) }, GREY, LEFT, top);
  toRight(words.exported(count, printedAt.toISOString().slice(0, 16).replace('T', ' ')), top);
  const [first, last] = [cards[0]?.serialNumber, cards.at(-1)?.serialNumber];
  write(doc, { ...SMALL, text: words.serials(first, last) }, GREY, LEFT, bottom);
  toRight(words.page(page, pages), bottom);
}
