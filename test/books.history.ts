import type { TestContext } from 'node:test';
import { correctTopUp, getTopUp, refundFloat } from '../src/books/floats.ts';
import { escheatUnclaimed, transferOwn } from '../src/books/own.ts';
import { correctRedemption, getRedemption } from '../src/books/redemptions.ts';
import { adjustVoucher, cashOut } from '../src/books/vouchers.ts';
import type { Operator } from '../src/context.ts';
import { topUp } from '../src/merchants/floats.ts';
import { extendVoucher, replaceVoucher } from '../src/vouchers/operate.ts';
import { type Ledger, openLedger, product, sell, spend } from './books.ts';

/** Four days in which everything happens that the books know of, in round amounts. */

const USD = { currency: 'USD', decimals: 2 } as const;

const because = (operator: Operator): Operator => ({
  ...operator,
  actor: { ...operator.actor, reason: 'as the customer showed' },
});

export async function playDays(t: TestContext): Promise<{ ledger: Ledger; shop: number; cafe: number }> {
  const ledger = await openLedger(t, '2026-03-02T09:00:00Z');
  const { operator } = ledger;
  const shop = await ledger.merchant(1_000_000n);
  const cafe = await ledger.merchant(0n);
  for (const policy of ['operator', 'issuer', 'unclaimed'] as const)
    await product(operator, policy.toUpperCase(), policy);

  // 2 March: 5 vouchers of 100.00 that last, and one of 50.00 of each product, which expire on 4 March.
  const [one, two, three, four, five] = await sell(shop, 5, 100);
  const short = [];
  for (const productCode of ['OPERATOR', 'ISSUER', 'UNCLAIMED'])
    short.push(...(await sell(shop, 2, 50, { productCode })));
  if (!(one && two && three && four && five)) throw new Error('too few vouchers were sold');
  await spend(shop, one, 30, 'a');
  const atCafe = await spend(cafe, two, 40, 'b');

  // 3 March: a correction, a refund, a wrong top-up, adjustments, a cash-out, a replacement.
  await ledger.at('2026-03-03T12:00:00Z');
  const redemption = await getRedemption(operator, atCafe.transactionId);
  await correctRedemption(because(operator), redemption, 2_500n);
  const wrong = { merchantId: shop.merchant.id, currency: 'USD', amountMinor: 7_700n, reference: 'typo' };
  const { transactionId } = await topUp(operator, wrong);
  const fix = { topUp: await getTopUp(operator, transactionId), amountMinor: 7_000n, reference: 'fix' };
  await correctTopUp(operator, fix);
  const back = { merchantId: shop.merchant.id, ...USD, amountMinor: 10_000n, reference: 'back' };
  await refundFloat(operator, back);
  const up = { serialNumber: three.serial, deltaMinor: 500n, reference: 'up' };
  await adjustVoucher(because(operator), up);
  const down = { serialNumber: four.serial, deltaMinor: -200n, reference: 'down' };
  await adjustVoucher(because(operator), down);
  const cash = { serialNumber: one.serial, amountMinor: null, reference: 'cash' };
  await cashOut(operator, { ...cash, merchantId: cafe.merchant.id });
  await replaceVoucher(operator, five.serial);

  // 5 March: what expired on the evening of the 4th was swept; one of each is given back.
  await ledger.at('2026-03-05T08:00:00Z');
  await ledger.close();
  const until = new Date('2026-06-30T23:59:59.999Z');
  for (const { serial } of short.filter((_, at) => at % 2 === 0))
    await extendVoucher(operator, serial, until);
  await escheatUnclaimed(operator, { ...USD, amountMinor: 2_000n, reference: 'state' });
  await transferOwn(operator, { ...USD, account: 'breakage', amountMinor: 1_500n, reference: 'out' });
  await transferOwn(operator, { ...USD, account: 'goodwill', amountMinor: 300n, reference: 'in' });
  await ledger.at('2026-03-06T08:00:00Z');
  await ledger.close();
  return { ledger, shop: shop.merchant.id, cafe: cafe.merchant.id };
}
