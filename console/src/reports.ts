import type { QueryClient } from '@tanstack/react-query';
import type { Answer, Listed } from './answers.ts';
import { get, type Page, type Query } from './api.ts';

type Sent = Answer<'books.report'>;
type SentTable = Sent['tables'][number];

export type Cell = string | number | null | { readonly amount: string };
export type Row = Readonly<Record<string, Cell>>;
/** A table whose amounts can be told from other texts. */
export type Table = Omit<SentTable, 'amounts' | 'rows'> & { readonly rows: readonly Row[] };
export type Report = Omit<Sent, 'tables'> & { readonly tables: readonly Table[] };
export type Day = Listed<'books.days'>;

/** If parts of a page ask for the same data at the same time, they share one request. */
function shared<Answer>(read: () => Promise<Answer>): () => Promise<Answer> {
  let reading: Promise<Answer> | undefined;
  return () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
}

export async function readReport(name: string, query: Query): Promise<Report> {
  const report = await get<Sent>(`/books/reports/${name}`, query);
  return { ...report, tables: report.tables.map(withAmounts) };
}

function withAmounts({ amounts, rows, ...table }: SentTable): Table {
  const cellOf = (name: string, cell: string | number | null) =>
    typeof cell === 'string' && cell !== '' && amounts.includes(name) ? { amount: cell } : cell;
  return {
    ...table,
    rows: rows.map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, cell]) => [name, cellOf(name, cell)])),
    ),
  };
}

const readDays = shared(async () => (await get<Page<Day>>('/books/days')).items);

export const DAYS = { queryKey: ['days'], queryFn: readDays } as const;

/** The last closed day is among them, unless none was closed for a month. */
const NEWEST = 31;
const readNewestDays = shared(async () => (await get<Page<Day>>('/books/days', { newest: NEWEST })).items);

/** The last days, for pages that show the present: the books grow by a day each day. */
export const NEWEST_DAYS = { queryKey: ['days', 'newest'], queryFn: readNewestDays } as const;

/** The days as another part of the page has just read them, or reads them. */
export const knownDays = (
  client: QueryClient,
  query: { readonly queryKey: readonly string[]; readonly queryFn: typeof readDays } = DAYS,
) => client.fetchQuery({ ...query, staleTime: 5_000 });

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

/** The periods that people close, by the number of their months and of those that they lie back. */
const PERIODS = {
  month: [1, 0],
  lastMonth: [1, 1],
  quarter: [3, 0],
  lastQuarter: [3, 1],
  year: [12, 0],
  lastYear: [12, 1],
} as const;

/** The periods up to the newest closed day, or else the newest one, as far as the books cover them. */
export function periodsOf(all: readonly Day[]) {
  const closed = all.filter(({ state }) => state === 'closed');
  const days = closed.length > 0 ? closed : all;
  const newest = days.at(-1)?.day ?? '';
  const month = Number(newest.slice(0, 4)) * 12 + Number(newest.slice(5, 7)) - 1;
  const firstOf = (each: number) => `${Math.floor(each / 12)}-${String((each % 12) + 1).padStart(2, '0')}-01`;
  return (Object.keys(PERIODS) as (keyof typeof PERIODS)[]).flatMap((name) => {
    const [months, back] = PERIODS[name];
    const first = month - (month % months) - back * months;
    const within = days.filter(({ day }) => day >= firstOf(first) && day < firstOf(first + months));
    const [from, to] = [within[0]?.day, within.at(-1)?.day];
    return from && to ? [{ name, from, to: dayAfter(to) }] : [];
  });
}
