import type { CohortRow } from './liability.ts';
import { listCohorts, listMovements, listRates } from './queries.ts';
import { amount, byCurrency, type Maker, percent, productOf, type Table } from './report.ts';

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

/** The sums of a cohort. */
type Sums = { issued: bigint; redeemed: bigint; expired: bigint; other: bigint };

function addTo(sums: Sums, { kind, is_credit, amount_minor }: CohortRow): void {
  const minor = is_credit ? amount_minor : -amount_minor;
  if (kind === 'ACTIVATION' || kind === 'IMPORT') sums.issued += minor;
  else if (kind === 'REDEMPTION' || kind === 'REDEMPTION_REVERSAL') sums.redeemed -= minor;
  else if (kind === 'EXPIRY' || kind === 'REINSTATEMENT') sums.expired -= minor;
  else sums.other += minor;
}

const none = (): Sums => ({ issued: 0n, redeemed: 0n, expired: 0n, other: 0n });

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
          const { issued, redeemed, expired, other } = sums;
          const minors = [issued, redeemed, expired, issued - redeemed - expired + other];
          const cells = minors.map((minor) => amount(minor, currency));
          const key = { product_id, issue_month, month };
          return { key, cells: [issue_month.slice(0, 7), month, ...cells, percent(redeemed, issued)] };
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
      columns: [
        ...['product', 'issueMonth', 'monthsSince', 'issued', 'redeemed', 'expired', 'outstanding'],
        'redeemedPercent',
      ],
      rows: lines.map(({ key, cells }) => [productOf(names, key.product_id), ...cells]),
    } satisfies Table;
  });
};

const MILLION = 1_000_000n;

/** Divides amounts that are not negative, and rounds half up. */
const divide = (part: bigint, whole: bigint) => (2n * part + whole) / (2n * whole);

/**
 * Returns the part that will never be redeemed at a rate, and how much of it to recognize at the present
 * redemptions.
 */
function recognize(issued: bigint, redeemed: bigint, ratePpm: number) {
  const estimated = divide(issued * BigInt(ratePpm), MILLION);
  const expected = issued - estimated;
  const inProportion = expected <= 0n ? estimated : divide(estimated * redeemed, expected);
  const most = issued - redeemed < estimated ? issued - redeemed : estimated;
  const recognized = inProportion < most ? inProportion : most;
  return { estimated, recognized: recognized < 0n ? 0n : recognized, isExceeded: redeemed > expected };
}

type Rate = {
  readonly product_id: number;
  readonly rate_ppm: number;
  readonly set_by: string;
  readonly reason: string;
};

/** Proposes an estimate, which is never posted. Proposes nothing if expired money belongs to a state. */
const estimate: Maker = async ({ tx, names, from, to }) => {
  const rates = new Map((await tx.query<Rate>(listRates())).map((rate) => [rate.product_id, rate]));
  const rows = await tx.query<CohortRow>(listCohorts(from, to));
  return byCurrency(rows.filter(({ product_id }) => rates.has(product_id))).map(([currency, own]) => {
    const groups = Map.groupBy(own, ({ product_id, issue_month }) => `${product_id} ${issue_month}`);
    return {
      section: 'estimate',
      currency,
      columns: [
        ...['product', 'issueMonth', 'ratePercent', 'setBy', 'reason', 'issued', 'redeemed', 'estimated'],
        ...['recognized', 'before', 'inInterval', 'deferred', 'isExceeded'],
      ],
      rows: [...groups.values()].map((group) => {
        const { product_id, issue_month } = group[0] as CohortRow;
        const { rate_ppm, set_by, reason } = rates.get(product_id) as Rate;
        const [until, before] = [none(), none()];
        for (const row of group) {
          addTo(until, row);
          addTo(before, { ...row, amount_minor: row.amount_minor - row.recent_minor });
        }
        const ppm = names.products.get(product_id)?.expiryPolicy === 'unclaimed' ? 0 : rate_ppm;
        const now = recognize(until.issued, until.redeemed, ppm);
        const then = recognize(before.issued, before.redeemed, ppm);
        const minors = [now.recognized, then.recognized, now.recognized - then.recognized];
        return [
          ...[
            productOf(names, product_id),
            issue_month.slice(0, 7),
            percent(BigInt(ppm), MILLION),
            set_by,
            reason,
          ],
          ...[until.issued, until.redeemed, now.estimated, ...minors, now.estimated - now.recognized].map(
            (minor) => amount(minor, currency),
          ),
          now.isExceeded ? 'yes' : 'no',
        ];
      }),
    };
  });
};
