import { type Sql, sql } from '../../db/sql.ts';
import {
  type Declaration,
  type Definition,
  money,
  number,
  percent,
  product,
  type Scope,
  share,
  text,
  word,
} from './report.ts';

/** R5: expired amounts as booked, the redemption of cohorts, and an estimate of what is never redeemed. */

const booked: Definition = {
  section: 'booked',
  columns: {
    product: product(sql`product_id`),
    account: word(sql`account`),
    expired: money(sql`sum(case kind when 'EXPIRY' then amount_minor else 0 end)`),
    reinstated: money(sql`sum(case kind when 'EXPIRY' then 0 else amount_minor end)`),
    net: money(sql`sum(case kind when 'EXPIRY' then amount_minor else -amount_minor end)`),
  },
  from: ({ startsAt, endsAt }) => sql`
from (
  select *, case kind when 'EXPIRY' then credit_kind else debit_kind end as account
  from movements(${startsAt}, ${endsAt}) where kind in ('EXPIRY', 'REINSTATEMENT')
) m
group by currency, product_id, account order by product_id, account`,
};

/**
 * Returns the changes of cohorts before a day. `issued` leaves out what was voided. `other` is corrections,
 * cash paid out, and balances paid to a state.
 */
const changesBefore = (day: string): Sql => sql`(
  select c.*,
    case when kind in ('ACTIVATION', 'IMPORT', 'VOID', 'CANCELLATION') then minor else 0 end as issued,
    case when kind in ('VOID', 'CANCELLATION') then -minor else 0 end as voided,
    case when kind in ('REDEMPTION', 'REDEMPTION_REVERSAL') then -minor else 0 end as redeemed,
    case when kind in ('EXPIRY', 'REINSTATEMENT') then -minor else 0 end as expired,
    case when kind in ('ACTIVATION', 'IMPORT', 'VOID', 'CANCELLATION', 'REDEMPTION', 'REDEMPTION_REVERSAL',
      'EXPIRY', 'REINSTATEMENT') then 0 else minor end as other
  from (
    select *, case when is_credit then amount_minor else -amount_minor end as minor,
      age(date_trunc('month', day), issue_month) as age
    from book_cohorts where day < ${day}::date
  ) c
) c`;

const sumOf = (change: Sql) => sql`sum(sum(${change})) over w`;

/** The cohorts by product and month of issue, with cumulative sums month by month. */
const cohorts: Definition = {
  section: 'cohorts',
  isOfClosedDays: true,
  columns: {
    product: product(sql`product_id`),
    issueMonth: text(sql`to_char(issue_month, 'YYYY-MM')`),
    monthsSince: number(sql`months_since`),
    issued: money(sumOf(sql`issued`)),
    voided: money(sumOf(sql`voided`)),
    redeemed: money(sumOf(sql`redeemed`)),
    expired: money(sumOf(sql`expired`)),
    other: money(sumOf(sql`other`)),
    outstanding: money(sumOf(sql`minor`)),
    redeemedPercent: share(sumOf(sql`redeemed`), sql`greatest(${sumOf(sql`issued`)}, 0)`),
  },
  from: ({ to }) => sql`
from ${changesBefore(to)}
cross join lateral (select extract(year from age) * 12 + extract(month from age) as months_since) a
group by currency, product_id, issue_month, months_since
window w as (partition by currency, product_id, issue_month order by months_since)
order by product_id, issue_month, months_since`,
};

/** A cohort of an expiry policy before a day, with the rate of breakage that is valid then. */
type Cohort = {
  readonly currency: string;
  readonly product: number;
  readonly issueMonth: string;
  readonly policy: string;
  readonly ratePpm: number | null;
  readonly setBy: string;
  readonly reason: string;
  readonly issued: bigint;
  readonly voided: bigint;
  readonly redeemed: bigint;
  readonly expired: bigint;
  readonly other: bigint;
  readonly outstanding: bigint;
};

const listCohorts = ({ tx }: Scope, before: string) =>
  tx.query<Cohort>(sql`
select currency, product_id as product, to_char(issue_month, 'YYYY-MM') as "issueMonth",
  expiry_policy::text as policy, rate_ppm as "ratePpm", set_by as "setBy", reason,
  sum(issued)::bigint as issued, sum(voided)::bigint as voided, sum(redeemed)::bigint as redeemed,
  sum(expired)::bigint as expired, sum(other)::bigint as other, sum(minor)::bigint as outstanding
from ${changesBefore(before)}
left join (
  select distinct on (product_id) product_id, rate_ppm, set_by, reason from book_breakage_rates
  where valid_from < ${before}::date order by product_id, valid_from desc, id desc
) r using (product_id)
group by 1, 2, issue_month, 4, 5, 6, 7 order by 2, issue_month, expiry_policy::text collate "C"`);

const MILLION = 1_000_000n;

/** Divides amounts that are not negative, and rounds half up. */
const divide = (part: bigint, whole: bigint) => (2n * part + whole) / (2n * whole);
/** The lesser and the greater of two amounts. */
const least = (one: bigint, other: bigint) => (one < other ? one : other);
const most = (one: bigint, other: bigint) => (one < other ? other : one);

/** Expired money that belongs to a state is no breakage. */
const NOTHING = { estimated: 0n, recognized: 0n, isExceeded: false };

/**
 * Returns the part of a cohort that will never be redeemed at its rate, and how much of it to recognize at
 * the present redemptions. What has expired is both. No more than what is left on the vouchers can still
 * become it.
 */
function recognize(cohort: Cohort | undefined) {
  if (cohort === undefined || cohort.policy === 'unclaimed') return NOTHING;
  const issued = most(cohort.issued, 0n);
  const expired = most(cohort.expired, 0n);
  const redeemed = most(cohort.redeemed, 0n);
  const byRate = divide(issued * BigInt(cohort.ratePpm ?? 0), MILLION);
  const estimated = least(most(byRate, expired), expired + most(cohort.outstanding, 0n));
  const expected = issued - estimated;
  const inProportion = expected <= 0n ? estimated : divide(estimated * redeemed, expected);
  const recognized = most(expired, least(inProportion, estimated));
  return { estimated, recognized, isExceeded: redeemed > issued - byRate };
}

/**
 * Proposes an estimate, which is never posted, for each cohort of an expiry policy: by the rate that is valid
 * on the last day of the interval and, for what was recognized before, by that on the day before it.
 */
const estimate: Definition = {
  section: 'estimate',
  isOfClosedDays: true,
  columns: {
    ...{ product: 'product', issueMonth: 'text', policy: 'word', ratePercent: 'percent', setBy: 'text' },
    ...{ reason: 'text', issued: 'money', voided: 'money', redeemed: 'money', expired: 'money' },
    ...{ other: 'money', outstanding: 'money', estimated: 'money', recognized: 'money', before: 'money' },
    ...{ inInterval: 'money', deferred: 'money', toBook: 'money', isExceeded: 'word' },
  },
  async rows(scope) {
    const keyOf = ({ currency, product: id, issueMonth, policy }: Cohort) =>
      [currency, id, issueMonth, policy].join(' ');
    const earlier = new Map((await listCohorts(scope, scope.from)).map((each) => [keyOf(each), each]));
    const rated = (await listCohorts(scope, scope.to)).filter(({ ratePpm }) => ratePpm !== null);
    return rated.map((cohort) => {
      const { estimated, recognized, isExceeded } = recognize(cohort);
      const { recognized: before } = recognize(earlier.get(keyOf(cohort)));
      const isOwn = cohort.policy !== 'unclaimed';
      return {
        ...cohort,
        ratePercent: percent(BigInt(isOwn ? (cohort.ratePpm ?? 0) : 0), MILLION),
        ...{ estimated, recognized, before, inInterval: recognized - before },
        deferred: estimated - recognized,
        toBook: isOwn ? recognized - cohort.expired : 0n,
        isExceeded: isExceeded ? 'yes' : 'no',
      };
    });
  },
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
