import { entriesWhere, matchesOf } from '../../bank/entries.ts';
import { statementsWhere } from '../../bank/statements.ts';
import { type Sql, sql } from '../../db/sql.ts';
import { balance, none, sumOf, when } from '../../figure.ts';
import { accountsOf } from '../../ledger/kinds.ts';
import { closedDays, sumsOf } from '../export.rows.ts';
import { findUnmapped, type GlLine, glSums, readGlMapping } from '../gl.ts';
import {
  type Declaration,
  type Definition,
  merchantOf,
  money,
  number,
  productOf,
  text,
  time,
  word,
  wrong,
} from './report.ts';

/** The books beside others: the operator's accounting system (R12), and its bank (R13, R14). */

const OF_NUMBER = none('The sum of a day by account number; the entries of each kind of account are in R1.');

/**
 * The movements of closed days on the account numbers of the operator's accounting system. Debits equal
 * credits.
 */
const ledgerLines: Definition = {
  columns: {
    ...{ date: 'text', voucherNumber: 'text', account: 'text', counterAccount: 'text' },
    debit: { format: 'money', figure: OF_NUMBER },
    credit: { format: 'money', figure: OF_NUMBER },
    ...{ taxCode: 'text', text: 'text', closingHash: 'text' },
  },
  async rows({ tx, from, to, names: readNames }) {
    const names = await readNames();
    const mapping = await readGlMapping(tx);
    const lines: GlLine[] = [];
    for (const day of await closedDays(tx, from, to)) {
      const sums = await sumsOf(tx, day);
      const unmapped = findUnmapped(mapping, sums);
      if (unmapped) {
        const accounts = unmapped.accounts.map(({ kind, merchantId, productId }) => ({
          kind,
          merchant: merchantOf(names, merchantId) || null,
          product: productOf(names, productId) || null,
        }));
        throw wrong('report', 'no-number', unmapped.message, { accounts });
      }
      lines.push(...glSums(mapping, day, sums));
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

/**
 * Returns the bank accounts before a day: the operator's own money in each, its last statement, and its
 * balance, which is that of the statement with the entries since then.
 */
const accountsBefore = (day: Sql): Sql => sql`
select a.currency, coalesce(o.own_minor, 0) as own_minor, f.closing_on, f.imported_by, f.imported_at,
  coalesce(f.closing_minor, o.own_minor, 0) + coalesce((
    select sum(e.amount_minor) from bank_entries e
    where e.account = a.name and e.booked_on < ${day} and (f.closing_on is null or e.booked_on > f.closing_on)
  ), 0) as balance_minor
from bank_accounts a
left join lateral (
  select own_minor from bank_own where account = a.name and valid_from < ${day}
  order by valid_from desc limit 1
) o on true
left join lateral (
  select closing_minor, closing_on, imported_by, imported_at from bank_files
  where account = a.name and closing_on < ${day}
  order by closing_on desc, id desc limit 1
) f on true`;

/**
 * Returns, by currency, the balance at the bank, the balance of the books, and the unmatched items: entries
 * before a day whose movement is not booked by its end, and movements whose entry is not there by then.
 */
const summarizeBank = (before: string, endsAt: Date): Sql => sql`
with bank as (
  select currency, sum(own_minor)::bigint as own_minor, bool_and(closing_on is not null) as is_stated,
    sum(balance_minor)::bigint as closing_minor
  from (${accountsBefore(sql`${before}::date`)}) a group by currency
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
select b.currency, b.own_minor as own, b.closing_minor as closing, b.is_stated,
  coalesce(o.minor, 0)::bigint as booked, coalesce(e.open_minor, 0)::bigint as entries,
  (coalesce(o.minor, 0) - coalesce(m.minor, 0))::bigint as movements
from bank b
left join entries e on e.currency = b.currency
left join booked o on o.currency = b.currency
left join matched m on m.currency = b.currency
order by b.currency`;

const BY_BANK = none('Of the bank, and not of the books: its statements and entries are below.');
const ITEM = when(
  { item: ['funding, as booked'] },
  balance({ account: 'FUNDING', sum: 'net-debits' }),
  BY_BANK,
);

/**
 * Compares the operator's bank account with the books at the end of the interval. A difference that own
 * money and unmatched items do not explain is an error on one of the two sides.
 */
const bankReconciliation: Definition = {
  section: 'reconciliation',
  columns: { item: word(sql`l.item`), amount: money(sql`l.amount`, ITEM), state: word(sql`l.state`) },
  from: ({ to, endsAt }) => sql`
from (${summarizeBank(to, endsAt)}) b
cross join lateral (select own + booked + entries - movements as expected) e
cross join lateral (values
  (1, 'own money in the account', own, null),
  (2, 'funding, as booked', booked, null),
  (3, 'at the bank, not booked', entries, null),
  (4, 'booked, not at the bank', -movements, null),
  (5, 'expected', expected, null),
  (6, 'bank', closing, case when is_stated then 'stated' else 'computed' end),
  (7, 'unexplained', closing - expected, case when closing = expected then 'ok' else 'UNEXPLAINED' end)
) l (place, item, amount, state)
order by currency, place`,
};

const STATED = none('As the bank states it; its entries are below.');

/**
 * The imported statements that end in the interval. Each opening balance should be the closing balance
 * before it, and the entries should lead from one to the other.
 */
const bankStatements: Definition = {
  section: 'statements',
  columns: {
    statement: number(sql`id`),
    account: text(sql`account`),
    date: text(sql`"closingOn"`),
    opening: money(sql`opening`, STATED),
    entries: money(sql`closing - opening - missing`, STATED),
    closing: money(sql`closing`, STATED),
    gap: money(sql`gap`, STATED),
    missing: money(sql`missing`, STATED),
    state: word(sql`coalesce(nullif(concat_ws(' ', case when gap <> 0 then 'GAP' end,
      case when missing <> 0 then 'INCOMPLETE' end), ''), 'ok')`),
  },
  from: ({ from, to }) => sql`
from (${statementsWhere(sql`f.closing_on >= ${from}::date and f.closing_on < ${to}::date`)}) f
order by account, "closingOn", id::integer limit 100000`,
};

/** The bank entries of the interval, and the movements that they are matched with. */
const bankEntries: Definition = {
  section: 'entries',
  columns: {
    entry: number(sql`id`),
    date: text(sql`"bookedOn"`),
    account: text(sql`account`),
    amount: money(sql`amount`, none('One entry of the bank.')),
    text: text(sql`description`),
    matched: text(sql`m.movements`),
    settlement: text(sql`m.settlements`),
    root: text(sql`m.roots`),
    difference: money(
      sql`amount - matched`,
      none('The amount less that of the matched movements, which are named.'),
    ),
    state: word(
      sql`case when matched = amount then 'matched' when matched = 0 then 'open' else 'partly matched' end`,
    ),
  },
  from: ({ from, to }) => sql`
from (${entriesWhere(sql`e.booked_on >= ${from}::date and e.booked_on < ${to}::date`)}) e
cross join lateral (
  select string_agg(m.settlement, ', ' order by m.movement_id) as settlements,
    string_agg(m.root, ', ' order by m.movement_id) as roots,
    string_agg(m.kind || ' ' || coalesce(m.reference, m.movement_id::text), ', ' order by m.movement_id)
      as movements
  from (${matchesOf(sql`e.id::integer`)}) m
) m
order by "bookedOn", id::integer limit 100000`,
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

/**
 * The daily reconciliation of a safeguarding account: what is owed to others at the end of each closed day,
 * and what the bank held for them then. The operator's own money in the account does not count.
 */
const safeguarded: Definition = {
  isOfClosedDays: true,
  columns: {
    day: text(sql`day`),
    requirement: money(sql`required`, balance({ account: accountsOf('others').join(), to: '{day}' })),
    resource: money(sql`held`, none('What the bank states, less the own money in the account.')),
    difference: money(sql`held - required`, sumOf('resource', '-requirement')),
    state: word(
      sql`case when held is null then 'no account' when held < required then 'SHORTFALL' else 'ok' end`,
    ),
    closedAt: time(sql`closed_at`),
    statedOn: text(sql`stated_on`),
    importedBy: text(sql`imported_by`),
    importedAt: time(sql`imported_at`),
  },
  from: ({ from, to }) => sql`
from (
  select c.day, c.closed_at, b.currency, sum(b.balance_minor) as required
  from book_closings c join book_balances b on b.day = c.day
  where c.day >= ${from}::date and c.day < ${to}::date
    and b.account_kind = any (${accountsOf('others')}::text[])
  group by c.day, c.closed_at, b.currency
) d
left join lateral (
  select sum(balance_minor - own_minor) as held, min(closing_on) as stated_on,
    string_agg(distinct imported_by, ', ') as imported_by, max(imported_at) as imported_at
  from (${accountsBefore(sql`d.day + 1`)}) a where a.currency = d.currency
) s on true
order by day`,
};

export const safeguarding: Declaration = {
  report: 'R14',
  name: 'safeguarding',
  title: 'Safeguarding',
  use:
    'For the treasurer and the supervisor: the reconciliation of each closed day, what is owed to others ' +
    'beside what the bank holds for them, with who imported the statement and when.',
  tables: [safeguarded],
};
