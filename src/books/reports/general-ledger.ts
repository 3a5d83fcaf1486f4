import { Refusal } from '../../refusal.ts';
import { closedDays, sumsOf } from '../export.rows.ts';
import { checkMapped, GlDay, type GlLine, readGlMapping, Unmapped } from '../gl.ts';
import { amount, byCurrency, type Maker } from './report.ts';

/**
 * R12: the movements of closed days on the account numbers of another bookkeeping. Debits are equal to
 * credits.
 */
export const generalLedger: Maker = async ({ tx, from, to }) => {
  const mapping = await readGlMapping(tx);
  const lines: GlLine[] = [];
  try {
    for (const day of await closedDays(tx, from, to)) {
      const sums = await sumsOf(tx, day);
      checkMapped(mapping, sums);
      lines.push(...new GlDay(mapping, day).sums(sums));
    }
  } catch (error) {
    if (error instanceof Unmapped) throw new Refusal('30', { message: `Invalid request: ${error.message}` });
    throw error;
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
