/** Files: the content of a list as CSV, and the text of a file that the user chose. */

type Item = Readonly<Record<string, unknown>>;

/** A value that a spreadsheet would read as a formula gets an apostrophe. */
function toCell(value: unknown): string {
  const text =
    value === null || value === undefined
      ? ''
      : typeof value === 'object'
        ? JSON.stringify(value)
        : String(value);
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function toCsv(columns: readonly string[], items: readonly Item[]): string {
  const lines = [columns, ...items.map((item) => columns.map((name) => item[name]))];
  return `${lines.map((line) => line.map(toCell).join(',')).join('\r\n')}\r\n`;
}

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
