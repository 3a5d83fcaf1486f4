import { reports } from '../../generated/reports.ts';
import { combined } from '../figures.ts';
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
