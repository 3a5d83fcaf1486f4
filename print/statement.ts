import PDFDocument from 'pdfkit';
import { FONTS, printableText } from './names.ts';

/** A statement of account: a title, what it is about, a table, and notes. Amounts are decimal text. */
export type Statement = {
  readonly title: string;
  readonly details: readonly (readonly [label: string, value: string])[];
  readonly columns: readonly string[];
  /** Cells of the columns; those of the first column are set to the left, all others to the right. */
  readonly rows: readonly StatementRow[];
  readonly notes: readonly string[];
  /** The time of the document, so that the same statement has the same bytes. */
  readonly madeAt: Date;
};

export type StatementRow = { readonly cells: readonly string[]; readonly isStrong?: boolean };

const MARGIN = 50;
const PAGE = { width: 595.28, height: 841.89 } as const;
const SIZE = 9;
const LINE = 14;
const FIRST_SHARE = 0.4;

/** Draws a statement on A4 pages, as many as it takes. */
export async function drawStatement({
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
    lang: 'en',
    info: { Title: printableText(title), Creator: 'Scrip', CreationDate: madeAt },
  });
  const parts: Buffer[] = [];
  doc.on('data', (part: Buffer) => parts.push(part));
  const ended = new Promise<void>((resolve, reject) => doc.on('end', resolve).on('error', reject));
  doc.font(FONTS.strong).fontSize(16).text(printableText(title));
  doc.moveDown(0.7).fontSize(SIZE);
  for (const [label, value] of details)
    doc
      .font(FONTS.strong)
      .text(`${label}  `, { continued: true })
      .font(FONTS.text)
      .text(printableText(value));
  doc.moveDown(1);
  drawRow(doc, { cells: columns, isStrong: true });
  for (const row of rows) drawRow(doc, row);
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

function drawRow(doc: PDFKit.PDFDocument, { cells, isStrong = false }: StatementRow): void {
  if (doc.y + LINE > PAGE.height - MARGIN) doc.addPage();
  const { y } = doc;
  const width = PAGE.width - 2 * MARGIN;
  const first = width * FIRST_SHARE;
  const other = (width - first) / Math.max(1, cells.length - 1);
  doc.font(isStrong ? FONTS.strong : FONTS.text).fontSize(SIZE);
  for (const [index, cell] of cells.entries()) {
    const x = index === 0 ? MARGIN : MARGIN + first + (index - 1) * other;
    const box = { width: index === 0 ? first : other, align: index === 0 ? 'left' : 'right' } as const;
    doc.text(printableText(cell), x, y, { ...box, height: LINE, lineBreak: false, ellipsis: true });
  }
  doc.y = y + LINE;
}
