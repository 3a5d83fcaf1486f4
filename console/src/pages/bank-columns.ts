import { AMOUNTS, columnLike, decode, languageOf, readCsv } from '../ui/csv-table.ts';

/** The first of a text like 31.12.2026, 12/31/2026 or 2026-12-31 that tells how days are written. */
function formatOf(days: readonly string[]): string {
  if (days.some((day) => /^\d{4}-/.test(day))) return 'YYYY-MM-DD';
  if (days.some((day) => day.includes('.'))) return 'DD.MM.YYYY';
  const isMonthFirst = days.some((day) => Number(day.split('/')[1]) > 12);
  return isMonthFirst ? 'MM/DD/YYYY' : 'DD/MM/YYYY';
}

function isUtf8(bytes: Uint8Array): boolean {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes) !== '';
  } catch {
    return false;
  }
}

/**
 * Guesses how the columns of a bank's CSV are read, by their names and by what is in them: the input of
 * `bank.mapping` that a person checks. What the file does not tell is left out.
 */
export function guessColumns(bytes: Uint8Array) {
  const { separator, columns, rows } = readCsv(decode(bytes) ?? '');
  const date = columnLike(columns, /date|datum|buchungstag|valuta/i);
  const amount = columnLike(columns, AMOUNTS);
  const currency = columnLike(columns, /curr|währ|waehr/i);
  const texts = columns.filter((column) =>
    /text|zweck|descr|detail|memo|ref|name|payee|empf|auftrag/i.test(column),
  );
  const cells = (column: string | undefined) =>
    column === undefined ? [] : rows.map(({ of }) => of[column] ?? '').filter(Boolean);
  return {
    delimiter: separator,
    encoding: isUtf8(bytes) ? 'utf-8' : 'windows-1252',
    decimal: languageOf(cells(amount), 'en') === 'de' ? ',' : '.',
    dateFormat: formatOf(cells(date)),
    ...(date && { date }),
    ...(amount && { amount }),
    ...(texts.length > 0 && { texts }),
    ...(currency && { currency }),
  };
}
