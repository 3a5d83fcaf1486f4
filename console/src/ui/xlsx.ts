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

function toCell(kind: Kind, value: unknown, currency: unknown): Cell {
  if (value === null || value === undefined) return null;
  if (typeof value === 'number')
    return kind === 'money' ? { amount: value.toFixed(decimalsOf(currency)) } : value;
  if (kind === 'money') return { amount: plain(value) };
  if (kind === 'number') return { number: plain(value) };
  return kind === 'any' && (isDay(value) || isTime(value)) ? { date: value } : plain(value);
}

/** Hands a list to the browser to save, as a workbook. The rows and the columns are those of its CSV. */
export async function saveXlsx(
  fileName: string,
  columns: readonly string[],
  items: readonly Item[],
  kindOf: (name: string) => Kind,
): Promise<void> {
  const rows = items.map((item) => columns.map((name) => toCell(kindOf(name), item[name], item['currency'])));
  const pieces: BlobPart[] = [];
  for await (const piece of writeXlsx([[...columns], ...rows])) pieces.push(piece as BlobPart);
  save(fileName, new Blob(pieces));
}
