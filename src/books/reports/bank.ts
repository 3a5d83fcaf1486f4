import { type EntryRow, listEntriesBetween, summarizeBank } from '../../bank/queries.ts';
import { amount, byCurrency, type Maker } from './report.ts';

type SummaryRow = {
  currency: string;
  own_minor: bigint;
  closing_minor: bigint;
  is_stated: boolean;
  booked_minor: bigint;
  entries_minor: bigint;
  movements_minor: bigint;
};

/**
 * R13: what the operator's bank holds against the books, at the end of the interval. What is not
 * explained by own money, the books, and what is under way is an error on one of the two sides.
 */
export const bankReconciliation: Maker = async ({ tx, to, endsAt }) => {
  const rows = await tx.query<SummaryRow>(summarizeBank(to, endsAt));
  return rows.map(({ currency, ...row }) => {
    const expected = row.own_minor + row.booked_minor + row.entries_minor - row.movements_minor;
    const unexplained = row.closing_minor - expected;
    const line = (item: string, minor: bigint, state: string | null = null) => [
      item,
      amount(minor, currency),
      state,
    ];
    return {
      section: 'reconciliation',
      currency,
      columns: ['item', 'amount', 'state'],
      rows: [
        line('own money in the account', row.own_minor),
        line('funding, as booked', row.booked_minor),
        line('at the bank, not booked', row.entries_minor),
        line('booked, not at the bank', -row.movements_minor),
        line('expected', expected),
        line('bank', row.closing_minor, row.is_stated ? 'stated' : 'computed'),
        line('unexplained', unexplained, unexplained === 0n ? 'ok' : 'UNEXPLAINED'),
      ],
    };
  });
};

/** The entries of the interval, and what they are matched with. */
export const bankEntries: Maker = async ({ tx, from, to }) => {
  const rows = await tx.query<EntryRow & { movements: string | null }>(listEntriesBetween(from, to));
  return byCurrency(rows).map(([currency, own]) => ({
    section: 'entries',
    currency,
    columns: ['entry', 'date', 'account', 'amount', 'text', 'matched', 'difference', 'state'],
    rows: own.map((each) => {
      const left = each.amount_minor - each.matched_minor;
      const state = left === 0n ? 'matched' : each.matched_minor === 0n ? 'open' : 'partly matched';
      const head = [
        each.id,
        each.booked_on,
        each.account,
        amount(each.amount_minor, currency),
        each.description,
      ];
      return [...head, each.movements, amount(left, currency), state];
    }),
  }));
};
