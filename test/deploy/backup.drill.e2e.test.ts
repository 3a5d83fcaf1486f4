import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Installation } from '../support/installation.ts';
import { openShop } from '../support/shop.ts';
import { until } from '../support/until.ts';

/** A machine is lost under load, and the restore reports exactly what it lacks. */

test('a machine lost under load is restored without a gap up to the reported time', async (t) => {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_ARCHIVE_DIR'] = installation.at('archive');
  const shop = await openShop(installation, await installation.serve());
  const card = shop.cards[0] ?? assert.fail();
  /** The references that were answered, in order. */
  const sold: string[] = [];
  const sell = async () => {
    for (;;) {
      const reference = `sale-${sold.length + 1}`;
      const answer = await shop.redeem(card, reference).catch(() => undefined);
      // The machine is lost, and the outcome of this sale unknown.
      if (!answer) return;
      assert.equal(answer.statusCode, '00');
      sold.push(reference);
    }
  };
  const selling = sell();
  await until('the till sells', () => sold.length >= 20);
  // Sales go on while the command ends: only those before it must be in the backup.
  const inBackup = sold.length;
  await installation.json`backup create ${installation.at('backups')}`;
  const before = sold.length;
  await until('the till sells more', () => sold.length >= before + 50);
  await installation.lose();
  await selling;

  const { lastTransactionAt } = await installation.json('restore', installation.at('backups'));
  assert.equal((await installation.json('reconcile')).ok, true);
  await installation.serve();
  const rows = await installation.query<{ reference: string; at: Date }>(
    "select reference, occurred_at as at from scrip.journal where kind = 'REDEMPTION' order by id",
  );

  // The restored sales are the first ones, without a gap.
  const restored = rows.map(({ reference }) => reference);
  assert.ok(restored.length >= inBackup, `${restored.length} of ${sold.length}, backed up ${inBackup}`);
  assert.deepEqual(restored.slice(0, sold.length), sold.slice(0, restored.length));
  assert.ok(restored.length <= sold.length + 1);
  for (const { at } of rows) assert.ok(at <= new Date(lastTransactionAt));
  t.diagnostic(`${sold.length - restored.length} of ${sold.length} redemptions were lost`);
});
