import assert from 'node:assert/strict';
import { test } from 'node:test';
import { basic } from '../support/harness.ts';
import { Installation } from '../support/installation.ts';
import { asOwner } from '../support/owner.ts';
import { typed } from '../support/scrip.ts';
import { until } from '../support/until.ts';

/** A machine is lost under load, and the restore reports exactly what it lacks. */

/** A till that redeems one cent at a time, and records the references that were answered, in order. */
class Seller {
  readonly sold: string[] = [];
  readonly #ended: Promise<void>;
  #goesOn = true;

  constructor(url: string, authorization: string, voucher: { code: string; pin: string }) {
    this.#ended = this.#run(url, authorization, voucher);
  }

  async #run(url: string, authorization: string, voucher: { code: string; pin: string }): Promise<void> {
    while (this.#goesOn) {
      const reference = `sale-${this.sold.length + 1}`;
      const response = await fetch(`${url}/api/v2/redeem`, {
        method: 'POST',
        headers: { authorization, 'content-type': 'application/json' },
        body: JSON.stringify({ voucherCode: voucher.code, pin: voucher.pin, amount: 0.01, reference }),
      }).catch(() => undefined);
      // The machine is lost, and the outcome of this sale unknown.
      if (!response) return;
      const { statusCode } = (await response.json()) as { statusCode: string };
      assert.equal(statusCode, '00');
      this.sold.push(reference);
    }
  }

  async until(count: number): Promise<void> {
    await until('the till sells', () => this.sold.length >= count);
  }

  async stop(): Promise<void> {
    this.#goesOn = false;
    await this.#ended;
  }
}

test('a machine lost under load is restored without a gap up to the reported time', async (t) => {
  const installation = await Installation.make(t);
  installation.settings['SCRIP_ARCHIVE_DIR'] = installation.at('archive');
  const url = await installation.serve();
  const merchant = await installation.json`merchant create --name Kiosk --float 1000`;
  const authorization = basic(merchant.keyId, merchant.secret);
  const ordered = await fetch(`${url}/api/v2/vouchers`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ reference: 'stock', quantity: 1, value: 500 }),
  });
  const { data } = (await ordered.json()) as { data: { vouchers: [{ code: string; pin: string }] } };
  const seller = new Seller(url, authorization, data.vouchers[0]);
  t.after(() => seller.stop());

  await seller.until(20);
  // Sales go on while the command ends: only those before it must be in the backup.
  const inBackup = seller.sold.length;
  await installation.json`backup create ${installation.at('backups')}`;
  await seller.until(seller.sold.length + 50);
  await installation.lose();
  await seller.stop();

  const { lastTransactionAt } = await installation.json('restore', installation.at('backups'));
  assert.equal((await installation.json('reconcile')).ok, true);
  await installation.serve();
  const { out } = await installation.run(typed`db url`);
  const rows = await asOwner<{ reference: string; at: Date }>(
    out.trim(),
    `select reference, occurred_at as at from scrip.journal where kind = 'REDEMPTION' order by id`,
  );

  // The restored sales are the first ones, without a gap.
  const restored = rows.map(({ reference }) => reference);
  assert.ok(
    restored.length >= inBackup,
    `${restored.length} of ${seller.sold.length}, backed up ${inBackup}`,
  );
  assert.deepEqual(restored.slice(0, seller.sold.length), seller.sold.slice(0, restored.length));
  assert.ok(restored.length <= seller.sold.length + 1);
  for (const { at } of rows) assert.ok(at <= new Date(lastTransactionAt));
  t.diagnostic(`${seller.sold.length - restored.length} of ${seller.sold.length} redemptions were lost`);
});
