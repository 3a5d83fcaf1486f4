import PDFDocument from 'pdfkit';
import type { Language } from './language.ts';
import { FONTS, printableText } from './names.ts';

/** A statement of account: a title, what it is about, a table, and notes. Amounts are decimal text. */
export type Statement = {
  readonly language: Language;
  /** The letterhead: the sender, its address, and how to reach it; the first line is its name. */
  readonly sender: readonly string[];
  /** Whom the statement is for. */
  readonly recipient: readonly string[];
  readonly title: string;
  readonly details: readonly (readonly [label: string, value: string])[];
  readonly columns: readonly string[];
  /** Cells of the columns; those of the first column are set to the left, all others to the right. */
  readonly rows: readonly StatementRow[];
  readonly notes: readonly string[];
  /** The time of the document, so that the same statement has the same bytes. */
  readonly madeAt: Date;
};

export type StatementRow = {
  readonly cells: readonly string[];
  readonly isStrong?: boolean;
  /** Whether a line is drawn above it. */
  readonly isRuled?: boolean;
};

const MARGIN = 50;
const PAGE = { width: 595.28, height: 841.89 } as const;
const SIZE = 9;
const LINE = 14;
/** The space below a line. */
const RULE = 4;
/** The least share of the first column, and the space before each other column. */
const FIRST_SHARE = 0.2;
const GAP = 8;
/** The height at which the window of an envelope begins: 45 mm, as in DIN 5008. */
const ENVELOPE = 127.6;

/** Draws a statement on A4 pages, as many as it takes. */
export async function drawStatement({
  language,
  sender,
  recipient,
  title,
  details,
  columns,
  rows,
  notes,
  madeAt,
}: Statement): Promise<Buffer> {
  const doc = new PDFDocument({
    size: 'A4',
    margin: MARGIN,
    displayTitle: true,
    lang: language,
    info: { Title: printableText(title), Creator: 'Scrip', CreationDate: madeAt },
  });
  const parts: Buffer[] = [];
  doc.on('data', (part: Buffer) => parts.push(part));
  const ended = new Promise<void>((resolve, reject) => doc.on('end', resolve).on('error', reject));
  drawLetterhead(doc, sender, recipient);
  doc.font(FONTS.strong).fontSize(16).text(printableText(title));
  doc.moveDown(0.7).fontSize(SIZE);
  drawDetails(doc, details);
  doc.moveDown(1);
  const table = [{ cells: columns, isStrong: true }, ...rows.map(ruled)];
  const form = layOut(doc, table);
  for (const row of table) drawRow(doc, form, row);
  doc.moveDown(1.5);
  doc.x = MARGIN;
  for (const note of notes)
    doc
      .font(FONTS.text)
      .fontSize(SIZE - 1)
      .text(printableText(note))
      .moveDown(0.3);
  doc.end();
  await ended;
  return Buffer.concat(parts);
}

/** The sender to the right, and the recipient below it, where the window of an envelope shows it. */
function drawLetterhead(
  doc: PDFKit.PDFDocument,
  sender: readonly string[],
  recipient: readonly string[],
): void {
  if (sender.length === 0) return;
  const line = (text: string, isStrong: boolean, align: 'left' | 'right') =>
    doc
      .font(isStrong ? FONTS.strong : FONTS.text)
      .fontSize(SIZE)
      .text(printableText(text), { align });
  for (const [index, text] of sender.entries()) line(text, index === 0, 'right');
  doc.y = Math.max(doc.y + LINE, ENVELOPE);
  for (const text of recipient) line(text, false, 'left');
  doc.moveDown(3);
}

/** The labels in one column, and their values in another. */
function drawDetails(doc: PDFKit.PDFDocument, details: Statement['details']): void {
  doc.font(FONTS.strong);
  const indent = GAP + Math.max(0, ...details.map(([label]) => doc.widthOfString(label)));
  for (const [label, value] of details) {
    const { y } = doc;
    doc.font(FONTS.strong).text(label, MARGIN, y);
    doc.font(FONTS.text).text(printableText(value), MARGIN + indent, y);
  }
  doc.x = MARGIN;
}

/** The first row is below a line, as others are that say so. */
const ruled = (row: StatementRow, at: number): StatementRow => (at === 0 ? { ...row, isRuled: true } : row);

type Form = { readonly size: number; readonly widths: readonly number[] };

/** Returns the widths of the columns, and the size of the text at which no amount is cut. */
function layOut(doc: PDFKit.PDFDocument, table: readonly StatementRow[]): Form {
  const width = PAGE.width - 2 * MARGIN;
  const count = table[0]?.cells.length ?? 0;
  const others = Array.from({ length: count - 1 }, (_, at) =>
    Math.max(...table.map(({ cells, isStrong }) => GAP + widthOf(doc, cells[at + 1] ?? '', isStrong))),
  );
  const taken = sumOf(others);
  const scale = Math.min(1, (width * (1 - FIRST_SHARE)) / taken);
  return { size: SIZE * scale, widths: [width - taken * scale, ...others.map((each) => each * scale)] };
}

function widthOf(doc: PDFKit.PDFDocument, cell: string, isStrong = false): number {
  return doc
    .font(isStrong ? FONTS.strong : FONTS.text)
    .fontSize(SIZE)
    .widthOfString(printableText(cell));
}

function drawRow(
  doc: PDFKit.PDFDocument,
  { size, widths }: Form,
  { cells, isStrong = false, isRuled = false }: StatementRow,
): void {
  if (doc.y + LINE + RULE > PAGE.height - MARGIN) doc.addPage();
  if (isRuled) {
    doc
      .moveTo(MARGIN, doc.y)
      .lineTo(PAGE.width - MARGIN, doc.y)
      .lineWidth(0.5)
      .strokeColor('#999999')
      .stroke();
    doc.y += RULE;
  }
  const { y } = doc;
  doc.font(isStrong ? FONTS.strong : FONTS.text).fontSize(size);
  let x = MARGIN;
  for (const [index, cell] of cells.entries()) {
    const width = widths[index] ?? 0;
    const isFirst = index === 0;
    // The label of a total takes the empty cells after it, too.
    const empty = cells.slice(1).findIndex((each) => each !== '');
    const own = isFirst ? sumOf(widths.slice(0, 1 + empty)) : width;
    const box = { width: own, align: isFirst ? 'left' : 'right' } as const;
    doc.text(printableText(cell), x, y, { ...box, height: LINE, lineBreak: false, ellipsis: isFirst });
    x += width;
  }
  doc.y = y + LINE;
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0);
}
