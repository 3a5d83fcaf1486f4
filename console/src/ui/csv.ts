import { toCsv } from './csv-text.ts';
import type { Item } from './item.ts';

/** Files for the browser to save: the content of a list as CSV. */

/** Hands a table to the browser to save. */
export function saveCsv(fileName: string, columns: readonly string[], items: readonly Item[]): void {
  save(fileName, new Blob([toCsv(columns, items)], { type: 'text/csv;charset=utf-8' }));
}

/** Hands a file to the browser to save. */
export function save(fileName: string, content: Blob): void {
  const url = URL.createObjectURL(content);
  Object.assign(document.createElement('a'), { href: url, download: fileName }).click();
  URL.revokeObjectURL(url);
}
