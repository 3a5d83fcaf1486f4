import { reports as declared } from '../../generated/en.ts';

/** The reports of the books and who needs them; the reasons for which a request is declined. */
export const reports = {
  reports: declared,
  books: {
    days: 'Days',
    reports: 'Reports',
    charts: 'Charts',
    before: 'Previous month',
    after: 'Next month',
    period: 'Period',
    ownPeriod: 'Other days',
    periods: {
      month: 'This month',
      lastMonth: 'Last month',
      quarter: 'This quarter',
      lastQuarter: 'Last quarter',
      year: 'This year',
      lastYear: 'Last year',
    },
    everyMerchant: 'Every merchant',
    breakdown: 'Broken down by',
    noBreakdown: 'Nothing',
    waits: {
      'not-due': (day: string, due: string) => `${day} can be closed from ${due} on.`,
      'open-transaction': (day: string) => `A transaction that may belong to ${day} has not ended.`,
      'other-close': (day: string) => `${day} is being closed already.`,
      'voucher-in-use': (day: string) => `${day} waits for an expired voucher that is in use: try again.`,
    } as Readonly<Record<string, (day: string, due: string) => string>>,
    prepared: (names: string) => `Prepared transactions: ${names}.`,
    unnumbered: 'Accounts without a number',
    unnumberedHow: 'The general ledger needs a number for each. One for a kind of account is enough.',
    chooseMerchant: 'This report is made for one merchant: choose one.',
    noRows: 'Nothing moved in this interval.',
    leftOut: 'Columns in which nothing moved are left out here. The export has them all.',
    rules: 'Rules',
    sign: 'Credit minus debit',
    show: 'Show',
    verify: 'Verify closed days',
    verified: (days: number) =>
      `${days} closed ${days === 1 ? 'day is as it was' : 'days are as they were'} closed.`,
    broken: 'A closed day has changed:',
    closedDays: (days: number) =>
      days === 0 ? 'No day was due.' : `${days} ${days === 1 ? 'day was' : 'days were'} closed.`,
  },
  declined: {
    title: 'declined',
    noCurrency: 'The code is unknown, and a request names no currency.',
  },
};
