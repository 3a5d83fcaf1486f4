import { addDays } from '../../time.ts';
import { countVouchers, listAging, listBalancesAt, listCohorts, listMovements } from './queries.ts';
import {
  amount,
  byCurrency,
  type Cell,
  type Maker,
  merchantOf,
  percent,
  productOf,
  type Scope,
} from './report.ts';

type MovementRow = {
  readonly currency: string;
  readonly kind: string;
  readonly debit_kind: string;
  readonly credit_kind: string;
  readonly merchant_id: number;
  readonly issuer_id: number;
  readonly product_id: number;
  readonly rows: bigint;
  readonly amount_minor: bigint;
};

type BalanceRow = {
  readonly currency: string;
  readonly account_kind: string;
  readonly issuer_id: number;
  readonly product_id: number;
  readonly balance_minor: bigint;
};

/**
 * The column that each movement of a voucher changes: `+` increases the voucher's balance, `-` decreases it.
 */
const COLUMNS: Readonly<Record<string, string>> = {
  '+ACTIVATION': 'issued',
  '+IMPORT': 'imported',
  '+REDEMPTION_REVERSAL': 'reversed',
  '+REINSTATEMENT': 'reinstated',
  '+ADJUSTMENT': 'adjustedUp',
  '-REDEMPTION': 'redeemed',
  '-EXPIRY': 'expired',
  '-VOID': 'voided',
  '-CANCELLATION': 'voided',
  '-ADJUSTMENT': 'adjustedDown',
  '-CASH_OUT': 'cashedOut',
  '-ESCHEAT': 'escheated',
};
const MOVED = [...new Set(Object.values(COLUMNS))];

/** The movements of a line by column; 0 if there were none. */
class Line {
  opening = 0n;
  #net = 0n;
  readonly #moved = new Map<string, bigint>();

  add(kind: string, isCredit: boolean, minor: bigint): void {
    const column = COLUMNS[`${isCredit ? '+' : '-'}${kind}`] as string;
    this.#moved.set(column, this.of(column) + minor);
    this.#net += isCredit ? minor : -minor;
  }

  addLine(other: Line): void {
    this.opening += other.opening;
    for (const [column, minor] of other.#moved) this.#moved.set(column, this.of(column) + minor);
    this.#net += other.#net;
  }

  of(column: string): bigint {
    return this.#moved.get(column) ?? 0n;
  }

  closing(): bigint {
    return this.opening + this.#net;
  }
}

type Keyed = { readonly currency: string; readonly product_id: number; readonly issuer_id: number };
const keyOf = ({ currency, product_id, issuer_id }: Keyed) => `${currency} ${product_id} ${issuer_id}`;

/**
 * R2: the balances of vouchers by product and issuer, rolled forward from the start of the interval to its
 * end, then the total of each currency.
 */
export const liability: Maker = async (scope) => {
  const { tx, names, startsAt, endsAt } = scope;
  const lines = new Map<string, Line & Keyed>();
  const lineOf = ({ currency, product_id, issuer_id }: Keyed) => {
    const key = keyOf({ currency, product_id, issuer_id });
    const line = lines.get(key) ?? Object.assign(new Line(), { currency, product_id, issuer_id });
    lines.set(key, line);
    return line;
  };
  for (const row of await tx.query<BalanceRow>(listBalancesAt(startsAt)))
    if (row.account_kind === 'VOUCHER') lineOf(row).opening += row.balance_minor;
  for (const row of await tx.query<MovementRow>(listMovements(startsAt, endsAt))) {
    // A replacement moves money within one product and issuer.
    if (row.kind === 'REPLACEMENT') continue;
    if (row.credit_kind === 'VOUCHER') lineOf(row).add(row.kind, true, row.amount_minor);
    if (row.debit_kind === 'VOUCHER') lineOf(row).add(row.kind, false, row.amount_minor);
  }
  const counts = await vouchersAtEnd(scope);
  const byLine = byCurrency([...lines.values()]);
  const cells = (line: Line, currency: string, vouchers: bigint | undefined) => [
    amount(line.opening, currency),
    ...MOVED.map((column) => amount(line.of(column), currency)),
    amount(line.closing(), currency),
    vouchers === undefined ? null : String(vouchers),
  ];
  const columns = ['opening', ...MOVED, 'closing', 'vouchers'];
  const rows = byLine.map(([currency, own]) => ({
    currency,
    columns: ['product', 'issuerId', 'issuer', 'scope', ...columns],
    rows: own
      .sort((one, other) => one.product_id - other.product_id || one.issuer_id - other.issuer_id)
      .map((line) => [
        productOf(names, line.product_id),
        String(line.issuer_id),
        merchantOf(names, line.issuer_id),
        names.products.get(line.product_id)?.scope ?? '',
        ...cells(line, currency, counts && (counts.get(keyOf(line)) ?? 0n)),
      ]),
  }));
  const totals = byLine.map(([currency, own]) => {
    const total = new Line();
    let vouchers = 0n;
    for (const line of own) {
      total.addLine(line);
      vouchers += counts?.get(keyOf(line)) ?? 0n;
    }
    return { section: 'total', currency, columns, rows: [cells(total, currency, counts && vouchers)] };
  });
  return [...rows, ...totals];
};

/** Counts the vouchers with a balance at the end of the last day; undefined if that day is not closed. */
async function vouchersAtEnd({ tx, to, isClosed }: Scope): Promise<Map<string, bigint> | undefined> {
  if (!isClosed) return undefined;
  const day = addDays(to, -1);
  const rows = await tx.query<Keyed & { vouchers: bigint }>(countVouchers(day, to));
  return new Map(rows.map((row) => [keyOf(row), row.vouchers]));
}

const BUCKETS: Readonly<Record<number, string>> = {
  0: '0-30',
  31: '31-60',
  61: '61-90',
  91: '91-180',
  181: '181-365',
  366: '>365',
};

type AgingRow = {
  readonly currency: string;
  readonly product_id: number;
  readonly basis: string;
  readonly lower_bound: number;
  readonly vouchers: bigint;
  readonly amount_minor: bigint;
};

/**
 * Returns the parts of a basis by lower bound: the number of vouchers, their balance, and its share of the
 * total.
 */
function partsOf(rows: readonly AgingRow[], basis: string, bounds: readonly number[], currency: string) {
  const own = rows.filter((row) => row.basis === basis);
  const whole = own.reduce((sum, { amount_minor }) => sum + amount_minor, 0n);
  return bounds.map((bound): readonly Cell[] => {
    const part = own.filter(({ lower_bound }) => lower_bound === bound);
    const vouchers = part.reduce((sum, row) => sum + row.vouchers, 0n);
    const minor = part.reduce((sum, row) => sum + row.amount_minor, 0n);
    return [String(vouchers), amount(minor, currency), percent(minor, whole)];
  });
}

const FIGURES = ['vouchers', 'outstanding', 'sharePercent'];

/** Makes the lines of a table of R4 from the rows of a currency, or of one of its products. */
type Lines = (rows: readonly AgingRow[], currency: string, day: string) => readonly (readonly Cell[])[];

/** Makes R4 in lines of all products together, or product by product. */
function agesOf(
  lines: Lines,
  { section, columns, isByProduct }: { section?: string; columns: string[]; isByProduct: boolean },
): Maker {
  return async ({ tx, to, names }) => {
    const day = addDays(to, -1);
    const rows = await tx.query<AgingRow>(listAging(day));
    return byCurrency(rows).map(([currency, own]) => {
      const products = [...new Set(own.map(({ product_id }) => product_id))].sort(
        (one, other) => one - other,
      );
      return {
        ...(section && { section }),
        currency,
        columns: [...(isByProduct ? ['product'] : []), ...columns, ...FIGURES],
        rows: isByProduct
          ? products.flatMap((id) =>
              lines(
                own.filter(({ product_id }) => product_id === id),
                currency,
                day,
              ).map((line) => [productOf(names, id), ...line]),
            )
          : lines(own, currency, day),
      };
    });
  };
}

const dayLines: Lines = (rows, currency) =>
  ['expires', 'idle'].flatMap((basis) =>
    partsOf(rows, basis, Object.keys(BUCKETS).map(Number), currency).map((figures, place) => [
      basis,
      Object.values(BUCKETS)[place] ?? '',
      ...figures,
    ]),
  );

/**
 * R4: vouchers with a balance at the end of the interval, by the days until they expire and by the days since
 * their last use.
 */
const DAYS = { columns: ['basis', 'days'] };
export const aging = agesOf(dayLines, { ...DAYS, isByProduct: false });
export const agingByProduct = agesOf(dayLines, { ...DAYS, isByProduct: true });

/** The next twelve months, and one column for all later months. */
const LAST_MONTH = 13;

const monthLines: Lines = (rows, currency, day) => {
  const months = Array.from({ length: LAST_MONTH + 1 }, (_, ahead) => ahead);
  return partsOf(rows, 'month', months, currency).map((figures, ahead) => [
    ahead === LAST_MONTH ? 'later' : monthAfter(day, ahead),
    ...figures,
  ]);
};

/** R4: the same vouchers by the month in which they expire, in the zone of the books. */
const MONTHS = { section: 'expiryMonths', columns: ['month'] };
export const expiryMonths = agesOf(monthLines, { ...MONTHS, isByProduct: false });
export const expiryMonthsByProduct = agesOf(monthLines, { ...MONTHS, isByProduct: true });

function monthAfter(day: string, ahead: number): string {
  const month = Number(day.slice(0, 4)) * 12 + Number(day.slice(5, 7)) - 1 + ahead;
  return `${Math.floor(month / 12)}-${String((month % 12) + 1).padStart(2, '0')}`;
}

/** R9: the redemptions of each merchant by the issuer of the voucher. */
export const issuerAcceptor: Maker = async ({ tx, names, startsAt, endsAt }) => {
  const rows = await tx.query<MovementRow>(listMovements(startsAt, endsAt));
  const redeemed = rows.filter(({ kind }) => kind === 'REDEMPTION' || kind === 'REDEMPTION_REVERSAL');
  return byCurrency(redeemed).map(([currency, own]) => {
    const pairs = new Map<string, { issuer: number; acceptor: number; redeemed: bigint; reversed: bigint }>();
    for (const { kind, issuer_id: issuer, merchant_id: acceptor, amount_minor } of own) {
      const key = `${issuer} ${acceptor}`;
      const pair = pairs.get(key) ?? { issuer, acceptor, redeemed: 0n, reversed: 0n };
      if (kind === 'REDEMPTION') pair.redeemed += amount_minor;
      else pair.reversed += amount_minor;
      pairs.set(key, pair);
    }
    return {
      currency,
      columns: ['issuerId', 'issuer', 'acceptorId', 'acceptor', 'redeemed', 'reversed', 'net'],
      rows: [...pairs.values()]
        .sort((one, other) => one.issuer - other.issuer || one.acceptor - other.acceptor)
        .map(({ issuer, acceptor, redeemed: spent, reversed }) => [
          String(issuer),
          merchantOf(names, issuer),
          String(acceptor),
          merchantOf(names, acceptor),
          ...[spent, reversed, spent - reversed].map((minor) => amount(minor, currency)),
        ]),
    };
  });
};

export type CohortRow = Keyed & {
  readonly expiry_policy: string;
  readonly issue_month: string;
  readonly kind: string;
  readonly is_credit: boolean;
  readonly months_since: number;
  readonly rows: bigint;
  readonly amount_minor: bigint;
  /** The amount of this interval alone. */
  readonly recent_minor: bigint;
};

/** R2 by the month in which the vouchers were issued, for closed days only. */
export const liabilityByMonth: Maker = async ({ tx, names, from, to }) => {
  const rows = await tx.query<CohortRow>(listCohorts(from, to));
  return byCurrency(rows).map(([currency, own]) => {
    const lines = new Map<string, Line & Keyed & { month: string }>();
    for (const row of own) {
      const key = `${keyOf(row)} ${row.issue_month}`;
      const { product_id, issuer_id, issue_month: month } = row;
      const line = lines.get(key) ?? Object.assign(new Line(), { currency, product_id, issuer_id, month });
      lines.set(key, line);
      const before = row.amount_minor - row.recent_minor;
      line.opening += row.is_credit ? before : -before;
      line.add(row.kind, row.is_credit, row.recent_minor);
    }
    return {
      section: 'months',
      currency,
      columns: ['product', 'issuerId', 'issuer', 'issueMonth', 'opening', ...MOVED, 'closing'],
      rows: [...lines.values()]
        .sort(
          (a, b) => a.product_id - b.product_id || a.issuer_id - b.issuer_id || (a.month < b.month ? -1 : 1),
        )
        .map((line) => [
          productOf(names, line.product_id),
          String(line.issuer_id),
          merchantOf(names, line.issuer_id),
          line.month.slice(0, 7),
          amount(line.opening, currency),
          ...MOVED.map((column) => amount(line.of(column), currency)),
          amount(line.closing(), currency),
        ]),
    };
  });
};
