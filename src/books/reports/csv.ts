import { type Cell, type CsvStyle, csvText } from '../csv.ts';
import type { Report, Table } from './report.ts';
import { TRANSACTION_COLUMNS, type TransactionLine } from './transactions.ts';

/** Reports as CSV. A report of a closed day is the same to the byte, whenever and wherever it is made. */

/** What every row begins with, so that a row says by itself what it is of. */
const HEAD = ['report', 'from', 'to', 'zone', 'state', 'closingHash', 'section', 'currency'];

/** A report, with a header for each kind of table. */
export function reportCsv(made: Report, style: CsvStyle): string {
  const head = (table: Table) => [
    ...[made.report, made.from, made.to, made.zone, made.state, made.closingHash],
    ...[table.section ?? null, table.currency],
  ];
  let columns = '';
  return made.tables
    .map((table) => {
      const own = table.columns.join();
      const header: Cell[][] = own === columns ? [] : [[...HEAD, ...table.columns]];
      columns = own;
      return csvText([...header, ...table.rows.map((row) => [...head(table), ...row])], style);
    })
    .join('');
}

/** R8, line by line. */
export async function* transactionsCsv(
  lines: AsyncIterable<TransactionLine>,
  style: CsvStyle,
): AsyncGenerator<string> {
  yield csvText([TRANSACTION_COLUMNS], style);
  for await (const line of lines) {
    const cells = TRANSACTION_COLUMNS.map((column) =>
      column === 'amount' ? { amount: line[column] ?? '' } : line[column],
    );
    yield csvText([cells], style);
  }
}
