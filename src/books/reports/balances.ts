import { listStatementsBetween, type StatementRow } from '../../bank/list.queries.ts';
import { type EntryRow, listEntriesBetween, summarizeBank } from '../../bank/queries.ts';
import { addDays } from '../../time.ts';
import { closedDays, sumsOf } from '../export.rows.ts';
import { checkMapped, GlDay, type GlLine, readGlMapping, Unmapped } from '../gl.ts';
import { countVouchers, listBalancesAt, listDayBalances, sumBalancesAt, sumKinds } from './queries.ts';
import { amount, byCurrency, type Maker, merchantOf, productOf, wrong } from './report.ts';

/**
 * The account kinds in the order in which reports print them: debts to others, the operator's own money, and
 * the funding behind both.
 */
const KINDS = [
  'FLOAT',
  'RESERVE',
  'TRANSIT',
  'VOUCHER',
  'SETTLEMENT',
  'UNCLAIMED',
  'VAT',
  'BREAKAGE',
  'FEES',
  'GOODWILL',
  'FUNDING',
  'UNKNOWN',
];

type KindRow = {
  readonly currency: string;
  readonly account_kind: string;
  readonly opening: bigint;
  readonly debits: bigint;
  readonly credits: bigint;
};

/** R1: opening balance, debits, credits and closing balance of each account kind. They sum to 0. */
export const trialBalance: Maker = async ({ tx, startsAt, endsAt }) => {
  const rows = await tx.query<KindRow>(sumKinds(startsAt, endsAt));
  return byCurrency(rows).map(([currency, kinds]) => {
    const line = (name: string, { opening, debits, credits }: Omit<KindRow, 'currency' | 'account_kind'>) => [
      name,
      ...[opening, debits, credits, opening + credits - debits].map((minor) => amount(minor, currency)),
    ];
    const sum = (part: 'opening' | 'debits' | 'credits') =>
      kinds.reduce((total, each) => total + each[part], 0n);
    const sums = { opening: sum('opening'), debits: sum('debits'), credits: sum('credits') };
    const ordered = [...kinds].sort((a, b) => KINDS.indexOf(a.account_kind) - KINDS.indexOf(b.account_kind));
    return {
      currency,
      columns: ['account', 'opening', 'debits', 'credits', 'closing'],
      rows: [...ordered.map((each) => line(each.account_kind, each)), line('total', sums)],
    };
  });
};

/** The money of merchants, in the order of its columns. */
const OF_MERCHANTS = { FLOAT: 'floats', RESERVE: 'reserves', SETTLEMENT: 'settlements' } as const;

/**
 * R1 by merchant: what the operator owes each merchant at the end of the interval, for the confirmation of
 * balances. The reserve of a batch belongs to the merchant that ordered it.
 */
export const merchantBalances: Maker = async ({ tx, endsAt, names }) => {
  type Row = { currency: string; account_kind: string; merchant_id: number; issuer_id: number };
  const rows = await tx.query<Row & { balance_minor: bigint }>(listBalancesAt(endsAt));
  const kinds = Object.keys(OF_MERCHANTS);
  return byCurrency(rows.filter(({ account_kind }) => kinds.includes(account_kind))).map(
    ([currency, own]) => {
      const ownerOf = ({ merchant_id, issuer_id }: Row) => merchant_id || issuer_id;
      const line = (head: readonly string[], some: typeof own) => {
        const minors = kinds.map((kind) =>
          total(some.filter((row) => row.account_kind === kind).map((row) => row.balance_minor)),
        );
        return [...head, ...[...minors, total(minors)].map((minor) => amount(minor, currency))];
      };
      const merchants = [...new Set(own.map(ownerOf))].sort((one, other) => one - other);
      return {
        currency,
        columns: ['merchantId', 'merchant', ...Object.values(OF_MERCHANTS), 'owed'],
        rows: [
          ...merchants.map((id) =>
            line(
              [String(id), merchantOf(names, id)],
              own.filter((row) => ownerOf(row) === id),
            ),
          ),
          line(['', 'total'], own),
        ],
      };
    },
  );
};

type DayRow = { day: string; currency: string; account_kind: string; balance_minor: bigint };

const OWED = ['VOUCHER', 'RESERVE', 'FLOAT', 'SETTLEMENT', 'UNCLAIMED', 'VAT'] as const;
const OWN = ['BREAKAGE', 'FEES', 'GOODWILL'] as const;

/**
 * R3: what the operator owed to others at the end of each day, its own money, and the funding behind both.
 */
export const outstanding: Maker = async ({ tx, from, to, endsAt, isClosed }) => {
  const rows = await tx.query<DayRow>(listDayBalances(from, to));
  type Counted = { day: string; currency: string; vouchers: bigint };
  const counted = await tx.query<Counted>(countVouchers(from, to));
  const vouchers = new Map<string, bigint>();
  for (const { day, currency, vouchers: count } of counted)
    vouchers.set(`${day} ${currency}`, (vouchers.get(`${day} ${currency}`) ?? 0n) + count);
  // Vouchers are counted at the close.
  let openDay: string | undefined;
  if (!isClosed) {
    const last = rows.at(-1)?.day;
    const day = last === undefined ? from : addDays(last, 1);
    openDay = day;
    rows.push(
      ...(await tx.query<Omit<DayRow, 'day'>>(sumBalancesAt(endsAt))).map((row) => ({ day, ...row })),
    );
  }
  return byCurrency(rows).map(([currency, own]) => {
    const days = [...new Set(own.map(({ day }) => day))].sort();
    return {
      currency,
      columns: [
        ...[
          'day',
          'vouchers',
          'outstanding',
          'reserves',
          'floats',
          'settlements',
          'unclaimed',
          'vat',
          'owed',
        ],
        ...['breakage', 'fees', 'goodwill', 'own', 'minusFunding'],
      ],
      rows: days.map((day) => {
        const held = new Map(
          own.filter((row) => row.day === day).map((row) => [row.account_kind, row.balance_minor]),
        );
        const of = (kind: string) => held.get(kind) ?? 0n;
        // Money in transit between shards has left a float for a voucher.
        const owed = OWED.map((kind) => (kind === 'RESERVE' ? of('RESERVE') + of('TRANSIT') : of(kind)));
        const ours = OWN.map(of);
        const cells = [...owed, total(owed), ...ours, total(ours), -of('FUNDING')];
        const count = day === openDay ? '' : String(vouchers.get(`${day} ${currency}`) ?? 0n);
        return [day, count, ...cells.map((minor) => amount(minor, currency))];
      }),
    };
  });
};

const total = (minors: readonly bigint[]) => minors.reduce((sum, each) => sum + each, 0n);

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
 * R13: compares the operator's bank account with the books at the end of the interval. A difference that own
 * money and unmatched items do not explain is an error on one of the two sides.
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

/**
 * Lists the imported statements that end in the interval. Each opening balance should be the closing balance
 * before it, and the entries should lead from one to the other.
 */
export const bankStatements: Maker = async ({ tx, from, to }) => {
  const rows = await tx.query<StatementRow>(listStatementsBetween(from, to));
  return byCurrency(rows).map(([currency, own]) => ({
    section: 'statements',
    currency,
    columns: ['statement', 'account', 'date', 'opening', 'entries', 'closing', 'gap', 'missing', 'state'],
    rows: own.map((each) => {
      const { opening_minor, closing_minor, gap_minor, missing_minor } = each;
      const money = (minor: bigint | null) => (minor === null ? null : amount(minor, currency));
      const entries =
        missing_minor === null ? null : (closing_minor ?? 0n) - (opening_minor ?? 0n) - missing_minor;
      const states = [...(gap_minor ? ['GAP'] : []), ...(missing_minor ? ['INCOMPLETE'] : [])];
      return [
        ...[each.id, each.account, each.closing_on],
        ...[opening_minor, entries, closing_minor, gap_minor, missing_minor].map(money),
        states.join(' ') || 'ok',
      ];
    }),
  }));
};

/** Lists the bank entries of the interval, and the movements that they are matched with. */
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

/**
 * R12: the movements of closed days on the account numbers of the operator's accounting system. Debits equal
 * credits.
 */
export const generalLedger: Maker = async ({ tx, from, to, names }) => {
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
  return byCurrency(lines).map(([currency, own]) => ({
    currency,
    columns: [
      ...['date', 'voucherNumber', 'account', 'counterAccount', 'debit', 'credit', 'taxCode', 'text'],
      'closingHash',
    ],
    rows: own.map((line) => [
      ...[line.date, line.voucherNumber, line.account, line.counterAccount],
      line.debitMinor === null ? null : amount(line.debitMinor, currency),
      line.creditMinor === null ? null : amount(line.creditMinor, currency),
      ...[line.taxCode, line.text, line.closingHash],
    ]),
  }));
};
