import { once } from 'node:events';

/** What commands print: results on stdout, everything else on stderr. */

let wroteDocument = false;

/** Whether something of a result is on stdout already: a second document behind it would make both unreadable. */
export function hasWritten(): boolean {
  return wroteDocument;
}

/** Texts of others, without what could drive a terminal or turn its lines around. */
export function clean(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\u{fffd}');
}

/** Waits where the reader is slow, so that a result of any size needs no memory. */
export async function write(text: string): Promise<void> {
  wroteDocument = true;
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}

/** One JSON document on stdout. */
export async function printJson(value: unknown): Promise<void> {
  await write(`${JSON.stringify(value, null, 2)}\n`);
}

/** A line for people, on stderr. */
export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

type Cell = string | number | null | undefined;

const cellText = (cell: Cell) => (cell === null || cell === undefined || cell === '' ? '-' : clean(String(cell)));

/** A table for people; numbers stand on the right. */
export async function printTable(head: readonly string[], rows: readonly (readonly Cell[])[]): Promise<void> {
  const texts = rows.map((row) => row.map(cellText));
  const isNumber = head.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number'));
  const widths = head.map((name, column) => Math.max(name.length, ...texts.map((row) => (row[column] ?? '').length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, column) => (isNumber[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join('  ')
      .trimEnd();
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  await write(`${[line(head), rule, ...texts.map(line)].join('\n')}\n`);
}

/** Name and value, a line each. */
export async function printFields(fields: Readonly<Record<string, Cell>>): Promise<void> {
  const width = Math.max(...Object.keys(fields).map((name) => name.length));
  const lines = Object.entries(fields).map(([name, value]) => `${name.padEnd(width)}  ${cellText(value)}`);
  await write(`${lines.join('\n')}\n`);
}
