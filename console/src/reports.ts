import type { Listed } from './answers.ts';
import { get, type Page, type Query } from './api.ts';

export type Cell = string | number | null | { readonly amount: string };
export type Table = {
  readonly section?: string;
  readonly number?: string;
  readonly currency: string;
  readonly columns: readonly string[];
  /** The rows by the names of their columns. */
  readonly rows: readonly Row[];
};
export type Report = {
  readonly report: string;
  readonly from: string;
  readonly to: string;
  readonly zone: string;
  readonly state: 'closed' | 'provisional';
  readonly closingHash: string | null;
  readonly madeAt: string;
  readonly tables: readonly Table[];
};
export type Day = Listed<'books.days'>;
export type Row = Readonly<Record<string, Cell>>;

/** If parts of a page ask for the same data at the same time, they share one request. */
export function shared<Answer>(read: () => Promise<Answer>): () => Promise<Answer> {
  let reading: Promise<Answer> | undefined;
  return () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
}

/** A table as the service sends it: amounts are text in the columns that `amounts` names. */
type Sent = Omit<Table, 'rows'> & {
  readonly amounts: readonly string[];
  readonly rows: readonly Readonly<Record<string, string | number | null>>[];
};

export async function readReport(name: string, query: Query): Promise<Report> {
  const report = await get<Report & { tables: readonly Sent[] }>(`/books/reports/${name}`, query);
  return { ...report, tables: report.tables.map(withAmounts) };
}

function withAmounts({ amounts, rows, ...table }: Sent): Table {
  const cellOf = (name: string, cell: string | number | null) =>
    typeof cell === 'string' && cell !== '' && amounts.includes(name) ? { amount: cell } : cell;
  return {
    ...table,
    rows: rows.map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, cellOf(name, cell)])),
    ),
  };
}

export const readDays = shared(async () => (await get<Page<Day>>('/books/days')).items);

/** The number in a cell, for a chart. A floating-point number is exact enough for drawing. */
export function numberOf(cell: Cell | undefined): number {
  if (cell === null || cell === undefined) return 0;
  return Number(typeof cell === 'object' ? cell.amount : cell);
}

const DAY_MS = 86_400_000;

export function dayAfter(day: string, days = 1): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10);
}

/** The months that the books cover, each with its days. A report must begin with a day that exists. */
export function monthsOf(days: readonly Day[]): { month: string; from: string; to: string }[] {
  const months = new Map<string, { month: string; from: string; to: string }>();
  for (const { day } of days) {
    const month = day.slice(0, 7);
    const known = months.get(month);
    months.set(month, { month, from: known?.from ?? day, to: dayAfter(day) });
  }
  return [...months.values()];
}
