import assert from 'node:assert/strict';
import { test } from 'node:test';
import { refundAtTill, refundRedemption } from '../../src/books/refunds.ts';
import { cashOutAtTill } from '../../src/books/vouchers.ts';
import type { Context } from '../../src/context.ts';
import { getRedemption } from '../../src/redemptions/correct.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { linesOf } from '../../src/settlement/show.ts';
import { transactions } from '../../src/transactions/transactions.ts';
import { activate } from '../../src/vouchers/activate.ts';
import { blockVoucher, cancelVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { showVoucher } from '../../src/vouchers/show.ts';
import { voidActivation } from '../../src/vouchers/void.ts';
import { atNow, type Ledger, openLedger, product, proveSound, sell, spend } from '../support/books.ts';
import { make, rowsOf } from '../support/reports.ts';
import { close, dollars, openScene, terms } from '../support/settlements.ts';

/** What a merchant gives back of a redemption comes from its settlement, and is never more than it took. */

const refund = ({ operator }: Ledger, context: Context, reference: string, amount: number, own: string) =>
  refundAtTill(operator, atNow(context), { reference, amount, refundReference: own });

const correct = (context: Context, reference: string, amountUsed: number) =>
  updateRedemption(atNow(context), { reference, amountUsed });

const leftOn = async ({ service }: Context, serial: bigint) =>
  Number((await showVoucher(service, serial)).balance) / 100;

/** What the page of a transaction offers to refund. */
const refundable = async ({ operator }: Ledger, transactionId: string) =>
  (await transactions.show.run(operator, { transactionId })).refundable;

/** How many of some requests went through; the others were refused with a code. */
async function outcomesOf(requests: readonly Promise<unknown>[]): Promise<Record<string, number>> {
  const codes = (await Promise.allSettled(requests)).map((each) =>
    each.status === 'fulfilled' ? 'ok' : (each.reason as { code: string }).code,
  );
  return Object.fromEntries([...Map.groupBy(codes, (code) => code)].map(([code, all]) => [code, all.length]));
}

for (const buckets of [1, 3]) {
  const where = buckets === 1 ? '' : ', also over buckets';

  test(`several refunds and a correction give back at most what was taken${where}`, async (t) => {
    const ledger = await openLedger(t, '2026-03-02T09:00:00Z', { buckets });
    const [shop, other] = [await ledger.merchant(), await ledger.merchant()];
    const [card, raced] = await sell(shop, 2, 100);
    const { transactionId } = await spend(shop, card, 20, 'sale');
    const first = await refund(ledger, shop, 'sale', 5, 'back 1');
    assert.deepEqual(await refund(ledger, shop, 'sale', 5, 'back 1'), { ...first, replayed: true });
    // The operator and the portal use the references of the merchant.
    const redemption = await getRedemption(ledger.operator, transactionId);
    const same = { amountMinor: 500n, reference: 'back 1' };
    assert.deepEqual(await refundRedemption(ledger.operator, redemption, same), { ...first, replayed: true });
    await assert.rejects(refund(ledger, shop, 'sale', 6, 'back 1'), { code: '94' });
    // It has a reference, so its id does not name it.
    await assert.rejects(refund(ledger, shop, transactionId, 5, 'back 2'), { code: '60' });
    await refund(ledger, shop, 'sale', 5, 'back 2');
    assert.equal(await leftOn(shop, card.serial), 90);
    assert.equal(await refundable(ledger, transactionId), 10);
    assert.equal(await refundable(ledger, first.transactionId), null);
    await assert.rejects(refund(ledger, shop, 'sale', 10.01, 'back 3'), { code: '51' });
    for (const amount of [0, -1, 0.001])
      await assert.rejects(refund(ledger, shop, 'sale', amount, 'back 3'), { code: '13' });
    await assert.rejects(correct(shop, 'sale', 9.99), { code: '51' });
    await assert.rejects(correct(shop, 'sale', 0), { code: '51' });
    await correct(shop, 'sale', 12);
    await assert.rejects(refund(ledger, shop, 'sale', 2.01, 'back 3'), { code: '51' });
    assert.equal(await refundable(ledger, transactionId), 2);
    const { correctedBy } = await transactions.show.run(ledger.operator, { transactionId });
    const correction = await transactions.show.run(ledger.operator, { transactionId: String(correctedBy) });
    assert.deepEqual([correction.originalTransactionId, correction.amount], [transactionId, 12]);
    await refund(ledger, shop, 'sale', 2, 'back 3');
    assert.equal(await refundable(ledger, transactionId), 0);
    assert.equal(await leftOn(shop, card.serial), 100);
    await assert.rejects(refund(ledger, other, 'sale', 1, 'back 4'), { code: '60' });

    await spend(shop, raced, 50, 'raced');
    const many = Array.from({ length: 20 }, (_, copy) => refund(ledger, shop, 'raced', 9, `part ${copy}`));
    assert.deepEqual(await outcomesOf(many), { ok: 5, 51: 15 });
    const [next] = await sell(shop, 1, 100);
    await spend(shop, next, 50, 'contested');
    const both = await outcomesOf([
      ...Array.from({ length: 10 }, (_, copy) => refund(ledger, shop, 'contested', 30, `share ${copy}`)),
      ...Array.from({ length: 10 }, () => correct(shop, 'contested', 0)),
    ]);
    assert.equal(both['ok'], 1, JSON.stringify(both));
    assert.ok([80, 100].includes(await leftOn(shop, next.serial)));
    await proveSound(ledger.started.service);
  });

  test(`a refund goes to the successor of a voucher, and to none that is canceled${where}`, async (t) => {
    const ledger = await openLedger(t, '2026-03-02T09:00:00Z', { buckets });
    const { operator } = ledger;
    const shop = await ledger.merchant();
    const productCode = await product(operator, 'SHORT', 'operator');
    const [lost, gone, blocked] = await sell(shop, 3, 100, { productCode });
    const ofLost = await spend(shop, lost, 30, 'lost');
    const ofGone = await spend(shop, gone, 30, 'gone');
    await spend(shop, blocked, 30, 'blocked');
    const second = await replaceVoucher(operator, lost.serial);
    const third = await replaceVoucher(operator, second);
    await refund(ledger, shop, 'lost', 10, 'back 1');
    assert.deepEqual([await leftOn(shop, third), await leftOn(shop, second)], [80, 0]);
    await correct(shop, 'lost', 25);
    assert.equal(await leftOn(shop, third), 85);
    await assert.rejects(refund(ledger, shop, 'lost', 15.01, 'back 2'), { code: '51' });
    assert.equal(await refundable(ledger, ofLost.transactionId), 15);
    await cancelVoucher(operator, gone.serial);
    await assert.rejects(refund(ledger, shop, 'gone', 10, 'back 2'), { code: '44' });
    assert.equal(await refundable(ledger, ofGone.transactionId), 0);
    await blockVoucher(operator, blocked.serial);
    await refund(ledger, shop, 'blocked', 10, 'back 2');
    // What returns to an expired voucher expires again.
    await ledger.at('2026-03-06T09:00:00Z');
    await refund(ledger, shop, 'blocked', 5, 'back 3');
    assert.equal(await leftOn(shop, blocked.serial), 85);
    await ledger.close();
    assert.equal(await leftOn(shop, blocked.serial), 0);
    await proveSound(ledger.started.service);
  });
}

test('voided activations, cash-outs and refunds are in the books and the settlement', async (t) => {
  const scene = await openScene(t);
  const { ledger, issuer, shop } = scene;
  const { operator } = ledger;
  await terms(operator, shop.merchant.id, { commission: 10, vat: 19 });
  await terms(operator, shop.merchant.id, { from: '2026-03-02', commission: 1, vat: 7 });
  const [card, rest] = await sell(issuer, 2, 100);
  await spend(shop, card, 100, 'sale');
  await ledger.at('2026-03-02T00:20:00Z');
  await close(ledger);
  await ledger.at('2026-03-02T11:00:00Z');
  // The commission that goes back with a refund is that of the day of the redemption.
  await refund(ledger, shop, 'sale', 30, 'back 1');
  await refund(ledger, shop, 'sale', 20, 'back 2');
  await ledger.sql("update scrip.products set cash_out_below_minor = 1500 where code = 'DEFAULT'");
  await spend(shop, rest, 90, 'most');
  await cashOutAtTill(operator, atNow(shop), { ...rest, reference: 'cash 1' });
  const [mistake] = await sell(issuer, 1, undefined);
  await activate(atNow(issuer), { voucher: mistake, value: 40, reference: 'sold 1' });
  await voidActivation(operator, atNow(issuer), 'sold 1');
  await ledger.at('2026-03-03T00:20:00Z');
  await close(ledger);
  await proveSound(ledger.started.service);

  const days = { from: '2026-03-02', to: '2026-03-03' };
  const { service } = ledger.started;
  const liability = rowsOf(await make(service, 'R2', days)).at(-1) ?? {};
  assert.deepEqual(
    ['refunded', 'redeemed', 'cashedOut', 'voided'].map((name) => liability[name]),
    ['50.00', '90.00', '10.00', '40.00'],
  );
  const ofShop = { ...days, merchantId: shop.merchant.id };
  const statement = rowsOf(await make(service, 'R7', ofShop)).at(-1) ?? {};
  // 90.00 at 1 %, less 50.00 at 10 %, and the tax on each.
  assert.deepEqual(
    ['redeemed', 'refunded', 'cashedOut', 'commission', 'vat'].map((name) => statement[name]),
    ['90.00', '50.00', '10.00', '-4.10', '-0.89'],
  );
  const [draft] = await draftSettlements(operator, { merchantId: shop.merchant.id });
  assert.ok(draft);
  assert.deepEqual(
    (await linesOf(service.db, draft)).map(({ kind, amount }) => `${kind} ${dollars(amount)}`).sort(),
    [
      ...['CASH_OUT 10.00', 'FEE -10.00', 'FEE_REVERSAL 4.10', 'FEE_VAT -1.90', 'FEE_VAT_REVERSAL 0.89'],
      ...['REDEMPTION 190.00', 'REFUND -50.00'],
    ],
  );
  assert.equal(dollars(draft.payable), '143.09');
});
