import type { Voucher } from '../types.ts';

/** Rows that are joined before they are written. */
const PIECE = 500;

/**
 * RFC 4180, every cell in quotation marks. A cell that a spreadsheet could take for a formula gets an apostrophe in front:
 * what a server answers must not run where the file is opened.
 */
function row(cells: readonly string[]): string {
  const quoted = cells.map((cell) => `"${(/^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell).replaceAll('"', '""')}"`);
  return `${quoted.join(',')}\r\n`;
}

/** Vouchers as a CSV file, in pieces. */
export async function* toCsv(vouchers: AsyncIterable<Voucher> | Iterable<Voucher>): AsyncGenerator<string> {
  let rows = [row(['serialNumber', 'code', 'pin'])];
  for await (const { serialNumber, code, pin } of vouchers) {
    rows.push(row([String(serialNumber), code, pin ?? '']));
    if (rows.length < PIECE) continue;
    yield rows.join('');
    rows = [];
  }
  yield rows.join('');
}
