import { type Item, toCsv } from './csv-text.ts';

/** Files: the content of a list as CSV, and the text of a file that the user chose. */

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

/** Whether a file is a workbook, which is a ZIP archive. */
export const isWorkbook = ([first, second]: Uint8Array): boolean => first === 0x50 && second === 0x4b;

/**
 * The text of a file: UTF-8, UTF-16 with its mark, or what older tills on Windows write.
 * @returns undefined for what is no text, such as a workbook
 */
export function decode(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes;
  if (isWorkbook(bytes)) return undefined;
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}
