import { listUnclaimed, type UnclaimedRow } from '../escheat.queries.ts';
import { type DormantRow, listDormant, sumVat, type VatRow } from '../tax.queries.ts';
import { amount, byCurrency, type Cell, type Maker, wrong } from './report.ts';

/** The most vouchers that the report names. Nobody reads a longer list; set rules by product instead. */
const DORMANT_MAX = 100_000;
const MILLION = 1_000_000n;

/** R10: vouchers that are dormant at the end of the interval, each with the rule that applies. */
export const dormancy: Maker = async ({ tx, endsAt, zone }) => {
  const rows = await tx.query<DormantRow>(listDormant(endsAt, zone, DORMANT_MAX + 1));
  if (rows.length > DORMANT_MAX)
    throw wrong(
      'report',
      'too-many-dormant',
      `more than ${DORMANT_MAX} vouchers are dormant; narrow the rules by product`,
      { most: DORMANT_MAX },
    );
  return byCurrency(rows).map(([currency, own]) => ({
    currency,
    columns: ['rule', 'serialNumber', 'product', 'issuedOn', 'lastUsedOn', 'dueOn', 'balance'],
    rows: own.map((row): Cell[] => [
      ...[row.rule, String(row.serial_number), row.product, row.issued_on, row.used_on, row.due_on],
      amount(row.balance_minor, currency),
    ]),
  }));
};

/** R10: the vouchers whose expired money is unclaimed at the end of the interval. */
export const unclaimed: Maker = async ({ tx, endsAt, zone }) => {
  const wanted = { currency: null, expiredBefore: endsAt, at: endsAt, zone, countMax: DORMANT_MAX + 1 };
  const rows = await tx.query<UnclaimedRow>(listUnclaimed(wanted));
  if (rows.length > DORMANT_MAX)
    throw wrong(
      'report',
      'too-many-unclaimed',
      `the money of more than ${DORMANT_MAX} vouchers is unclaimed; pay the oldest to the state first`,
      { most: DORMANT_MAX },
    );
  return byCurrency(rows).map(([currency, own]) => ({
    section: 'unclaimed',
    currency,
    columns: ['serialNumber', 'product', 'issuedOn', 'lastUsedOn', 'expiredOn', 'amount'],
    rows: own.map((row): Cell[] => [
      ...[String(row.serial_number), row.product, row.issued_on, row.used_on, row.expired_on],
      amount(row.amount_minor, currency),
    ]),
  }));
};

/**
 * R11: VAT, for the tax adviser. The value of a voucher includes VAT. It is due on the issued value of
 * single-purpose vouchers, and on the redeemed value of multi-purpose vouchers. The tax of each line is
 * rounded once, half away from zero.
 */
export const vat: Maker = async ({ tx, from, to }) => {
  const rows = await tx.query<VatRow>(sumVat(from, to));
  return byCurrency(rows).map(([currency, own]) => ({
    currency,
    columns: [
      ...['product', 'treatment', 'country', 'ratePercent', 'issued', 'imported', 'redeemed', 'expired'],
      ...['taxed', 'base', 'tax', 'note'],
    ],
    rows: own.map((row): Cell[] => {
      const taxed =
        row.treatment === 'single' ? row.issued_minor : row.treatment === 'multi' ? row.redeemed_minor : 0n;
      const base = baseOf(taxed, BigInt(row.rate_ppm ?? 0));
      const head = [
        row.product,
        row.treatment,
        row.country,
        row.rate_ppm === null ? null : row.rate_ppm / 10_000,
      ];
      const sums = [
        row.issued_minor,
        row.imported_minor,
        row.redeemed_minor,
        row.expired_minor,
        taxed,
        base,
        taxed - base,
      ];
      const note = row.treatment === null ? 'no treatment' : 'prepared';
      return [...head, ...sums.map((minor) => amount(minor, currency)), note];
    }),
  }));
};

/** Returns an amount without the VAT that it includes. */
function baseOf(minor: bigint, ratePpm: bigint): bigint {
  const whole = MILLION + ratePpm;
  const size = ((minor < 0n ? -minor : minor) * MILLION * 2n + whole) / (2n * whole);
  return minor < 0n ? -size : size;
}
