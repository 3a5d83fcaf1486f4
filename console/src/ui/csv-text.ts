import { withoutFormula } from '@scrip/print/formula';
import type { Item } from './item.ts';

/** A value as text. */
export const plain = (value: unknown): string =>
  value === null || value === undefined
    ? ''
    : typeof value === 'object'
      ? JSON.stringify(value)
      : String(value);

/** What a spreadsheet would read as a formula gets an apostrophe, except in numbers. */
function toCell(value: unknown): string {
  const text = plain(value);
  const safe = typeof value === 'number' ? text : withoutFormula(text);
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The content of a list as CSV. */
export function toCsv(columns: readonly string[], items: readonly Item[]): string {
  const lines = [columns, ...items.map((item) => columns.map((name) => item[name]))];
  return `${lines.map((line) => line.map(toCell).join(',')).join('\r\n')}\r\n`;
}
