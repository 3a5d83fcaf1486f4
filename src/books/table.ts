import { tableOf } from '../operation.ts';
import { closing, type DayEnd } from './close.ts';
import { days, set, show } from './days.ts';
import { entries } from './entries.ts';
import { escheat } from './escheat.ts';
import { exportDays } from './export.ts';
import { account, accounts } from './gl.ts';
import { opening, transfer } from './own.ts';
import { redeemedDays } from './redeemed.ts';
import { report, reportCsvFile } from './reports/reports.ts';
import { breakageRate, dormancy, rules, vat } from './rules.ts';
import { verify } from './verify.ts';

/**
 * The operations of the books: closed days that never change, reports, and exports.
 * @param dayEnds what belongs to a day when it closes, such as commission
 */
export const booksWith = (dayEnds: readonly DayEnd[]) =>
  tableOf(
    ...[
      days,
      closing(dayEnds),
      verify,
      show,
      set,
      report,
      entries.list,
      transfer,
      opening,
      escheat,
      reportCsvFile,
    ],
    ...[redeemedDays, exportDays, accounts, account, rules, dormancy, vat, breakageRate],
  );
