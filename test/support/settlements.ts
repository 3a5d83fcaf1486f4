import assert from 'node:assert/strict';
import type { Context, Operator } from '../../src/context.ts';
import { toText } from '../../src/money.ts';
import { draftSettlements } from '../../src/settlement/draft.ts';
import { DAY_ENDS } from '../../src/settlement/fees.ts';
import type { Settlement } from '../../src/settlement/settlements.ts';
import { makeTerms } from '../../src/settlement/terms.ts';
import { type Ledger, openLedger, type Sold, sell, spend } from './books.ts';
import type { Scope } from './scope.ts';

/** A merchant that issues vouchers, and a shop that redeems them and gets settlements. */
export type Scene = { ledger: Ledger; issuer: Context; shop: Context };

export async function openScene(t: Scope): Promise<Scene> {
  const ledger = await openLedger(t, '2026-03-01T09:00:00Z');
  const issuer = await ledger.merchant();
  const shop = await ledger.merchant(0n);
  return { ledger, issuer, shop };
}

export async function terms(operator: Operator, merchantId: number, more: object = {}): Promise<void> {
  const period = {
    period: 'day',
    delayDays: 3,
    payee: 'House bank',
    iban: 'DE89370400440532013000',
  } as const;
  const rates = { from: '2026-03-01', commission: 2.5, vat: 20 };
  await makeTerms(operator, { merchantId: String(merchantId), ...rates, ...period, ...more });
}

/** Returns an amount of a currency with two decimals as text. */
export const dollars = (minor: bigint) => toText({ minor, decimals: 2 });

/** Closes the days that are due, without a failed check. */
export async function close(ledger: Ledger): Promise<string[]> {
  const { closed } = await ledger.close({ dayEnds: DAY_ENDS });
  assert.deepEqual(
    closed.flatMap(({ failed }) => failed),
    [],
  );
  return closed.map(({ day }) => day);
}

/**
 * A day that has ended, on which the shop redeemed 100.10.
 * @returns a voucher with a balance
 */
export async function tradedDay({ ledger, issuer, shop }: Scene): Promise<Sold> {
  await terms(ledger.operator, shop.merchant.id);
  const [one, other] = await sell(issuer, 2, 60);
  assert.ok(one && other);
  await ledger.at('2026-03-01T10:00:00Z');
  await spend(shop, one, 60, 'sale 1');
  await spend(shop, other, 40.1, 'sale 2');
  await ledger.at('2026-03-02T00:20:00Z');
  return other;
}

/** The same day, closed. */
export async function settledDay(scene: Scene): Promise<void> {
  await tradedDay(scene);
  assert.deepEqual(await close(scene.ledger), ['2026-03-01']);
}

/** Drafts the settlement of the shop. */
export async function draftOf({ ledger, shop }: Scene): Promise<Settlement> {
  const [draft] = await draftSettlements(ledger.operator, { merchantId: shop.merchant.id });
  return draft ?? assert.fail('nothing was drafted');
}

/** Drafts the settlement of a day. */
export async function draftedDay(scene: Scene): Promise<Settlement> {
  await settledDay(scene);
  return draftOf(scene);
}
