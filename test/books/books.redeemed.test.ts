import assert from 'node:assert/strict';
import { test } from 'node:test';
import { redeemedDays } from '../../src/books/redeemed.ts';
import { refundAtTill } from '../../src/books/refunds.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { openLedger, spend } from '../support/books.ts';
import { asOperator } from '../support/harness.ts';
import { make, rowsOf } from '../support/reports.ts';
import { close, tradedDay } from '../support/settlements.ts';

for (const buckets of [1, 3]) {
  const where = buckets === 1 ? '' : ', over buckets too';

  test(`what a merchant redeemed is summed day by day, before a close and after it${where}`, async (t) => {
    const ledger = await openLedger(t, '2026-03-01T09:00:00Z', { buckets });
    const shop = await ledger.merchant(0n);
    const left = await tradedDay({ ledger, issuer: await ledger.merchant(), shop });
    const read = async (days?: number) => {
      const merchantId = String(shop.merchant.id);
      const input = { merchantId, ...(days !== undefined && { days }) };
      return (await redeemedDays.run(asOperator(ledger.operator.service), input)).items;
    };
    const first = { day: '2026-03-01', currency: 'USD', redemptions: 2, redeemed: 100.1 };
    assert.deepEqual(await read(), [first]);
    await close(ledger);
    assert.deepEqual(await read(), [first]);

    // A refund and a correction count on the day on which they are made.
    const now = () => ({ ...shop, now: ledger.operator.service.clock() });
    await spend(now(), left, 10, 'sale 3');
    await updateRedemption(now(), { reference: 'sale 3', amountUsed: 4 });
    await refundAtTill(ledger.operator, now(), { reference: 'sale 2', amount: 0.1, refundReference: 'back' });
    const second = { day: '2026-03-02', currency: 'USD', redemptions: 1, redeemed: 3.9 };
    assert.deepEqual(await read(), [second, first]);
    assert.deepEqual(await read(1), [second]);
    await ledger.at('2026-03-03T00:20:00Z');
    await close(ledger);
    assert.deepEqual(await read(), [second, first]);
    const report = await make(ledger.operator.service, 'settlement-statement', {
      from: '2026-03-01',
      to: '2026-03-03',
    });
    const total = rowsOf(report).find((row) => row['merchantId'] === String(shop.merchant.id));
    assert.deepEqual(
      [total?.['redeemed'], total?.['reversed'], total?.['refunded']],
      ['114.10', '10.00', '0.10'],
    );
  });
}
