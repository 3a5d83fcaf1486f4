import { reports } from '../../generated/reports.ts';
import { combined, type Figure } from '../figures.ts';
import { COLUMNS } from './read.ts';

const figuresOf = (report: string) => reports.find(({ name }) => name === report)?.figures ?? {};

/** What the money on vouchers and its movements are made of, in the interval around them. */
export const OPENED = {
  ...figuresOf('outstanding')[''],
  ...Object.fromEntries(
    Object.entries(COLUMNS).map(([name, columns]) => [
      name,
      combined(figuresOf('liability')['total'], columns),
    ]),
  ),
};

const { monthsSince = [], redeemedPercent: share = [] } = figuresOf('breakage')['cohorts'] ?? {};

/** The figures of the curves: each of the other columns is a month of issue. */
export const curved = (columns: readonly string[]): Readonly<Record<string, Figure>> =>
  Object.fromEntries(columns.map((name) => [name, name === 'monthsSince' ? monthsSince : share]));

/** The figures of the tables under the charts. */
export const CHARTED: Readonly<Record<string, Readonly<Record<string, Figure>>>> = {
  outstanding: figuresOf('outstanding')[''] ?? {},
  months: OPENED,
  expiring: figuresOf('aging')['expiryMonths'] ?? {},
};
