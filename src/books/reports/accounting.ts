import { entriesBetween } from '../../bank/entries.ts';
import { statementsBetween } from '../../bank/statements.ts';
import { type Sql, sql } from '../../db/sql.ts';
import { closedDays, sumsOf } from '../export.rows.ts';
import { checkMapped, GlDay, type GlLine, readGlMapping, Unmapped } from '../gl.ts';
import { type Declaration, type Definition, merchantOf, productOf, wrong } from './report.ts';

/** The books beside others: the operator's accounting system (R12), and its bank (R13). */

/**
 * The movements of closed days on the account numbers of the operator's accounting system. Debits equal
 * credits.
 */
const ledgerLines: Definition = {
  columns: {
    ...{ date: 'text', voucherNumber: 'text', account: 'text', counterAccount: 'text', debit: 'money' },
    ...{ credit: 'money', taxCode: 'text', text: 'text', closingHash: 'text' },
  },
  async rows({ tx, from, to, names }) {
    const mapping = await readGlMapping(tx);
    const lines: GlLine[] = [];
    try {
      for (const day of await closedDays(tx, from, to)) {
        const sums = await sumsOf(tx, day);
        checkMapped(mapping, sums);
        lines.push(...new GlDay(mapping, day).sums(sums));
      }
    } catch (error) {
      if (!(error instanceof Unmapped)) throw error;
      const accounts = error.accounts.map(({ kind, merchantId, productId }) => ({
        kind,
        merchant: merchantOf(names, merchantId) || null,
        product: productOf(names, productId) || null,
      }));
      throw wrong('report', 'no-number', error.message, { accounts });
    }
    return lines;
  },
};

export const generalLedger: Declaration = {
  report: 'R12',
  name: 'general-ledger',
  title: 'General ledger',
  use: 'For the accountant, each month: closed days, with the account numbers of your accounting system.',
  tables: [ledgerLines],
  closedOnly: true,
};

type Summary = {
  readonly currency: string;
  readonly own: bigint;
  readonly closing: bigint;
  readonly isStated: boolean;
  readonly booked: bigint;
  readonly entries: bigint;
  readonly movements: bigint;
};

/**
 * Returns, by currency, the balance at the bank, the balance of the books, and the unmatched items: entries
 * before a day whose movement is not booked by its end, and movements whose entry is not there by then.
 */
const summarizeBank = (before: string, endsAt: Date): Sql => sql`
with stated as (
  select a.name, a.currency, coalesce(o.own_minor, 0) as own_minor, f.closing_minor, f.closing_on
  from bank_accounts a
  left join lateral (
    select own_minor from bank_own where account = a.name and valid_from < ${before}::date
    order by valid_from desc limit 1
  ) o on true
  left join lateral (
    select closing_minor, closing_on from bank_files where account = a.name and closing_on < ${before}::date
    order by closing_on desc, id desc limit 1
  ) f on true
), bank as (
  select s.currency, sum(s.own_minor)::bigint as own_minor, bool_and(s.closing_on is not null) as is_stated,
    sum(case when s.closing_on is null then s.own_minor else s.closing_minor end
      + coalesce((
        select sum(e.amount_minor) from bank_entries e
        where e.account = s.name and e.booked_on < ${before}::date
          and (s.closing_on is null or e.booked_on > s.closing_on)), 0))::bigint as closing_minor
  from stated s group by s.currency
), entries as (
  select a.currency,
    sum(e.amount_minor - coalesce((
      select sum(m.amount_minor) from bank_matches m
      where m.entry_id = e.id and m.occurred_at < ${endsAt}), 0))::bigint as open_minor
  from bank_entries e join bank_accounts a on a.name = e.account
  where e.booked_on < ${before}::date group by a.currency
), booked as (
  select currency, -sum(balance_minor) as minor from balances_at(${endsAt})
  where account_kind = 'FUNDING' group by currency
), matched as (
  select a.currency, sum(m.amount_minor) as minor
  from bank_matches m join bank_entries e on e.id = m.entry_id join bank_accounts a on a.name = e.account
  where e.booked_on < ${before}::date and m.occurred_at < ${endsAt} group by a.currency
)
select b.currency, b.own_minor as own, b.closing_minor as closing, b.is_stated as "isStated",
  coalesce(o.minor, 0)::bigint as booked, coalesce(e.open_minor, 0)::bigint as entries,
  (coalesce(o.minor, 0) - coalesce(m.minor, 0))::bigint as movements
from bank b
left join entries e on e.currency = b.currency
left join booked o on o.currency = b.currency
left join matched m on m.currency = b.currency
order by b.currency`;

/**
 * Compares the operator's bank account with the books at the end of the interval. A difference that own
 * money and unmatched items do not explain is an error on one of the two sides.
 */
const bankReconciliation: Definition = {
  section: 'reconciliation',
  columns: { item: 'word', amount: 'money', state: 'word' },
  async rows({ tx, to, endsAt }) {
    const found = await tx.query<Summary>(summarizeBank(to, endsAt));
    return found.flatMap(({ currency, ...row }) => {
      const expected = row.own + row.booked + row.entries - row.movements;
      const unexplained = row.closing - expected;
      const line = (item: string, amount: bigint, state?: string) => ({ currency, item, amount, state });
      return [
        line('own money in the account', row.own),
        line('funding, as booked', row.booked),
        line('at the bank, not booked', row.entries),
        line('booked, not at the bank', -row.movements),
        line('expected', expected),
        line('bank', row.closing, row.isStated ? 'stated' : 'computed'),
        line('unexplained', unexplained, unexplained === 0n ? 'ok' : 'UNEXPLAINED'),
      ];
    });
  },
};

/**
 * The imported statements that end in the interval. Each opening balance should be the closing balance
 * before it, and the entries should lead from one to the other.
 */
const bankStatements: Definition = {
  section: 'statements',
  columns: {
    ...{ statement: 'number', account: 'text', date: 'text', opening: 'money', entries: 'money' },
    ...{ closing: 'money', gap: 'money', missing: 'money', state: 'word' },
  },
  async rows({ tx, from, to }) {
    const found = await statementsBetween(tx, from, to);
    return found.map(({ id, currency, account, closingOn: date, opening, closing, missing, gap }) => {
      return {
        ...{ currency, statement: Number(id), account, date, opening, closing, missing, gap },
        entries: missing === null ? null : (closing ?? 0n) - (opening ?? 0n) - missing,
        state: [gap ? 'GAP' : '', missing ? 'INCOMPLETE' : ''].filter(Boolean).join(' ') || 'ok',
      };
    });
  },
};

/** The bank entries of the interval, and the movements that they are matched with. */
const bankEntries: Definition = {
  section: 'entries',
  columns: {
    ...{ entry: 'number', date: 'text', account: 'text', amount: 'money', text: 'text', matched: 'text' },
    ...{ difference: 'money', state: 'word' },
  },
  async rows({ tx, from, to }) {
    const found = await entriesBetween(tx, from, to);
    return found.map(({ currency, account, amount, ...each }) => {
      const difference = amount - each.matched;
      const state = difference === 0n ? 'matched' : each.matched === 0n ? 'open' : 'partly matched';
      return {
        ...{ currency, entry: Number(each.id), date: each.bookedOn, account, amount, text: each.description },
        ...{ matched: each.movements, difference, state },
      };
    });
  },
};

export const bank: Declaration = {
  report: 'R13',
  name: 'bank',
  title: 'Bank',
  use:
    'For the treasurer, with each bank statement: the bank compared with the books, and the unexplained ' +
    'difference.',
  tables: [bankReconciliation, bankStatements, bankEntries],
};
