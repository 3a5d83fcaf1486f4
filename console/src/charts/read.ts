import type { QueryClient } from '@tanstack/react-query';
import type { Listed } from '../answers.ts';
import { get, type Page, readPages } from '../api.ts';
import { dayAfter, knownDays, monthsOf, NEWEST_DAYS, numberOf, type Row, readReport } from '../reports.ts';

/** The data of the charts, by currency. Each point is a row of the chart's table. */

export type Point = Readonly<Record<string, string | number>>;
export type Points = Readonly<Record<string, readonly Point[]>>;

const DAYS = 90;
const MONTHS_MAX = 12;

/**
 * R3: the money on vouchers, and the money owed to others, at the end of each closed day. The open day is left
 * out: its balances are summed from the latest transactions, and stand beside the chart.
 */
export async function readOutstanding(client: QueryClient): Promise<Points> {
  const last = (await knownDays(client, NEWEST_DAYS)).findLast(({ state }) => state === 'closed');
  if (!last) return {};
  const { tables } = await readReport('outstanding', {
    from: dayAfter(last.day, 1 - DAYS),
    to: dayAfter(last.day),
  });
  return Object.fromEntries(
    tables.map((table) => [
      table.currency,
      table.rows.map((row) => ({
        day: String(row['day']),
        outstanding: numberOf(row['outstanding']),
        owed: numberOf(row['owed']),
      })),
    ]),
  );
}

/** The columns of R2 of which movements are made; `-` subtracts one. */
export const COLUMNS = {
  issued: ['issued', 'imported'],
  redeemed: ['redeemed', '-reversed'],
  expired: ['expired', '-reinstated'],
} as const;

type Columns = Readonly<Record<string, readonly string[]>>;

/** The amounts issued, redeemed and expired, by currency: the totals of R2. */
async function readMovements(
  from: string,
  to: string,
  columnsOf: Columns = COLUMNS,
): Promise<Readonly<Record<string, Point>>> {
  const { tables } = await readReport('liability', { from, to, section: 'total' });
  const sum = (rows: readonly Row[], column: string) => {
    const total = rows.reduce((before, row) => before + numberOf(row[column.replace('-', '')]), 0);
    return column.startsWith('-') ? -total : total;
  };
  return Object.fromEntries(
    tables.map(({ currency, rows }) => [
      currency,
      Object.fromEntries(
        Object.entries(columnsOf).map(([name, columns]) => [
          name,
          columns.reduce((total, column) => total + sum(rows, column), 0),
        ]),
      ),
    ]),
  );
}

/** A day in one answer: its movements, and the money on vouchers at its end, which R3 has too. */
export const readDay = (day: string) =>
  readMovements(day, dayAfter(day), { outstanding: ['closing'], ...COLUMNS });

/** Issued, redeemed and expired, month by month. */
export async function readMonths(client: QueryClient): Promise<Points> {
  const months = monthsOf(await knownDays(client)).slice(-MONTHS_MAX);
  const found: Record<string, Point[]> = {};
  for (const { month, from, to } of months)
    for (const [currency, sums] of Object.entries(await readMovements(from, to)))
      found[currency] = [
        ...(found[currency] ?? []),
        { month, ...sums, startsAt: from, endsAt: dayAfter(to, -1) },
      ];
  return found;
}

const closedDays = async (client: QueryClient) =>
  (await knownDays(client)).filter(({ state }) => state === 'closed');

/** R4: the money that expires in each of the next twelve months. */
export async function readExpiring(client: QueryClient): Promise<Points> {
  const closed = (await closedDays(client)).at(-1);
  if (!closed) return {};
  const { tables } = await readReport('aging', { from: closed.day, to: dayAfter(closed.day) });
  return Object.fromEntries(
    tables
      .filter(({ section }) => section === 'expiryMonths')
      .map((table) => [
        table.currency,
        table.rows
          .filter(({ month }) => month !== 'later')
          .map((row) => ({
            month: String(row['month']),
            vouchers: numberOf(row['vouchers']),
            outstanding: numberOf(row['outstanding']),
          })),
      ]),
  );
}

/** R5: the share of each month's issue that was redeemed, month by month, in percent. */
export async function readCohorts(client: QueryClient): Promise<Points> {
  // Cohorts contain only closed days.
  const days = await closedDays(client);
  const [first, last] = [days[0], days.at(-1)];
  if (!first || !last) return {};
  const { tables } = await readReport('breakage', { from: first.day, to: dayAfter(last.day) });
  const cohorts = tables.filter(({ section }) => section === 'cohorts');
  return Object.fromEntries(cohorts.map((table) => [table.currency, curveOf(table.rows)]));
}

function curveOf(rows: readonly Row[]): Point[] {
  const months = [...new Set(rows.map((row) => String(row['issueMonth'])))].sort().slice(-MONTHS_MAX);
  const since = [...new Set(rows.map((row) => numberOf(row['monthsSince'])))].sort((a, b) => a - b);
  return since.map((monthsSince) => {
    const shares = months.flatMap((month) => {
      const own = rows.filter(
        (row) => row['issueMonth'] === month && numberOf(row['monthsSince']) === monthsSince,
      );
      const sum = (name: string) => own.reduce((total, row) => total + numberOf(row[name]), 0);
      return own.length === 0 || sum('issued') === 0
        ? []
        : [[month, Math.round((1_000 * sum('redeemed')) / sum('issued')) / 10] as const];
    });
    return { monthsSince, ...Object.fromEntries(shares) };
  });
}

type Float = Listed<'float.low'>;

/** Floats are read page by page, up to a limit, in the order of their merchants' numbers. */
export const FLOATS_MAX = 1_000;

/** The days that each used float will last, the shortest first. */
export async function readFloats(): Promise<readonly Point[]> {
  const found: Float[] = [];
  for await (const floats of readPages<Float>('/floats', {})) {
    found.push(...floats);
    if (found.length >= FLOATS_MAX) break;
  }
  return found
    .flatMap(({ merchantId, merchant, currency, balance, daysLeft }) =>
      daysLeft === null ? [] : [{ merchantId, merchant, currency, balance, daysLeft }],
    )
    .sort((one, other) => one.daysLeft - other.daysLeft);
}

type Declined = Listed<'decline.count'>;

/** The reasons for declines in the last 30 days, the most frequent first. */
export async function readDeclines(): Promise<readonly Point[]> {
  return (await get<Page<Declined>>('/declines/count')).items.map(({ code, declines }) => ({
    code,
    declines,
  }));
}
