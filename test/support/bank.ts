import { setBankAccount } from '../../src/bank/accounts.ts';
import { type Mapping, saveMapping } from '../../src/bank/csv.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { type Ledger, openLedger } from './books.ts';
import { make } from './reports.ts';
import type { Scope } from './scope.ts';

/** A ledger with an account at a bank. */

/** Of a CSV file in German. */
export const MAPPING: Mapping = {
  date: 'Buchungstag',
  dateFormat: 'DD.MM.YYYY',
  amount: 'Betrag',
  decimal: ',',
  texts: ['Zweck'],
  entryReference: null,
  delimiter: ';',
  encoding: 'windows-1252',
};

/** Opens it, with a merchant without money. */
export async function openBank(t: Scope): Promise<{ ledger: Ledger; merchantId: number }> {
  const ledger = await openLedger(t, '2026-03-01T09:00:00Z');
  const { operator } = ledger;
  const { merchant } = await ledger.merchant(0n);
  await setBankAccount(operator, { name: 'House', currency: 'USD', own: 500 });
  await saveMapping(operator, 'house', MAPPING);
  return { ledger, merchantId: merchant.id };
}

/** The amounts of the reconciliation report, by item. */
export async function reconciled({ started }: Ledger, to = '2026-03-02'): Promise<Record<string, string>> {
  const { tables } = await make(started.service, 'R13', { from: '2026-03-01', to });
  const [table] = tables.filter(({ section }) => section === 'reconciliation');
  return Object.fromEntries((table?.rows ?? []).map(({ item, amount }) => [item, amount]));
}

/** Tops up the float of a merchant. */
export const put = (ledger: Ledger, merchantId: number, amountMinor: bigint, reference: string) =>
  topUp(ledger.operator, { merchantId, currency: 'USD', amountMinor, reference });
