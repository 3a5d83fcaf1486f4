import { strToU8, Zip, ZipDeflate } from 'fflate';
import type { Cell } from './csv.ts';
import { DAY_MS } from './time.ts';

/**
 * Tables as XLSX (ECMA-376): sheets whose first row stays in sight. Texts are texts, whatever they look
 * like: a spreadsheet runs none as a formula. It runs in browsers, too.
 */

/** The most rows of a sheet. */
const ROWS_MAX = 1_048_576;
/** The most characters of a cell. */
const TEXT_MAX = 32_767;
/** A spreadsheet keeps this many digits of a number. */
const DIGITS_MAX = 15;
/** Days from the first one of a spreadsheet to 1970, and those that it can show. */
const EPOCH_DAYS = 25_569;
const [FIRST_DAY, LAST_DAY] = ['1900-03-01', '9999-12-31'];
/** About how many characters are compressed before others have their turn. */
const PIECE = 32_768;

const HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const OPEN = 'http://schemas.openxmlformats.org';
const MAIN = `${OPEN}/spreadsheetml/2006/main`;
const PACKAGE = `${OPEN}/package/2006`;
const OFFICE = `${OPEN}/officeDocument/2006/relationships`;
const SHEET_TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml';

/** The styles of cells: their places in the file. Amounts have as many decimals as their text. */
const STYLE = { head: 1, day: 2, time: 3, amount: 4 } as const;
const NUMBER_FORMATS = ['yyyy-mm-dd', 'yyyy-mm-dd hh:mm:ss', '0', '0.0', '0.00', '0.000', '0.0000'];
const CUSTOM = 164;

const STYLES = `<styleSheet xmlns="${MAIN}"><numFmts count="${NUMBER_FORMATS.length}">${NUMBER_FORMATS.map(
  (code, at) => `<numFmt numFmtId="${CUSTOM + at}" formatCode="${code}"/>`,
).join('')}</numFmts><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font>\
<font><b/><sz val="11"/><name val="Calibri"/></font></fonts>\
<fills count="2"><fill><patternFill patternType="none"/></fill>\
<fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border/></borders>\
<cellStyleXfs count="1"><xf/></cellStyleXfs><cellXfs count="${NUMBER_FORMATS.length + 2}">\
<xf xfId="0"/><xf xfId="0" fontId="1" applyFont="1"/>${NUMBER_FORMATS.map(
  (_, at) => `<xf xfId="0" numFmtId="${CUSTOM + at}" applyNumberFormat="1"/>`,
).join('')}</cellXfs>\
<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>`;

const numbered = (sheets: number) => Array.from({ length: sheets }, (_, at) => at + 1);

const filesAround = (sheets: number): Readonly<Record<string, string>> => ({
  '[Content_Types].xml': `<Types xmlns="${PACKAGE}/content-types">\
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>\
<Default Extension="xml" ContentType="application/xml"/>\
<Override PartName="/xl/workbook.xml" ContentType="${SHEET_TYPE}.sheet.main+xml"/>\
<Override PartName="/xl/styles.xml" ContentType="${SHEET_TYPE}.styles+xml"/>${numbered(sheets)
    .map((n) => `<Override PartName="/xl/${sheetName(n)}" ContentType="${SHEET_TYPE}.worksheet+xml"/>`)
    .join('')}</Types>`,
  '_rels/.rels': `<Relationships xmlns="${PACKAGE}/relationships">\
<Relationship Id="rId1" Type="${OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
  'xl/workbook.xml': `<workbook xmlns="${MAIN}" xmlns:r="${OFFICE}"><sheets>${numbered(sheets)
    .map((n) => `<sheet name="Scrip${n === 1 ? '' : ` ${n}`}" sheetId="${n}" r:id="rId${n}"/>`)
    .join('')}</sheets></workbook>`,
  'xl/_rels/workbook.xml.rels': `<Relationships xmlns="${PACKAGE}/relationships">${numbered(sheets)
    .map((n) => `<Relationship Id="rId${n}" Type="${OFFICE}/worksheet" Target="${sheetName(n)}"/>`)
    .join('')}<Relationship Id="styles" Type="${OFFICE}/styles" Target="styles.xml"/></Relationships>`,
  'xl/styles.xml': STYLES,
});

const sheetName = (number: number) => `worksheets/sheet${number}.xml`;

const SHEET_BEGINS = `${HEAD}<worksheet xmlns="${MAIN}"><sheetViews><sheetView workbookViewId="0">\
<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>\
<sheetFormatPr defaultColWidth="18" defaultRowHeight="15"/><sheetData>`;
const SHEET_ENDS = '</sheetData></worksheet>';

const ENTITIES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };

/** What XML cannot contain, or would change, and what a reader would take for such an escape. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is searched for
const ESCAPED = /[\x00-\x08\x0b-\x1f\ufffe\uffff]|_(?=x[0-9A-Fa-f]{4}_)/g;

/** Returns a text as it stands in a cell. One that is too long ends with `…`. */
function written(text: string): string {
  const short = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX - 1)}…` : text;
  return short
    .toWellFormed()
    .replace(ESCAPED, (sign) => `_x${sign.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`)
    .replace(/[&<>]/g, (sign) => ENTITIES[sign] ?? sign);
}

const textCell = (place: string, text: string, style = '') =>
  `<c r="${place}" t="inlineStr"${style}><is><t xml:space="preserve">${written(text)}</t></is></c>`;

const numberCell = (place: string, number: string | number, style = 0) =>
  `<c r="${place}"${style === 0 ? '' : ` s="${style}"`}><v>${number}</v></c>`;

/** Decimal text as a number with as many decimals, or as text if a spreadsheet would round it. */
function decimalCell(place: string, text: string): string {
  const [, digits, decimals = ''] = /^-?(\d+)(?:\.(\d{1,4}))?$/.exec(text) ?? [];
  if (digits === undefined || digits.length + decimals.length > DIGITS_MAX) return textCell(place, text);
  return numberCell(place, text, STYLE.amount + decimals.length);
}

/** A day, or a time in UTC. */
function dateCell(place: string, text: string): string {
  const day = text.slice(0, 10);
  const days = Date.parse(text) / DAY_MS + EPOCH_DAYS;
  if (Number.isNaN(days) || day < FIRST_DAY || day > LAST_DAY) return textCell(place, text);
  return numberCell(place, days, text === day ? STYLE.day : STYLE.time);
}

function cellAt(place: string, cell: Cell): string {
  if (cell === null || cell === '') return '';
  if (typeof cell === 'number') return numberCell(place, cell);
  if (typeof cell === 'string') return textCell(place, cell);
  return 'date' in cell
    ? dateCell(place, cell.date)
    : decimalCell(place, 'amount' in cell ? cell.amount : cell.number);
}

/** Returns the letters of a column, from 0 on. */
function lettersOf(column: number): string {
  const last = String.fromCharCode(65 + (column % 26));
  return column < 26 ? last : lettersOf(Math.floor(column / 26) - 1) + last;
}

const headRow = (cells: readonly Cell[]) =>
  cells.map((cell, column) => textCell(`${lettersOf(column)}1`, String(cell), ` s="${STYLE.head}"`));

/** Writes the rows of the sheets, each of which begins with the first row. @returns texts by their sheet */
async function* sheetsOf(rows: Rows, rowsMax: number): AsyncGenerator<{ sheet: number; text: string }> {
  let [sheet, row, text] = [1, 0, SHEET_BEGINS];
  let head: readonly Cell[] | undefined;
  const add = (cells: readonly string[]) => {
    text += `<row r="${++row}">${cells.join('')}</row>`;
  };
  for await (const cells of rows) {
    if (head && row === rowsMax) {
      yield { sheet, text: text + SHEET_ENDS };
      [sheet, row, text] = [sheet + 1, 0, SHEET_BEGINS];
      add(headRow(head));
    }
    add(head ? cells.map((cell, column) => cellAt(`${lettersOf(column)}${row + 1}`, cell)) : headRow(cells));
    head ??= cells;
    if (text.length < PIECE) continue;
    yield { sheet, text };
    text = '';
  }
  yield { sheet, text: text + SHEET_ENDS };
}

type Rows = AsyncIterable<readonly Cell[]> | Iterable<readonly Cell[]>;

/**
 * Writes a table as XLSX, piece by piece, so that memory does not grow with it.
 * @param rows the first one has the names of the columns
 * @param rowsMax of a sheet; more rows go on in another one
 * @throws errors of the rows
 */
export async function* writeXlsx(rows: Rows, rowsMax = ROWS_MAX): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  let failed: Error | null = null;
  const zip = new Zip((error, piece) => {
    failed ??= error;
    pieces.push(piece);
  });
  const add = (name: string) => {
    const file = new ZipDeflate(name);
    zip.add(file);
    return file;
  };
  const files: ZipDeflate[] = [];
  for await (const { sheet, text } of sheetsOf(rows, rowsMax)) {
    if (sheet > files.length) {
      files.at(-1)?.push(new Uint8Array(), true);
      files.push(add(`xl/${sheetName(sheet)}`));
    }
    files.at(-1)?.push(strToU8(text), false);
    yield* pieces;
    pieces = [];
    // Compression is work of this thread. Calls that wait have their turn.
    await new Promise((resolve) => setTimeout(resolve));
  }
  files.at(-1)?.push(new Uint8Array(), true);
  for (const [name, text] of Object.entries(filesAround(files.length)))
    add(name).push(strToU8(HEAD + text), true);
  zip.end();
  if (failed) throw failed;
  yield* pieces;
}
