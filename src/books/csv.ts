import { stringify } from 'csv-stringify/sync';

/**
 * CSV of the books: UTF-8, RFC 4180, a header, ISO dates, amounts with a point. `european` separates by
 * `;` and writes amounts with a comma.
 */

export type CsvStyle = 'standard' | 'european';

/** An amount, or another cell. */
export type Cell = string | number | null | { readonly amount: string };

/**
 * Rows as text. A cell that a spreadsheet would take for a formula gets an apostrophe in front; an amount
 * never looks like one.
 */
export function csvText(rows: readonly (readonly Cell[])[], style: CsvStyle): string {
  const isEuropean = style === 'european';
  const cells = rows.map((row) =>
    row.map((cell) => {
      if (cell === null) return '';
      if (typeof cell === 'number') return String(cell);
      if (typeof cell === 'string') return defused(cell);
      return isEuropean ? cell.amount.replace('.', ',') : cell.amount;
    }),
  );
  return stringify(cells, { record_delimiter: 'windows', delimiter: isEuropean ? ';' : ',' });
}

/** What a spreadsheet would run: a cell that begins with a sign of a formula, the wide forms included. */
const FORMULA = /^[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]/;

function defused(cell: string): string {
  return FORMULA.test(cell) ? `'${cell}` : cell;
}
