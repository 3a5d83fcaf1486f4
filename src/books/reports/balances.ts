import { sql } from '../../db/sql.ts';
import { balance, moved, none, opening, sumOf } from '../../figure.ts';
import { ACCOUNT_KINDS, accountsOf } from '../../ledger/kinds.ts';
import { EFFECTS } from '../days.ts';
import { type Declaration, type Definition, id, merchant, money, text, word } from './report.ts';

const OF_ACCOUNT = { account: '{account}' };

/** Opening balance, debits, credits and closing balance of each account kind. They sum to 0. */
const byAccount: Definition = {
  columns: {
    account: word(sql`coalesce(account_kind, 'total')`),
    opening: money(sql`sum(opening)`, opening(OF_ACCOUNT)),
    debits: money(sql`sum(debits)`, moved({ ...OF_ACCOUNT, sum: 'debits' })),
    credits: money(sql`sum(credits)`, moved({ ...OF_ACCOUNT, sum: 'credits' })),
    closing: money(sql`sum(opening + credits - debits)`, balance(OF_ACCOUNT)),
  },
  from: ({ startsAt, endsAt }) => sql`
from (
  select currency, account_kind, balance_minor as opening, 0 as debits, 0 as credits
  from balances_at(${startsAt})
  union all
  select m.currency, e.account_kind, 0, e.debit_minor, e.credit_minor
  from movements(${startsAt}, ${endsAt}, true) m ${EFFECTS}
) p
group by grouping sets ((currency, account_kind), (currency))
order by array_position(${[...ACCOUNT_KINDS, 'UNKNOWN']}::text[], account_kind)`,
};

const held = (...kinds: readonly string[]) =>
  sql`coalesce(sum(balance_minor) filter (where account_kind = any (${kinds}::text[])), 0)`;

/**
 * What the operator owes each merchant at the end of the interval, for the confirmation of
 * balances. The reserve of a batch belongs to the merchant that ordered it.
 */
const byMerchant: Definition = {
  columns: {
    merchantId: id(sql`coalesce(owner_id::text, '')`),
    merchant: merchant(sql`owner_id`),
    floats: money(held('FLOAT'), balance({ account: 'FLOAT', merchantId: '{merchantId}' })),
    reserves: money(held('RESERVE'), balance({ account: 'RESERVE', issuerId: '{merchantId}' })),
    settlements: money(held('SETTLEMENT'), balance({ account: 'SETTLEMENT', merchantId: '{merchantId}' })),
    owed: money(sql`sum(balance_minor)`, sumOf('floats', 'reserves', 'settlements')),
  },
  from: ({ endsAt }) => sql`
from (
  select currency, account_kind, balance_minor, coalesce(nullif(merchant_id, 0), issuer_id) as owner_id
  from balances_at(${endsAt}) where account_kind in ('FLOAT', 'RESERVE', 'SETTLEMENT')
) b
group by grouping sets ((currency, owner_id), (currency)) order by owner_id nulls last`,
};

export const trialBalance: Declaration = {
  report: 'R1',
  name: 'trial-balance',
  title: 'Trial balance',
  use:
    'For the accountant, each month: opening, debits, credits and closing of each account, and that they add ' +
    'up. By merchant, at the end of the year: what each is owed, for the confirmation of balances.',
  tables: [byAccount],
  endsAnytime: true,
  breakdowns: { merchant: [byMerchant] },
};

const heldAtEnd = (...kinds: readonly string[]) =>
  money(held(...kinds), balance({ account: kinds.join(), to: '{day}' }));

/**
 * What the operator owed to others at the end of each day, its own money, and the funding behind both.
 * Vouchers are counted at the close. Money in transit between shards has left a float for a voucher.
 */
const byDay: Definition = {
  columns: {
    day: text(sql`day`),
    vouchers: {
      ...text(sql`case when bool_or(is_open) then '' else coalesce(min(vouchers), 0)::text end`),
      format: 'count',
      figure: none('The close of a day counts vouchers; their money is beside it.'),
    },
    outstanding: heldAtEnd('VOUCHER'),
    reserves: heldAtEnd('RESERVE', 'TRANSIT'),
    floats: heldAtEnd('FLOAT'),
    settlements: heldAtEnd('SETTLEMENT'),
    unclaimed: heldAtEnd('UNCLAIMED'),
    vat: heldAtEnd('VAT'),
    owed: heldAtEnd(...accountsOf('others')),
    breakage: heldAtEnd('BREAKAGE'),
    fees: heldAtEnd('FEES'),
    goodwill: heldAtEnd('GOODWILL'),
    own: heldAtEnd(...accountsOf('operator')),
    minusFunding: money(
      sql`-${held('FUNDING')}`,
      balance({ account: 'FUNDING', sum: 'net-debits', to: '{day}' }),
    ),
  },
  from: ({ from, to, endsAt, isClosed }) => sql`
from (
  with closed as (
    select c.day, b.currency, b.account_kind, b.balance_minor
    from book_closings c join book_balances b on b.day = c.day
    where c.day >= ${from}::date and c.day < ${to}::date
  )
  select day, currency, account_kind, balance_minor, false as is_open from closed
  union all
  select coalesce((select max(day) + 1 from closed), ${from}::date), currency, account_kind, balance_minor,
    true
  from balances_at(${endsAt}) where not ${isClosed}
) b
left join (
  select day, currency, sum(vouchers) as vouchers from book_aging
  where basis = 'expires' and day >= ${from}::date and day < ${to}::date group by day, currency
) a using (day, currency)
group by currency, day order by day`,
};

export const outstanding: Declaration = {
  report: 'R3',
  name: 'outstanding',
  title: 'Outstanding by day',
  use: 'For the treasurer, each morning: the amount that a safeguarding account must cover.',
  tables: [byDay],
};
