/** Writes what a list shows as a CSV file. */

type Item = Readonly<Record<string, unknown>>;

/** What a spreadsheet would read as a formula is defused. */
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

export function toCsv(columns: readonly string[], items: readonly Item[]): string {
  const lines = [columns, ...items.map((item) => columns.map((name) => item[name]))];
  return `${lines.map((line) => line.map(toCell).join(',')).join('\r\n')}\r\n`;
}

/** Hands a file to the browser to save. */
export function save(fileName: string, type: string, content: string | Blob): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  Object.assign(document.createElement('a'), { href: url, download: fileName }).click();
  URL.revokeObjectURL(url);
}
