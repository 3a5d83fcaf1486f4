import { type Sql, sql } from '../../db/sql.ts';
import { balance, moved, none, opening } from '../../figure.ts';
import { listOf, type MovementKind, reversalsOf, withReversals } from '../../ledger/kinds.ts';
import {
  count,
  type Declaration,
  type Definition,
  id,
  merchant,
  money,
  product,
  type Scope,
  scope,
  share,
  text,
  word,
} from './report.ts';

/** The movements of vouchers by column: `+` increases the balance of a voucher, `-` decreases it. */
export const MOVED = {
  issued: ['+ACTIVATION'],
  imported: ['+IMPORT'],
  reversed: ['+REDEMPTION_REVERSAL'],
  refunded: ['+REFUND'],
  reinstated: ['+REINSTATEMENT'],
  adjustedUp: ['+ADJUSTMENT'],
  redeemed: ['-REDEMPTION'],
  expired: ['-EXPIRY'],
  voided: ['-VOID', '-CANCELLATION'],
  adjustedDown: ['-ADJUSTMENT'],
  cashedOut: ['-CASH_OUT'],
  escheated: ['-ESCHEAT'],
} as const satisfies Readonly<Record<string, readonly `${'+' | '-'}${MovementKind}`[]>>;

const OF_VOUCHERS = {
  account: 'VOUCHER',
  product: '{product}',
  issuerId: '{issuerId}',
  issueMonth: '{issueMonth}',
};

const changed = (changes: readonly string[]) =>
  money(
    sql`coalesce(sum(amount_minor) filter (where change = any (${changes}::text[])), 0)`,
    moved({
      ...OF_VOUCHERS,
      sum: changes.every((each) => each.startsWith('+')) ? 'credits' : 'debits',
      kind: changes.map((each) => each.slice(1)).join(),
    }),
  );

/** The balances of vouchers, rolled forward from the start of the interval to its end. */
const ROLLED = {
  opening: money(sql`sum(opening_minor)`, opening(OF_VOUCHERS)),
  ...Object.fromEntries(Object.entries(MOVED).map(([name, changes]) => [name, changed(changes)])),
  closing: money(
    sql`sum(opening_minor + case when change like '-%' then -amount_minor else amount_minor end)`,
    balance(OF_VOUCHERS),
  ),
};
const COUNTED = {
  ...ROLLED,
  vouchers: count(sql`sum(vouchers)`, none('The close of a day counts vouchers; their money is beside it.')),
};
const ISSUED = {
  product: product(sql`product_id`),
  issuerId: id(sql`issuer_id`),
  issuer: merchant(sql`issuer_id`),
};

/**
 * Returns the balances and the movements of vouchers, and their numbers if the last day is closed. A
 * replacement moves money within one product and issuer.
 * @param inTotal movements without products and issuers, which takes a fifth of the time on an open day
 */
const rolled = ({ startsAt, endsAt, to, isClosed }: Scope, inTotal: boolean): Sql => sql`
from (
  select currency, product_id, issuer_id, balance_minor as opening_minor, '+' as change, 0 as amount_minor,
    case when ${isClosed} then 0 end as vouchers
  from balances_at(${startsAt}) where account_kind = 'VOUCHER'
  union all
  select currency, product_id, issuer_id, 0, c.sign || m.kind, amount_minor, case when ${isClosed} then 0 end
  from movements(${startsAt}, ${endsAt}, ${inTotal}) m
  join (values ('+'), ('-')) c (sign) on 'VOUCHER' = case c.sign when '+' then credit_kind else debit_kind end
  where m.kind <> 'REPLACEMENT'
  union all
  select currency, product_id, issuer_id, 0, '+', 0, vouchers from book_aging
  where ${isClosed} and basis = 'expires' and day = ${to}::date - 1
) v`;

const byIssuer: Definition = {
  columns: { ...ISSUED, scope: scope(sql`product_id`), ...COUNTED },
  from: (wanted) => sql`${rolled(wanted, false)} group by currency, product_id, issuer_id
order by product_id, issuer_id`,
};

const inTotal: Definition = {
  section: 'total',
  columns: COUNTED,
  from: (wanted) => sql`${rolled(wanted, true)} group by currency`,
};

/** By the month in which the vouchers were issued. */
const byMonth: Definition = {
  section: 'months',
  isOfClosedDays: true,
  columns: { ...ISSUED, issueMonth: text(sql`to_char(issue_month, 'YYYY-MM')`), ...ROLLED },
  from: ({ from, to }) => sql`
from (
  select currency, product_id, issuer_id, issue_month,
    case when day >= ${from}::date then 0 when is_credit then amount_minor else -amount_minor end
      as opening_minor,
    case when is_credit then '+' else '-' end || kind as change,
    case when day >= ${from}::date then amount_minor else 0 end as amount_minor
  from book_cohorts where day < ${to}::date
) c
group by currency, product_id, issuer_id, issue_month order by product_id, issuer_id, issue_month`,
};

export const liability: Declaration = {
  report: 'R2',
  name: 'liability',
  title: 'Voucher liability',
  use:
    'For the auditor, at the end of the year: the money on vouchers, rolled forward, by product, issuer and ' +
    'month of issue.',
  tables: [byIssuer, inTotal, byMonth],
  endsAnytime: true,
};

const AGED = none('The close of a day sorts vouchers by age; the entries behind their money are in R2.');

/** The vouchers with a balance at the end of the interval. */
const FIGURES = {
  vouchers: count(sql`coalesce(sum(vouchers), 0)`, AGED),
  outstanding: money(sql`coalesce(sum(amount_minor), 0)`, AGED),
  sharePercent: share(
    sql`coalesce(sum(amount_minor), 0)`,
    sql`sum(coalesce(sum(amount_minor), 0)) over (partition by currency, part, basis)`,
  ),
};

/** The days until vouchers expire, and the days since their last use. */
const DAYS = sql`(
  select b.basis, d.lower_bound, d.label
  from (values ('expires'), ('idle')) b (basis)
  cross join (values (0, '0-30'), (31, '31-60'), (61, '61-90'), (91, '91-180'), (181, '181-365'), (366, '>365'))
    d (lower_bound, label)
)`;

/** The month of the last day and the next twelve, and one line for all later months. */
const months = ({ to }: Scope) => sql`(
  select 'month' as basis, n as lower_bound,
    case when n = 13 then 'later'
      else to_char(date_trunc('month', ${to}::date - 1) + make_interval(months => n), 'YYYY-MM') end as label
  from generate_series(0, 13) n
)`;

const aged = (ages: Sql, { to }: Scope, isByProduct: boolean): Sql => sql`
from (
  select distinct currency, case when ${isByProduct} then product_id else 0 end as part from book_aging
  where day = ${to}::date - 1
) p
cross join ${ages} g
left join (
  select currency, case when ${isByProduct} then product_id else 0 end as part, basis, lower_bound, vouchers,
    amount_minor
  from book_aging where day = ${to}::date - 1
) a using (currency, part, basis, lower_bound)
group by currency, part, basis, lower_bound, label order by part, basis, lower_bound`;

/**
 * Vouchers with a balance at the end of the interval, by the days until they expire, by the days since
 * their last use, and by the month in which they expire, in the zone of the books.
 * @param isByProduct product by product, instead of all products together
 */
function agesOf(isByProduct: boolean): readonly Definition[] {
  const own = isByProduct ? { product: product(sql`part`) } : {};
  return [
    {
      columns: { ...own, basis: word(sql`basis`), days: text(sql`label`), ...FIGURES },
      from: (wanted) => aged(DAYS, wanted, isByProduct),
    },
    {
      section: 'expiryMonths',
      columns: { ...own, month: word(sql`label`), ...FIGURES },
      from: (wanted) => aged(months(wanted), wanted, isByProduct),
    },
  ];
}

export const aging: Declaration = {
  report: 'R4',
  name: 'aging',
  title: 'Aging',
  use:
    'For the auditor, at the end of the year: when outstanding money expires, by days and by coming months, ' +
    'and how long it has been idle.',
  tables: agesOf(false),
  breakdowns: { product: agesOf(true) },
  closedOnly: true,
};

const acceptedBy = (sum: string, kinds: readonly MovementKind[]) =>
  moved({
    ...{ account: 'SETTLEMENT', sum, kind: kinds.join() },
    ...{ issuerId: '{issuerId}', merchantId: '{acceptorId}' },
  });

/** The redemptions of each merchant by the issuer of the voucher. */
const accepted: Definition = {
  columns: {
    issuerId: id(sql`issuer_id`),
    issuer: merchant(sql`issuer_id`),
    acceptorId: id(sql`merchant_id`),
    acceptor: merchant(sql`merchant_id`),
    redeemed: money(
      sql`sum(case kind when 'REDEMPTION' then amount_minor else 0 end)`,
      acceptedBy('credits', ['REDEMPTION']),
    ),
    reversed: money(
      sql`sum(case kind when 'REDEMPTION' then 0 else amount_minor end)`,
      acceptedBy('debits', reversalsOf('REDEMPTION')),
    ),
    net: money(
      sql`sum(case kind when 'REDEMPTION' then amount_minor else -amount_minor end)`,
      acceptedBy('net', withReversals('REDEMPTION')),
    ),
  },
  from: ({ startsAt, endsAt }) => sql`
from movements(${startsAt}, ${endsAt}) where kind in ${listOf(withReversals('REDEMPTION'))}
group by currency, issuer_id, merchant_id order by issuer_id, merchant_id`,
};

export const issuerAcceptor: Declaration = {
  report: 'R9',
  name: 'issuer-acceptor',
  title: 'Issuers and acceptors',
  use: 'For a network, each month: redemptions by the issuer of the voucher and the merchant that accepted it.',
  tables: [accepted],
};
