import assert from 'node:assert/strict';
import { test } from 'node:test';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { approve } from '../../src/settlement/approve.ts';
import { dispute } from '../../src/settlement/disputes.ts';
import { documentsOf } from '../../src/settlement/document.ts';
import { draftAll, draftSettlements } from '../../src/settlement/draft.ts';
import { pay } from '../../src/settlement/pay.ts';
import { getSettlement } from '../../src/settlement/settlements.ts';
import { linesOf, ratesOf, stepsOf } from '../../src/settlement/show.ts';
import { sell, spend } from '../support/books.ts';
import { readSheet } from '../support/print.ts';
import { close, dollars, draftOf, openScene, settledDay, terms } from '../support/settlements.ts';

test('a settlement leads from the redemptions to the payout, with the commission by its rates', async (t) => {
  const scene = await openScene(t);
  const { ledger, issuer, shop } = scene;
  const { operator } = ledger;
  const { db } = ledger.started.service;
  const merchantId = shop.merchant.id;
  await settledDay(scene);
  const [first] = await draftSettlements(operator, { merchantId });
  await approve(operator, first?.id ?? 0);
  const bank = { bankReference: 'B', valueDate: '2026-03-02', reference: 'p' };
  await pay(operator, { settlementId: first?.id ?? 0, ...bank });
  await ledger.at('2026-03-02T11:00:00Z');
  await terms(operator, merchantId, { from: '2026-03-02', commission: 1, minPayout: 500 });
  const now = ledger.started.service.clock();
  await updateRedemption({ ...shop, now }, { reference: 'sale 1', amountUsed: 0 });
  const [card] = await sell({ ...issuer, now }, 1, 200);
  assert.ok(card);
  await spend({ ...shop, now }, card, 200, 'sale 3');
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  const draft = await draftOf(scene);
  const steps = stepsOf(draft, await linesOf(db, draft));
  // 2.5 % of 60.00 and 20 % on it are given back; 1 % of 200.00 and 20 % on it are charged.
  assert.deepEqual(
    steps.filter(({ amount }) => amount !== 0n).map(({ kind, amount }) => `${kind} ${dollars(amount)}`),
    [
      ...['CARRIED 97.10', 'REDEEMED 200.00', 'EARLIER_REVERSAL -60.00', 'COMMISSION -0.50'],
      ...['COMMISSION_VAT -0.10', 'PAID_EARLIER -97.10', 'CLOSING 139.40', 'CARRIED_ON -139.40'],
    ],
  );
  const minors = steps.map(({ amount }) => amount);
  const sum = (some: readonly bigint[]) => some.reduce((total, minor) => total + minor, 0n);
  assert.equal(sum(minors.slice(0, 8)), minors[8]);
  assert.equal(sum(minors.slice(8, 11)), minors[11]);
  const { settlement } = await approve(operator, draft.id);
  const rates = (await ratesOf(db, settlement)).map(({ commission, base, fee, feeVat }) => {
    return [commission, ...[base, fee, feeVat].map(dollars)];
  });
  assert.deepEqual(rates, [
    [1, '200.00', '2.00', '0.40'],
    [2.5, '-60.00', '-1.50', '-0.30'],
  ]);
  const pages = await readSheet((await documentsOf(db, settlement))?.pdf ?? Buffer.alloc(0));
  const words = pages.map(({ text }) => text).join(' ');
  for (const part of [
    'not an invoice',
    'Commission of 1 % on USD 200.00: USD 2.00.',
    'Carried over to the next',
  ])
    assert.ok(words.includes(part), `${part} in ${words}`);
  assert.equal(settlement.openDisputes, 0);
  await dispute(operator, { settlementId: draft.id, line: null, comment: 'too little' });
  assert.equal((await getSettlement(db, draft.id)).openDisputes, 1);
});

test('the first settlement of a merchant begins on the day on which it was made', async (t) => {
  const scene = await openScene(t);
  const { ledger, issuer } = scene;
  await settledDay(scene);
  await ledger.at('2026-03-02T09:00:00Z');
  const late = await ledger.merchant(0n);
  await terms(ledger.operator, late.merchant.id, { from: '2026-03-02' });
  const now = ledger.started.service.clock();
  const [card] = await sell({ ...issuer, now }, 1, 10);
  assert.ok(card);
  await spend({ ...late, now }, card, 10, 'sale');
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  const [draft] = await draftSettlements(ledger.operator, { merchantId: late.merchant.id });
  assert.deepEqual([draft?.firstDay, draft?.lastDay], ['2026-03-02', '2026-03-02']);
});

test('all that is due is drafted, up to the last closed day, week or month of the terms', async (t) => {
  const { ledger, issuer, shop } = await openScene(t);
  const shops = { day: shop, week: await ledger.merchant(0n), month: await ledger.merchant(0n) };
  const cards = await sell(issuer, 3, 10);
  await ledger.at('2026-03-01T10:00:00Z');
  for (const [at, [period, each]] of Object.entries(shops).entries()) {
    await terms(ledger.operator, each.merchant.id, { period });
    await spend(each, cards[at] ?? assert.fail(), 10, period);
  }
  const drafted = async () => {
    await close(ledger);
    const drafts = await draftAll(ledger.operator, undefined);
    for (const draft of drafts) {
      const sold = (await linesOf(ledger.started.service.db, draft)).filter(
        ({ kind }) => kind === 'REDEMPTION',
      );
      assert.deepEqual(
        [draft.payable, ...sold.map(({ rows, amount }) => [rows, amount])],
        [970n, [1, 1_000n]],
      );
    }
    return Object.fromEntries(drafts.map(({ merchantId, lastDay }) => [merchantId, lastDay]));
  };
  const expected = (days: Readonly<Record<string, string>>) =>
    Object.fromEntries(Object.entries(days).map(([period, day]) => [idOf(period), day]));
  const idOf = (period: string) => shops[period as keyof typeof shops].merchant.id;
  // The first of March is a Sunday.
  await ledger.at('2026-03-03T00:20:00Z');
  assert.deepEqual(await drafted(), expected({ day: '2026-03-02', week: '2026-03-01' }));
  await ledger.at('2026-04-01T00:20:00Z');
  assert.deepEqual(await drafted(), expected({ day: '2026-03-31', week: '2026-03-29', month: '2026-03-31' }));
});
