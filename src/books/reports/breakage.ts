import { type Sql, sql } from '../../db/sql.ts';
import { balance, moved, none, sumOf } from '../../figure.ts';
import {
  kindsOn,
  listOf,
  type MovementKind,
  movementOf,
  reversalsOf,
  withReversals,
} from '../../ledger/kinds.ts';
import { type Declaration, type Definition, money, number, product, share, text, word } from './report.ts';

/** R5: expired amounts as booked, the redemption of cohorts, and an estimate of what is never redeemed. */

const OF_EXPIRED = { account: '{account}', product: '{product}' };

const booked: Definition = {
  section: 'booked',
  columns: {
    product: product(sql`product_id`),
    account: word(sql`account`),
    expired: money(
      sql`sum(case kind when 'EXPIRY' then amount_minor else 0 end)`,
      moved({ ...OF_EXPIRED, sum: 'credits', kind: 'EXPIRY' }),
    ),
    reinstated: money(
      sql`sum(case kind when 'EXPIRY' then 0 else amount_minor end)`,
      moved({ ...OF_EXPIRED, sum: 'debits', kind: reversalsOf('EXPIRY').join() }),
    ),
    net: money(
      sql`sum(case kind when 'EXPIRY' then amount_minor else -amount_minor end)`,
      moved({ ...OF_EXPIRED, kind: withReversals('EXPIRY').join() }),
    ),
  },
  from: ({ startsAt, endsAt }) => sql`
from (
  select *, case kind when 'EXPIRY' then credit_kind else debit_kind end as account
  from movements(${startsAt}, ${endsAt}) where kind in ${listOf(withReversals('EXPIRY'))}
) m
group by currency, product_id, account order by product_id, account`,
};

const ISSUES = listOf([...withReversals('ACTIVATION'), 'IMPORT']);

/**
 * Returns the changes of cohorts before a day. `issued` leaves out what was voided. `other` is corrections,
 * cash paid out, and balances paid to a state.
 */
const changesBefore = (day: string): Sql => sql`(
  select c.*, minor - issued + redeemed + expired as other
  from (
    select *, age(date_trunc('month', day), issue_month) as age,
      case when kind in ${ISSUES} then minor else 0 end as issued,
      case when kind in ${listOf(reversalsOf('ACTIVATION'))} then -minor else 0 end as voided,
      case when kind in ${listOf(withReversals('REDEMPTION'))} then -minor else 0 end as redeemed,
      case when kind in ${listOf(withReversals('EXPIRY'))} then -minor else 0 end as expired
    from book_cohorts
    cross join lateral (select case when is_credit then amount_minor else -amount_minor end as minor) m
    where day < ${day}::date
  ) c
) c`;

const RUNNING = none(
  'Each line adds to the line before it; the last figures are in the estimate, with their entries.',
);
const running = (change: Sql) => sql`sum(sum(${change})) over w`;

/** The cohorts by product and month of issue, with cumulative sums month by month. */
const cohorts: Definition = {
  section: 'cohorts',
  isOfClosedDays: true,
  columns: {
    product: product(sql`product_id`),
    issueMonth: text(sql`to_char(issue_month, 'YYYY-MM')`),
    monthsSince: number(sql`months_since`),
    issued: money(running(sql`issued`), RUNNING),
    voided: money(running(sql`voided`), RUNNING),
    redeemed: money(running(sql`redeemed`), RUNNING),
    expired: money(running(sql`expired`), RUNNING),
    other: money(running(sql`other`), RUNNING),
    outstanding: money(running(sql`minor`), RUNNING),
    redeemedPercent: share(running(sql`redeemed`), sql`greatest(${running(sql`issued`)}, 0)`),
  },
  from: ({ to }) => sql`
from ${changesBefore(to)}
cross join lateral (select extract(year from age) * 12 + extract(month from age) as months_since) a
group by currency, product_id, issue_month, months_since
window w as (partition by currency, product_id, issue_month order by months_since)
order by product_id, issue_month, months_since`,
};

/**
 * Returns each cohort of an expiry policy before a day with the rate of breakage that is valid then, the part
 * that will never be redeemed at this rate, and how much of it to recognize at the present redemptions. What
 * has expired is both. No more than what is left on the vouchers can still become it. Expired money that
 * belongs to a state is no breakage. Quotients are rounded half up.
 */
const estimatedAt = (day: string): Sql => sql`(
  select c.*, case when is_own then e.estimated else 0 end as estimated,
    case when is_own then greatest(x, least(in_proportion, e.estimated)) else 0 end as recognized,
    is_own and r > i - by_rate as is_exceeded
  from (
    select currency, product_id, issue_month, expiry_policy::text as policy,
      expiry_policy <> 'unclaimed' as is_own, rate_ppm, set_by, reason, sum(issued) as issued,
      sum(voided) as voided, sum(redeemed) as redeemed, sum(expired) as expired, sum(other) as other,
      sum(minor) as outstanding
    from ${changesBefore(day)}
    left join (
      select distinct on (product_id) product_id, rate_ppm, set_by, reason from book_breakage_rates
      where valid_from < ${day}::date order by product_id, valid_from desc, id desc
    ) r using (product_id)
    group by 1, 2, 3, 4, 5, 6, 7, 8
  ) c
  cross join lateral (
    select greatest(issued, 0) as i, greatest(expired, 0) as x, greatest(redeemed, 0) as r
  ) p
  cross join lateral (select div(2 * i * coalesce(rate_ppm, 0) + 1000000, 2000000) as by_rate) b
  cross join lateral (select least(greatest(by_rate, x), x + greatest(outstanding, 0)) as estimated) e
  cross join lateral (
    select case when i <= estimated then estimated
      else div(2 * estimated * r + i - estimated, 2 * (i - estimated)) end as in_proportion
  ) n
)`;

const ESTIMATED = none('An estimate from the rate and the figures of its line; it is never posted.');
const OTHERS = kindsOn('VOUCHER').filter(
  (kind) =>
    kind !== 'REPLACEMENT' &&
    !['ACTIVATION', 'IMPORT', 'REDEMPTION', 'EXPIRY'].some(
      (each) => each === kind || movementOf(kind).reverses === each,
    ),
);

/** What a cohort was moved by up to the end of the interval. */
const ofCohort = (kinds: readonly MovementKind[], sum = 'net') =>
  balance({
    ...{ account: 'VOUCHER', sum, kind: kinds.join() },
    ...{ product: '{product}', issueMonth: '{issueMonth}', policy: '{policy}' },
  });

/**
 * Proposes an estimate, which is never posted, for each cohort of an expiry policy: by the rate that is valid
 * on the last day of the interval and, for what was recognized before, by that on the day before it.
 */
const estimate: Definition = {
  section: 'estimate',
  isOfClosedDays: true,
  columns: {
    product: product(sql`product_id`),
    issueMonth: text(sql`to_char(issue_month, 'YYYY-MM')`),
    policy: word(sql`policy`),
    ratePercent: share(sql`case when c.is_own then c.rate_ppm else 0 end`, sql`1000000`),
    setBy: text(sql`c.set_by`),
    reason: text(sql`c.reason`),
    issued: money(sql`c.issued`, ofCohort([...withReversals('ACTIVATION'), 'IMPORT'])),
    voided: money(sql`c.voided`, ofCohort(reversalsOf('ACTIVATION'), 'net-debits')),
    redeemed: money(sql`c.redeemed`, ofCohort(withReversals('REDEMPTION'), 'net-debits')),
    expired: money(sql`c.expired`, ofCohort(withReversals('EXPIRY'), 'net-debits')),
    other: money(sql`c.other`, ofCohort(OTHERS)),
    outstanding: money(sql`c.outstanding`, sumOf('issued', '-redeemed', '-expired', 'other')),
    estimated: money(sql`c.estimated`, ESTIMATED),
    recognized: money(sql`c.recognized`, ESTIMATED),
    before: money(sql`coalesce(b.recognized, 0)`, ESTIMATED),
    inInterval: money(sql`c.recognized - coalesce(b.recognized, 0)`, sumOf('recognized', '-before')),
    deferred: money(sql`c.estimated - c.recognized`, sumOf('estimated', '-recognized')),
    toBook: money(sql`case when c.is_own then c.recognized - c.expired else 0 end`, ESTIMATED),
    isExceeded: word(sql`case when c.is_exceeded then 'yes' else 'no' end`),
  },
  from: ({ from, to }) => sql`
from ${estimatedAt(to)} c
left join ${estimatedAt(from)} b using (currency, product_id, issue_month, policy)
where c.rate_ppm is not null
order by product_id, issue_month, policy collate "C"`,
};

export const breakage: Declaration = {
  report: 'R5',
  name: 'breakage',
  title: 'Breakage',
  use:
    'For the accountant, each quarter: expired money, how cohorts are redeemed, and an estimate (never ' +
    'posted).',
  tables: [booked, cohorts, estimate],
};
