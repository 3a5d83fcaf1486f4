import { pipeline } from 'node:stream';
import { withoutFormula } from '@scrip/print/formula';
import { CsvError, type CsvErrorCode, parse } from 'csv-parse';
import { parse as parseWhole } from 'csv-parse/sync';
import { stringify } from 'csv-stringify/sync';

/** CSV (RFC 4180), read and written: UTF-8, a header, ISO dates, and amounts with a decimal point. */

export const CSV_TYPE = 'text/csv; charset=utf-8';
/** That of the same rows as a workbook (xlsx.ts). */
export const XLSX_TYPE = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';

/** `european` separates cells with `;` and writes amounts with a decimal comma. */
export type CsvStyle = 'standard' | 'european';

/** A number, an amount, or a day or time as text: a workbook has them as values. */
type Value = { readonly number: string } | { readonly amount: string } | { readonly date: string };
/** A text, a number, or another value. */
export type Cell = string | number | null | Value;

/** Returns a value as CSV and JSON have it. */
export const valueText = (value: Value): string =>
  'amount' in value ? value.amount : 'date' in value ? value.date : value.number;

/**
 * Returns rows as CSV. What a spreadsheet would run as a formula gets an apostrophe in front. Amounts never
 * look like a formula.
 */
export function csvText(rows: readonly (readonly Cell[])[], style: CsvStyle = 'standard'): string {
  const isEuropean = style === 'european';
  const cells = rows.map((row) =>
    row.map((cell) => {
      if (cell === null) return '';
      if (typeof cell === 'number') return String(cell);
      if (typeof cell === 'string') return withoutFormula(cell);
      return isEuropean && 'amount' in cell ? cell.amount.replace('.', ',') : valueText(cell);
    }),
  );
  return stringify(cells, { record_delimiter: 'windows', delimiter: isEuropean ? ';' : ',' });
}

/** A row as it was written, and the line of the file on which it ends. */
export type CsvRow = { readonly record: readonly string[]; readonly info: { readonly lines: number } };

/** A text is not CSV from a line on. */
export class BrokenCsv extends Error {
  readonly line: number;
  readonly code: CsvErrorCode;

  constructor({ code, lines = 1 }: CsvError & { readonly lines?: number }) {
    super('this is not CSV');
    this.code = code;
    this.line = Number(lines);
  }
}

const broken = (error: unknown) => (error instanceof CsvError ? new BrokenCsv(error) : error);

/** Reads the rows of a text, without blanks around fields, and without empty lines. @throws BrokenCsv */
export function readCsv(text: string, delimiter = ','): CsvRow[] {
  const options = { trim: true, info: true, skip_empty_lines: true, relax_column_count: true, bom: true };
  try {
    // The types of the library do not know what `info` changes.
    return parseWhole(text, { ...options, delimiter }) as unknown as CsvRow[];
  } catch (error) {
    throw broken(error);
  }
}

/**
 * Reads a text row by row, so that memory does not grow with it, and without empty lines.
 * @throws BrokenCsv; errors of the text
 */
export async function* streamCsv(
  text: AsyncIterable<string>,
  rowCharactersMax: number,
): AsyncGenerator<CsvRow> {
  const parser = parse({
    bom: true,
    info: true,
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: rowCharactersMax,
  });
  // An error of the text ends the parser with that error, and therefore the loop.
  pipeline(text, parser, () => {});
  try {
    yield* parser as AsyncIterable<CsvRow>;
  } catch (error) {
    throw broken(error);
  }
}
