import { type Reconciliation, reconcile } from '../../src/ledger/reconcile.ts';

/** Returns the checks of the books that find a difference. */
export async function differing(...args: Parameters<typeof reconcile>): Promise<Reconciliation['checks']> {
  return (await reconcile(...args)).checks.filter(({ ok }) => !ok);
}

/** Returns their names. */
export const namesOfDiffering = async (...args: Parameters<typeof reconcile>): Promise<string[]> =>
  (await differing(...args)).map(({ name }) => name);
