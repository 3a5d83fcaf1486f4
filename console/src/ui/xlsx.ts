import type { Cell } from '../../../src/csv.ts';
import { writeXlsx } from '../../../src/xlsx.ts';
import { save } from './csv.ts';
import { plain } from './csv-text.ts';
import { isDay, isTime } from './format-of.ts';
import type { Item } from './item.ts';

/** What the values of a column are: amounts and numbers may be texts; `any`: what they look like. */
export type Kind = 'money' | 'number' | 'text' | 'any';

/** The decimals of an amount, which follow from its currency. */
function decimalsOf(currency: unknown): number {
  try {
    const { maximumFractionDigits } = new Intl.NumberFormat('en', {
      style: 'currency',
      currency: String(currency),
    }).resolvedOptions();
    return maximumFractionDigits ?? 2;
  } catch {
    return 2;
  }
}

/** How a workbook, which people read, says the names and the words of the API. */
export type Said = {
  readonly label: (column: string) => string;
  readonly kindOf: (column: string) => Kind;
  /** A word of a closed list in the language of the page; undefined for any other value. */
  readonly wordOf: (column: string, value: unknown) => string | undefined;
};

function toCell(kind: Kind, value: unknown, currency: unknown): Cell {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number')
    return kind === 'money' ? { amount: value.toFixed(decimalsOf(currency)) } : value;
  if (kind === 'money') return { amount: plain(value) };
  if (kind === 'number') return { number: plain(value) };
  return kind === 'any' && (isDay(value) || isTime(value)) ? { date: value } : plain(value);
}

/**
 * Hands a list to the browser to save, as a workbook. It has the rows and the columns of the CSV, in the
 * language of the page: programs read the CSV.
 */
export async function saveXlsx(
  fileName: string,
  columns: readonly string[],
  items: readonly Item[],
  { label, kindOf, wordOf }: Said,
): Promise<void> {
  const cellOf = (item: Item, name: string) =>
    wordOf(name, item[name]) ?? toCell(kindOf(name), item[name], item['currency']);
  const rows = items.map((item) => columns.map((name) => cellOf(item, name)));
  const pieces: BlobPart[] = [];
  for await (const piece of writeXlsx([columns.map(label), ...rows])) pieces.push(piece as BlobPart);
  save(fileName, new Blob(pieces));
}
