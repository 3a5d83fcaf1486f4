import type { CohortRow } from './liability.ts';
import { listCohorts, listMovements, listRates } from './queries.ts';
import { amount, byCurrency, type Cell, type Maker, percent, productOf, type Table } from './report.ts';

type MovementRow = {
  readonly currency: string;
  readonly kind: string;
  readonly debit_kind: string;
  readonly credit_kind: string;
  readonly product_id: number;
  readonly amount_minor: bigint;
};

/**
 * R5: expired amounts as booked, the redemption of cohorts, and an estimate of what will never be redeemed.
 * The estimate is never posted. Cohorts and the estimate exist for closed days only.
 */
export const breakage: Maker = async (scope) => {
  const tables = await booked(scope);
  return scope.isClosed ? [...tables, ...(await cohorts(scope)), ...(await estimate(scope))] : tables;
};

const booked: Maker = async ({ tx, names, startsAt, endsAt }) => {
  const rows = await tx.query<MovementRow>(listMovements(startsAt, endsAt));
  const moved = rows.filter(({ kind }) => kind === 'EXPIRY' || kind === 'REINSTATEMENT');
  return byCurrency(moved).map(([currency, own]) => {
    const lines = new Map<string, { product: number; target: string; expired: bigint; reinstated: bigint }>();
    for (const { kind, product_id: product, credit_kind, debit_kind, amount_minor } of own) {
      const target = kind === 'EXPIRY' ? credit_kind : debit_kind;
      const line = lines.get(`${product} ${target}`) ?? { product, target, expired: 0n, reinstated: 0n };
      line[kind === 'EXPIRY' ? 'expired' : 'reinstated'] += amount_minor;
      lines.set(`${product} ${target}`, line);
    }
    return {
      section: 'booked',
      currency,
      columns: ['product', 'account', 'expired', 'reinstated', 'net'],
      rows: [...lines.values()]
        .sort((one, other) => one.product - other.product || (one.target < other.target ? -1 : 1))
        .map(({ product, target, expired, reinstated }) => [
          productOf(names, product),
          target,
          ...[expired, reinstated, expired - reinstated].map((minor) => amount(minor, currency)),
        ]),
    };
  });
};

/** The sums of a cohort. What was issued is without what was voided. */
type Sums = {
  issued: bigint;
  voided: bigint;
  redeemed: bigint;
  expired: bigint;
  /** Corrections, cash paid out, and balances paid to a state: negative if money left the vouchers. */
  other: bigint;
};

function addTo(sums: Sums, { kind, is_credit, amount_minor }: CohortRow): void {
  const minor = is_credit ? amount_minor : -amount_minor;
  if (kind === 'ACTIVATION' || kind === 'IMPORT') sums.issued += minor;
  else if (kind === 'VOID' || kind === 'CANCELLATION') {
    sums.issued += minor;
    sums.voided -= minor;
  } else if (kind === 'REDEMPTION' || kind === 'REDEMPTION_REVERSAL') sums.redeemed -= minor;
  else if (kind === 'EXPIRY' || kind === 'REINSTATEMENT') sums.expired -= minor;
  else sums.other += minor;
}

const none = (): Sums => ({ issued: 0n, voided: 0n, redeemed: 0n, expired: 0n, other: 0n });
const outstandingOf = ({ issued, redeemed, expired, other }: Sums) => issued - redeemed - expired + other;

/** The columns of a cohort: issued - redeemed - expired + other = outstanding. */
const COHORT = ['issued', 'voided', 'redeemed', 'expired', 'other', 'outstanding'];

const cohortCells = (sums: Sums, currency: string): Cell[] =>
  [sums.issued, sums.voided, sums.redeemed, sums.expired, sums.other, outstandingOf(sums)].map((minor) =>
    amount(minor, currency),
  );

/** The cohorts by product and month of issue, with cumulative sums month by month. */
const cohorts: Maker = async ({ tx, names, to }) => {
  const rows = await tx.query<CohortRow>(listCohorts(null, to));
  return byCurrency(rows).map(([currency, own]) => {
    const groups = Map.groupBy(own, ({ product_id, issue_month }) => `${product_id} ${issue_month}`);
    const lines = [...groups.values()].flatMap((group) => {
      const { product_id, issue_month } = group[0] as CohortRow;
      const sums = none();
      return [...new Set(group.map(({ months_since }) => months_since))]
        .sort((one, other) => one - other)
        .map((month) => {
          for (const row of group) if (row.months_since === month) addTo(sums, row);
          const cells = [...cohortCells(sums, currency), percent(sums.redeemed, most(sums.issued, 0n))];
          const key = { product_id, issue_month, month };
          return { key, cells: [issue_month.slice(0, 7), month, ...cells] };
        });
    });
    lines.sort(
      ({ key: one }, { key: other }) =>
        one.product_id - other.product_id ||
        (one.issue_month < other.issue_month
          ? -1
          : one.issue_month > other.issue_month
            ? 1
            : one.month - other.month),
    );
    return {
      section: 'cohorts',
      currency,
      columns: ['product', 'issueMonth', 'monthsSince', ...COHORT, 'redeemedPercent'],
      rows: lines.map(({ key, cells }) => [productOf(names, key.product_id), ...cells]),
    } satisfies Table;
  });
};

const MILLION = 1_000_000n;

/** Divides amounts that are not negative, and rounds half up. */
const divide = (part: bigint, whole: bigint) => (2n * part + whole) / (2n * whole);
/** The lesser and the greater of two amounts. */
const least = (one: bigint, other: bigint) => (one < other ? one : other);
const most = (one: bigint, other: bigint) => (one < other ? other : one);

/**
 * Returns the part of a cohort that will never be redeemed at a rate, and how much of it to recognize at
 * the present redemptions. What has expired is both. No more than what is left on the vouchers can still
 * become it.
 */
function recognize(sums: Sums, ratePpm: number) {
  const issued = most(sums.issued, 0n);
  const expired = most(sums.expired, 0n);
  const redeemed = most(sums.redeemed, 0n);
  const byRate = divide(issued * BigInt(ratePpm), MILLION);
  const estimated = least(most(byRate, expired), expired + most(outstandingOf(sums), 0n));
  const expected = issued - estimated;
  const inProportion = expected <= 0n ? estimated : divide(estimated * redeemed, expected);
  const recognized = most(expired, least(inProportion, estimated));
  return { estimated, recognized, isExceeded: redeemed > issued - byRate };
}

/** Expired money that belongs to a state is no breakage. */
const NOTHING = { estimated: 0n, recognized: 0n, isExceeded: false };

type Rate = {
  readonly product_id: number;
  readonly rate_ppm: number;
  readonly set_by: string;
  readonly reason: string;
};

/**
 * Proposes an estimate, which is never posted, for each cohort of an expiry policy: by the rate that is valid
 * on the last day of the interval and, for what was recognized before, by that on the day before it.
 */
const estimate: Maker = async ({ tx, names, from, to }) => {
  const ratesBefore = async (day: string) =>
    new Map((await tx.query<Rate>(listRates(day))).map((rate) => [rate.product_id, rate]));
  const [rates, earlier] = [await ratesBefore(to), await ratesBefore(from)];
  const rows = await tx.query<CohortRow>(listCohorts(from, to));
  return byCurrency(rows.filter(({ product_id }) => rates.has(product_id))).map(([currency, own]) => {
    const groups = Map.groupBy(
      own,
      ({ product_id, issue_month, expiry_policy }) => `${product_id} ${issue_month} ${expiry_policy}`,
    );
    const lines = [...groups.values()].map((group) => {
      const { product_id, issue_month, expiry_policy: policy } = group[0] as CohortRow;
      const { rate_ppm, set_by, reason } = rates.get(product_id) as Rate;
      const [until, before] = [none(), none()];
      for (const row of group) {
        addTo(until, row);
        addTo(before, { ...row, amount_minor: row.amount_minor - row.recent_minor });
      }
      const isOwn = policy !== 'unclaimed';
      const now = isOwn ? recognize(until, rate_ppm) : NOTHING;
      const then = isOwn ? recognize(before, earlier.get(product_id)?.rate_ppm ?? 0) : NOTHING;
      const toBook = isOwn ? now.recognized - until.expired : 0n;
      const minors = [now.estimated, now.recognized, then.recognized, now.recognized - then.recognized];
      const cells = [
        ...[issue_month.slice(0, 7), policy, percent(BigInt(isOwn ? rate_ppm : 0), MILLION), set_by, reason],
        ...cohortCells(until, currency),
        ...[...minors, now.estimated - now.recognized, toBook].map((minor) => amount(minor, currency)),
        now.isExceeded ? 'yes' : 'no',
      ];
      return { key: [product_id, `${issue_month} ${policy}`] as const, cells };
    });
    lines.sort(({ key: one }, { key: other }) => one[0] - other[0] || (one[1] < other[1] ? -1 : 1));
    return {
      section: 'estimate',
      currency,
      columns: [
        ...['product', 'issueMonth', 'policy', 'ratePercent', 'setBy', 'reason', ...COHORT],
        ...['estimated', 'recognized', 'before', 'inInterval', 'deferred', 'toBook', 'isExceeded'],
      ],
      rows: lines.map(({ key, cells }) => [productOf(names, key[0]), ...cells]),
    };
  });
};
