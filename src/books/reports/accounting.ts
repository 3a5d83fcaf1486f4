import { listStatementsBetween, type StatementRow } from '../../bank/list.queries.ts';
import { type EntryRow, listEntriesBetween, summarizeBank } from '../../bank/queries.ts';
import { closedDays, sumsOf } from '../export.rows.ts';
import { checkMapped, GlDay, type GlLine, readGlMapping, Unmapped } from '../gl.ts';
import { type Definition, merchantOf, productOf, wrong } from './report.ts';

/** The books beside others: the operator's accounting system (R12), and its bank (R13). */

/**
 * R12: the movements of closed days on the account numbers of the operator's accounting system. Debits equal
 * credits.
 */
export const generalLedger: Definition = {
  columns: {
    ...{ date: 'text', voucherNumber: 'text', account: 'text', counterAccount: 'text', debit: 'money' },
    ...{ credit: 'money', taxCode: 'text', text: 'text', closingHash: 'text' },
  },
  async rows({ tx, from, to, names }) {
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
    return lines.map(({ debitMinor: debit, creditMinor: credit, ...line }) => ({ ...line, debit, credit }));
  },
};

type Summary = {
  readonly currency: string;
  readonly own_minor: bigint;
  readonly closing_minor: bigint;
  readonly is_stated: boolean;
  readonly booked_minor: bigint;
  readonly entries_minor: bigint;
  readonly movements_minor: bigint;
};

/**
 * R13: compares the operator's bank account with the books at the end of the interval. A difference that own
 * money and unmatched items do not explain is an error on one of the two sides.
 */
const bankReconciliation: Definition = {
  section: 'reconciliation',
  columns: { item: 'text', amount: 'money', state: 'text' },
  async rows({ tx, to, endsAt }) {
    const found = await tx.query<Summary>(summarizeBank(to, endsAt));
    return found.flatMap(({ currency, ...row }) => {
      const expected = row.own_minor + row.booked_minor + row.entries_minor - row.movements_minor;
      const unexplained = row.closing_minor - expected;
      const line = (item: string, amount: bigint, state?: string) => ({ currency, item, amount, state });
      return [
        line('own money in the account', row.own_minor),
        line('funding, as booked', row.booked_minor),
        line('at the bank, not booked', row.entries_minor),
        line('booked, not at the bank', -row.movements_minor),
        line('expected', expected),
        line('bank', row.closing_minor, row.is_stated ? 'stated' : 'computed'),
        line('unexplained', unexplained, unexplained === 0n ? 'ok' : 'UNEXPLAINED'),
      ];
    });
  },
};

/**
 * R13: the imported statements that end in the interval. Each opening balance should be the closing balance
 * before it, and the entries should lead from one to the other.
 */
const bankStatements: Definition = {
  section: 'statements',
  columns: {
    ...{ statement: 'number', account: 'text', date: 'text', opening: 'money', entries: 'money' },
    ...{ closing: 'money', gap: 'money', missing: 'money', state: 'text' },
  },
  async rows({ tx, from, to }) {
    const found = await tx.query<StatementRow>(listStatementsBetween(from, to));
    return found.map(({ currency, account, ...each }) => {
      const [opening, closing, missing] = [each.opening_minor, each.closing_minor, each.missing_minor];
      return {
        ...{ currency, statement: each.id, account, date: each.closing_on, opening, closing, missing },
        entries: missing === null ? null : (closing ?? 0n) - (opening ?? 0n) - missing,
        gap: each.gap_minor,
        state: [each.gap_minor ? 'GAP' : '', missing ? 'INCOMPLETE' : ''].filter(Boolean).join(' ') || 'ok',
      };
    });
  },
};

/** R13: the bank entries of the interval, and the movements that they are matched with. */
const bankEntries: Definition = {
  section: 'entries',
  columns: {
    ...{ entry: 'number', date: 'text', account: 'text', amount: 'money', text: 'text', matched: 'text' },
    ...{ difference: 'money', state: 'text' },
  },
  async rows({ tx, from, to }) {
    const found = await tx.query<EntryRow & { movements: string | null }>(listEntriesBetween(from, to));
    return found.map(({ currency, account, amount_minor: amount, ...each }) => {
      const difference = amount - each.matched_minor;
      const state = difference === 0n ? 'matched' : each.matched_minor === 0n ? 'open' : 'partly matched';
      return {
        ...{ currency, entry: each.id, date: each.booked_on, account, amount, text: each.description },
        ...{ matched: each.movements, difference, state },
      };
    });
  },
};

export const bank = [bankReconciliation, bankStatements, bankEntries];
