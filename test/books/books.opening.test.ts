import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bankMovements } from '../../src/bank/entries.ts';
import { type Opening, openBalance } from '../../src/books/own.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { type Ledger, openLedger, proveSound, sell, spend } from '../support/books.ts';
import { cents, make, rowsOf } from '../support/reports.ts';
import { close, terms } from '../support/settlements.ts';

/** Balances that another system leaves behind. */

const OPENED = { currency: 'USD', decimals: 2, merchantId: 0, isDebit: false } as const;
type Wanted = Pick<Opening, 'account' | 'amountMinor' | 'reference'> & Partial<Opening>;
const open = ({ operator }: Ledger, wanted: Wanted) => openBalance(operator, { ...OPENED, ...wanted });

for (const buckets of [1, 3]) {
  const where = buckets === 1 ? '' : ', over buckets';

  test(`balances of another system are in the books of the first day, and are paid out${where}`, async (t) => {
    const ledger = await openLedger(t, '2026-03-02T09:00:00Z', { buckets });
    const { operator, started } = ledger;
    const shop = await ledger.merchant(10_000n);
    const merchantId = shop.merchant.id;
    const [card] = await sell(shop, 1, 25);
    assert.ok(card);
    await spend(shop, card, 10, 'sale');
    await terms(operator, merchantId, { from: '2026-03-02', commission: 0, vat: 0 });
    const owed = {
      account: 'settlement',
      merchantId,
      amountMinor: 50_000n,
      reference: 'takeover 1',
    } as const;
    const first = await open(ledger, owed);
    assert.deepEqual(await open(ledger, owed), { ...first, replayed: true });
    await assert.rejects(open(ledger, { ...owed, amountMinor: 50_001n }), { code: '94' });
    await open(ledger, { ...owed, amountMinor: 2_000n, isDebit: true, reference: 'takeover 2' });
    await open(ledger, { account: 'vat', amountMinor: 700n, reference: 'takeover 3' });
    const tooMuch = { account: 'vat', amountMinor: 701n, isDebit: true, reference: 'takeover 4' } as const;
    await assert.rejects(open(ledger, tooMuch), { code: '51' });
    await ledger.at('2026-03-03T08:00:00Z');
    assert.deepEqual(await close(ledger), ['2026-03-02']);
    await assert.rejects(open(ledger, { ...owed, reference: 'late' }), {
      code: '58',
      message: /before the first day is closed/,
    });
    const day = { from: '2026-03-02', to: '2026-03-03' };
    const trial = rowsOf(await make(started.service, 'R1', day));
    const closing = (kind: string) => cents(trial.find((row) => row['account'] === kind)?.['closing']);
    assert.deepEqual([closing('SETTLEMENT'), closing('VAT')], [49_000n, 700n]);
    const account = rowsOf(await make(started.service, 'R7', { ...day, merchantId })).at(-1);
    assert.deepEqual(
      [cents(account?.['takenOver']), cents(account?.['net']), cents(account?.['closing'])],
      [48_000n, 49_000n, 49_000n],
    );
    const [draft] = await draftSettlements(operator, { merchantId });
    await approve(operator, draft?.id ?? 0);
    assert.equal(draft?.payable, 49_000n);
    await proveSound(started.service);
    const { items } = await bankMovements.run({ service: started.service } as never, { open: true });
    assert.deepEqual(
      items.filter(({ kind }) => kind === 'OPENING').map(({ amount }) => amount),
      [7, -20, 500],
    );
  });
}
