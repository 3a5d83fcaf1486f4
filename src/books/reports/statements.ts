import { addDays } from '../../time.ts';
import { statementNumber } from '../formats.ts';
import {
  listBalancesAt,
  listBankReferences,
  listCommission,
  listEarlierReversals,
  listFloatLines,
  listMovements,
} from './queries.ts';
import {
  amount,
  byCurrency,
  type Cell,
  type Maker,
  merchantOf,
  productOf,
  type Scope,
  wrong,
} from './report.ts';

function requireMerchantOf({ merchantId }: Pick<Scope, 'merchantId'>): number {
  if (merchantId !== undefined) return merchantId;
  throw wrong('merchantId', 'required', 'this report is of one merchant: name it');
}

type BalanceRow = { currency: string; account_kind: string; merchant_id: number; balance_minor: bigint };

async function openingOf(
  { tx, startsAt }: Scope,
  merchantId: number,
  kind: string,
): Promise<Map<string, bigint>> {
  const rows = await tx.query<BalanceRow>(listBalancesAt(startsAt));
  const own = rows.filter((row) => row.account_kind === kind && row.merchant_id === merchantId);
  return new Map(own.map(({ currency, balance_minor }) => [currency, balance_minor]));
}

type FloatLine = {
  readonly id: string;
  readonly occurred_at: Date;
  readonly kind: string;
  readonly currency: string;
  readonly reference: string | null;
  readonly amount_minor: bigint;
};

/**
 * R6: the lines on a merchant's floats in the order of time, with the balance after each. A statement of
 * closed days has a number, which names its days and its float: that of one day is its number in camt.053.
 */
export const floatStatement: Maker = async (scope) => {
  const { tx, startsAt, endsAt, isClosed, from, to } = scope;
  const merchantId = requireMerchantOf(scope);
  const openings = await openingOf(scope, merchantId, 'FLOAT');
  const lines = await tx.query<FloatLine>(listFloatLines(merchantId, startsAt, endsAt));
  type Matched = { readonly id: string; readonly reference: string };
  const matched = await tx.query<Matched>(listBankReferences(lines.map(({ id }) => id)));
  const bankReferences = new Map(matched.map(({ id, reference }) => [id, reference]));
  const byFloat = new Map(byCurrency(lines));
  const currencies = [...new Set([...openings.keys(), ...byFloat.keys()])].sort();
  return currencies.map((currency) => {
    let balance = openings.get(currency) ?? 0n;
    const row = (time: Date, kind: string, line?: FloatLine): Cell[] => [
      ...[time.toISOString(), line?.id ?? null, kind, line?.reference ?? null],
      (line && bankReferences.get(line.id)) ?? null,
      line ? amount(line.amount_minor, currency) : null,
      amount(balance, currency),
    ];
    const opening = row(startsAt, 'opening');
    const own = (byFloat.get(currency) ?? []).map((line) => {
      balance += line.amount_minor;
      return row(line.occurred_at, line.kind, line);
    });
    const account = { kind: 'FLOAT', merchantId, currency };
    return {
      currency,
      ...(isClosed && { number: statementNumber(from, addDays(to, -1), account) }),
      columns: ['time', 'transactionId', 'kind', 'reference', 'bankReference', 'amount', 'balance'],
      rows: [opening, ...own, row(endsAt, 'closing')],
    };
  });
};

type MovementRow = {
  readonly currency: string;
  readonly kind: string;
  readonly debit_kind: string;
  readonly credit_kind: string;
  readonly merchant_id: number;
  readonly product_id: number;
  readonly rows: bigint;
  readonly amount_minor: bigint;
};

/** The kind of line for reversals of redemptions before the interval. */
const EARLIER = 'EARLIER_REVERSAL';

/**
 * The column that each movement of a settlement account adds to. A reversal is subtracted from its column.
 */
const SETTLED: Readonly<Record<string, string>> = {
  REDEMPTION: 'redeemed',
  REDEMPTION_REVERSAL: 'reversed',
  [EARLIER]: 'earlierReversed',
  CASH_OUT: 'cashedOut',
  FEE: 'commission',
  FEE_REVERSAL: 'commission',
  FEE_VAT: 'vat',
  FEE_VAT_REVERSAL: 'vat',
  PAYOUT: 'paidOut',
  PAYOUT_RETURN: 'paidOut',
  OPENING: 'takenOver',
};
const COLUMNS = [
  'redeemed',
  'reversed',
  'earlierReversed',
  'cashedOut',
  'commission',
  'vat',
  'paidOut',
  'takenOver',
];
const COUNTED = ['REDEMPTION', 'REDEMPTION_REVERSAL', EARLIER];

/**
 * Lists the movements of the interval. Reversals of redemptions before the interval get their own lines.
 * Commission is booked without a product, so it is moved to the lines of its products.
 */
async function listSettled({ tx, from, to, startsAt, endsAt }: Scope): Promise<MovementRow[]> {
  const rows = await tx.query<MovementRow>(listMovements(startsAt, endsAt));
  const settled = rows.filter((row) => [row.debit_kind, row.credit_kind].includes('SETTLEMENT'));
  type Earlier = Pick<MovementRow, 'currency' | 'merchant_id' | 'product_id' | 'rows' | 'amount_minor'>;
  for (const row of await tx.query<Earlier>(listEarlierReversals(from, startsAt, endsAt))) {
    const kinds = { debit_kind: 'SETTLEMENT', credit_kind: 'VOUCHER' };
    const taken = { ...row, ...kinds, rows: -row.rows, amount_minor: -row.amount_minor };
    settled.push({ ...row, ...kinds, kind: EARLIER }, { ...taken, kind: 'REDEMPTION_REVERSAL' });
  }
  for (const row of await tx.query<MovementRow>(listCommission(from, to))) {
    const taken = { rows: -row.rows, amount_minor: -row.amount_minor };
    settled.push(row, { ...row, ...taken, product_id: 0 });
  }
  return settled;
}

/**
 * R7: the settled amounts of each merchant by product, then the settlement account from opening to closing
 * balance.
 */
export const settlementStatement: Maker = async (scope) => {
  const { tx, names, startsAt, merchantId } = scope;
  const isWanted = (id: number) => merchantId === undefined || id === merchantId;
  const openings = (await tx.query<BalanceRow>(listBalancesAt(startsAt))).filter(
    (row) => row.account_kind === 'SETTLEMENT' && isWanted(row.merchant_id),
  );
  const movements = (await listSettled(scope)).filter((row) => isWanted(row.merchant_id));
  const currencies = [...new Set([...openings, ...movements].map(({ currency }) => currency))].sort();
  return currencies.map((currency) => {
    const moved = movements.filter((row) => row.currency === currency);
    const opened = openings.filter((row) => row.currency === currency);
    const merchants = [...new Set([...opened, ...moved].map(({ merchant_id }) => merchant_id))].sort(
      (a, b) => a - b,
    );
    return {
      currency,
      columns: [
        'merchantId',
        'merchant',
        'product',
        ...['redemptions', 'reversals', 'earlierReversals'],
        ...COLUMNS,
        ...['opening', 'net', 'closing'],
      ],
      rows: merchants.flatMap((id) => {
        const own = moved.filter(({ merchant_id }) => merchant_id === id);
        const opening = opened.find(({ merchant_id }) => merchant_id === id)?.balance_minor ?? 0n;
        const products = [...new Set(own.map(({ product_id }) => product_id))]
          .filter((each) => !isEmpty(own.filter(({ product_id }) => product_id === each)))
          .sort((a, b) => a - b);
        const line = (product: string, rows: readonly MovementRow[], account: readonly Cell[]) => [
          ...[String(id), merchantOf(names, id), product],
          ...COUNTED.map((kind) => countOf(rows, kind)),
          ...COLUMNS.map((column) => amount(sumOf(rows, column), currency)),
          ...account,
        ];
        const net = netOf(own);
        const account = [opening, net, opening + net].map((minor) => amount(minor, currency));
        return [
          ...products.map((each) => {
            const rows = own.filter(({ product_id }) => product_id === each);
            return line(productOf(names, each), rows, [null, amount(netOf(rows), currency), null]);
          }),
          line('total', own, account),
        ];
      }),
    };
  });
};

/** Returns whether the rows of each kind cancel each other out. */
const isEmpty = (rows: readonly MovementRow[]) => rows.every(({ kind }) => countOf(rows, kind) === '0');

const countOf = (rows: readonly MovementRow[], kind: string) =>
  String(rows.reduce((sum, row) => (row.kind === kind ? sum + row.rows : sum), 0n));

function sumOf(rows: readonly MovementRow[], column: string): bigint {
  let sum = 0n;
  for (const { kind, debit_kind, amount_minor } of rows) {
    if (SETTLED[kind] !== column) continue;
    const isTakenBack =
      ['FEE_REVERSAL', 'FEE_VAT_REVERSAL', 'PAYOUT_RETURN'].includes(kind) ||
      (kind === 'OPENING' && debit_kind === 'SETTLEMENT');
    sum += isTakenBack ? -amount_minor : amount_minor;
  }
  return sum;
}

const netOf = (rows: readonly MovementRow[]) =>
  rows.reduce(
    (sum, { credit_kind, amount_minor }) =>
      sum + (credit_kind === 'SETTLEMENT' ? amount_minor : -amount_minor),
    0n,
  );
