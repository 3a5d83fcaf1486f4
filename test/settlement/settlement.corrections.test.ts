import assert from 'node:assert/strict';
import { test } from 'node:test';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { linesOf } from '../../src/settlement/show.ts';
import { proveSound, sell, spend } from '../support/books.ts';
import { make, rowsOf } from '../support/reports.ts';
import { close, dollars, openScene, type Scene, terms } from '../support/settlements.ts';

/** Commission on a correction: at the terms of the redemption, whatever the terms are today. */

type Movement = { kind: string; amount: string };

async function feesOf({ ledger }: Scene, day: string): Promise<string[]> {
  const rows = await ledger.sql<Movement>(`
    select kind::text, amount_minor::text as amount from scrip.journal
    where kind::text like 'FEE%' and occurred_at = '${day}T23:59:59.999Z' order by kind`);
  return rows.map(({ kind, amount }) => `${kind} ${amount}`);
}

/** Redeems 100.00 three times under 10 % of commission and 19 % of VAT. The next day it is 1 % and 7 %. */
async function openChanged(t: Parameters<typeof openScene>[0]): Promise<Scene> {
  const scene = await openScene(t);
  const { ledger, issuer, shop } = scene;
  const { id } = shop.merchant;
  await terms(ledger.operator, id, { commission: 10, vat: 19 });
  await terms(ledger.operator, id, { from: '2026-03-02', commission: 1, vat: 7 });
  const cards = await sell(issuer, 3, 100);
  for (const [at, card] of cards.entries()) await spend(shop, card, 100, `sale ${at}`);
  await ledger.at('2026-03-02T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-01']);
  assert.deepEqual(await feesOf(scene, '2026-03-01'), ['FEE 3000', 'FEE_VAT 570']);
  await ledger.at('2026-03-02T11:00:00Z');
  return scene;
}

async function correct({ ledger, shop }: Scene, reference: string, amountUsed: number): Promise<void> {
  const asking = { ...shop, now: ledger.started.service.clock() };
  const outcome = await updateRedemption(asking, { reference, amountUsed });
  assert.ok(typeof outcome === 'object', String(outcome));
}

const linesOfDraft = async ({ ledger, shop }: Scene) => {
  const [draft] = await draftSettlements(ledger.operator, { merchantId: shop.merchant.id });
  assert.ok(draft);
  const lines = await linesOf(ledger.started.service.db, draft);
  return {
    payable: dollars(draft.payable),
    lines: lines.map((line) => `${line.kind} ${dollars(line.amount)}`),
  };
};

test('a reversal under new terms gives back the commission and the VAT that were taken', async (t) => {
  const scene = await openChanged(t);
  const { ledger } = scene;
  for (const sale of ['sale 0', 'sale 1', 'sale 2']) await correct(scene, sale, 0);
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  assert.deepEqual(await feesOf(scene, '2026-03-02'), ['FEE_REVERSAL 3000', 'FEE_VAT_REVERSAL 570']);
  const { payable, lines } = await linesOfDraft(scene);
  assert.equal(payable, '0.00');
  assert.deepEqual(lines, [
    'REDEMPTION 300.00',
    'REDEMPTION_REVERSAL -300.00',
    'FEE -30.00',
    'FEE_REVERSAL 30.00',
    'FEE_VAT -5.70',
    'FEE_VAT_REVERSAL 5.70',
  ]);
  await proveSound(ledger.started.service);
});

test('a redemption that takes the place of an earlier one keeps its terms', async (t) => {
  const scene = await openChanged(t);
  const { ledger, issuer, shop } = scene;
  // 10.00 less of the first day: 1.00 and 0.19 back. 50.00 of today: 0.50 and 0.04.
  await correct(scene, 'sale 0', 90);
  const [card] = await sell(issuer, 1, 50);
  assert.ok(card);
  await spend(shop, card, 50, 'today');
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  assert.deepEqual(await feesOf(scene, '2026-03-02'), ['FEE_REVERSAL 50', 'FEE_VAT_REVERSAL 15']);
  // A correction on the day of the redemption is one of that day.
  await ledger.at('2026-03-03T11:00:00Z');
  const [other] = await sell(issuer, 1, 50);
  assert.ok(other);
  await spend(shop, other, 50, 'tomorrow');
  await correct(scene, 'tomorrow', 30);
  await correct(scene, 'sale 1', 0);
  await ledger.at('2026-03-04T00:20:00Z');
  await close(ledger);
  assert.deepEqual(await feesOf(scene, '2026-03-03'), ['FEE_REVERSAL 970', 'FEE_VAT_REVERSAL 188']);
  const report = await make(ledger.started.service, 'R7', { from: '2026-03-01', to: '2026-03-04' });
  const [row] = rowsOf(report).filter(({ product }) => product === 'DEFAULT');
  assert.deepEqual([row?.['commission'], row?.['vat']], ['19.80', '3.67']);
  await proveSound(ledger.started.service);
});

test('vouchers of two issuers that bring the same amount are both charged', async (t) => {
  const scene = await openScene(t);
  const { ledger, issuer, shop } = scene;
  await terms(ledger.operator, shop.merchant.id, { commission: 10, vat: 19 });
  for (const seller of [issuer, await ledger.merchant()]) {
    const [card] = await sell(seller, 1, 100);
    assert.ok(card);
    await spend(shop, card, 100, `sale of ${seller.merchant.id}`);
  }
  await ledger.at('2026-03-02T00:20:00Z');
  assert.deepEqual(await close(ledger), ['2026-03-01']);
  assert.deepEqual(await feesOf(scene, '2026-03-01'), ['FEE 2000', 'FEE_VAT 380']);
});
