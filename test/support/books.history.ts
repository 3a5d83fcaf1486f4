import { escheatUnclaimed } from '../../src/books/escheat.ts';
import { correctTopUp, getTopUp, refundFloat } from '../../src/books/floats.ts';
import { transferOwn } from '../../src/books/own.ts';
import { adjustVoucher, cashOut } from '../../src/books/vouchers.ts';
import type { Operator } from '../../src/context.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { actFor } from '../../src/merchants/merchants.ts';
import { correctRedemption, getRedemption } from '../../src/redemptions/correct.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { pay } from '../../src/settlement/pay.ts';
import { extendVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { type Ledger, openLedger, product, type Sold, sell, spend } from './books.ts';
import type { Scope } from './scope.ts';
import { close, terms } from './settlements.ts';

/** Days with every kind of entry of the books, in round amounts. */

const USD = { currency: 'USD' } as const;

export const because = (operator: Operator): Operator => ({
  ...operator,
  actor: { ...operator.actor, reason: 'as the customer showed' },
});

export type Played = {
  readonly ledger: Ledger;
  readonly shop: number;
  readonly cafe: number;
  /** Of the five vouchers of 100.00, the second, third and fourth. */
  readonly cards: readonly [Sold, Sold, Sold];
};

/** The first four days of March. */
export async function playDays(t: Scope): Promise<Played> {
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

  // 5 March: the vouchers that expired on the 4th were swept; one of each product is reinstated.
  await ledger.at('2026-03-05T08:00:00Z');
  await ledger.close();
  const until = new Date('2026-06-30T23:59:59.999Z');
  for (const { serial } of short.filter((_, at) => at % 2 === 0))
    await extendVoucher(operator, serial, until);
  const expired = { expiredBefore: new Date('2026-03-05T00:00:00Z') };
  await escheatUnclaimed(operator, { ...USD, of: expired, amountMinor: 5_000n, reference: 'state' });
  await transferOwn(operator, { ...USD, account: 'breakage', amountMinor: 1_500n, reference: 'out' });
  await transferOwn(operator, { ...USD, account: 'goodwill', amountMinor: 300n, reference: 'in' });
  await ledger.at('2026-03-06T08:00:00Z');
  await ledger.close();
  return { ledger, shop: shop.merchant.id, cafe: cafe.merchant.id, cards: [two, three, four] };
}

/** The rest of March: the cafe pays commission, and has two settlements. */
export async function playMonth(t: Scope): Promise<Played & { settlements: number[] }> {
  const played = await playDays(t);
  const { ledger, cafe: merchantId, cards } = played;
  const { operator } = ledger;
  const [two, three, four] = cards;
  const cafe = await actFor(ledger.started.service, merchantId);
  if (!cafe) throw new Error('there is no cafe');
  await terms(operator, merchantId, { from: '2026-03-06', vat: 19, period: 'month' });
  await ledger.at('2026-03-09T12:00:00Z');
  await spend(cafe, three, 80, 'c');
  const { transactionId } = await spend(cafe, four, 33.3, 'd');

  await ledger.at('2026-03-16T09:00:00Z');
  await close(ledger);
  const settlements: number[] = [];
  const settle = async (lastDay: string) => {
    const [draft] = await draftSettlements(operator, { merchantId, lastDay });
    const settlementId = Number(draft?.id);
    await approve(operator, settlementId);
    settlements.push(settlementId);
    return settlementId;
  };
  const settlementId = await settle('2026-03-15');
  await ledger.at('2026-03-17T09:00:00Z');
  const bank = { bankReference: 'B 4711', valueDate: '2026-03-17' };
  await pay(operator, { settlementId, reference: 'payout', ...bank });

  await ledger.at('2026-03-20T12:00:00Z');
  const redemption = await getRedemption(operator, transactionId);
  await correctRedemption(because(operator), redemption, 3_000n);
  await ledger.at('2026-03-25T12:00:00Z');
  await spend(cafe, two, 20, 'e');
  await ledger.at('2026-04-01T00:20:00Z');
  await close(ledger);
  await settle('2026-03-31');
  return { ...played, settlements };
}
