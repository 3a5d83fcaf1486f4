import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { importVouchers } from '../../src/batches/import.ts';
import { listDays } from '../../src/books/days.ts';
import { escheatUnclaimed } from '../../src/books/escheat.ts';
import { correctTopUp, getTopUp, refundFloat } from '../../src/books/floats.ts';
import { setGlAccount } from '../../src/books/gl.ts';
import { transferOwn } from '../../src/books/own.ts';
import { refundAtTill } from '../../src/books/refunds.ts';
import { makeReport, REPORTS } from '../../src/books/reports/reports.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import { adjustVoucher, cashOut } from '../../src/books/vouchers.ts';
import type { Context } from '../../src/context.ts';
import { ACCOUNT_KINDS } from '../../src/ledger/kinds.ts';
import { topUp } from '../../src/merchants/floats.ts';
import type { Caller } from '../../src/operation.ts';
import { createProduct, productDefaults, products } from '../../src/products/products.ts';
import { updateRedemption } from '../../src/redemptions/update.ts';
import { Refusal } from '../../src/refusal.ts';
import { PERCENT_PPM } from '../../src/schema.ts';
import { approve } from '../../src/settlement/approve.ts';
import { draftAll } from '../../src/settlement/draft.ts';
import { pay, returned } from '../../src/settlement/pay.ts';
import { blockVoucher, cancelVoucher, extendVoucher, replaceVoucher } from '../../src/vouchers/operate.ts';
import { type Ledger, openLedger, type Sold, sell, spend } from './books.ts';
import { chance } from './chance.ts';
import { fileOf } from './folder.ts';
import { codesOf, csvOf } from './imports.ts';
import { close, terms } from './settlements.ts';

/** Random operations over days: a time zone whose clocks change, currencies, late closes, settlements. */

const OPERATIONS = 140;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
/** The clocks of the zone change on 29 March. */
export const START = new Date('2026-03-26T06:00:00Z');
export const ZONE = 'Europe/Rome';
export const FIRST_ACCOUNT = 1_000;

export type World = {
  readonly t: TestContext;
  readonly ledger: Ledger;
  readonly operator: Caller;
  readonly random: () => number;
  readonly shops: readonly Context[];
  readonly cards: { readonly sold: Sold; readonly currency: string }[];
  readonly references: { readonly shop: Context; readonly reference: string }[];
  readonly topUps: string[];
  step: number;
};

const PRODUCTS = [
  ['USD-LONG', 'USD', 2, 'operator', 400],
  ['USD-SHORT', 'USD', 2, 'operator', 2],
  ['EUR-SHORT', 'EUR', 2, 'issuer', 2],
  ['JPY-SHORT', 'JPY', 0, 'unclaimed', 3],
] as const;

/** The terms of the first two shops. */
const COMMISSIONS = [
  { from: '2026-03-26', commissionPpm: 22_345, vatPpm: 190_000 },
  { from: '2026-04-01', commissionPpm: 105_000, vatPpm: 70_000 },
] as const;

/** The terms of a shop on a day; undefined if it has none. */
export const commissionOn = ({ shops }: World, merchantId: number, day: string) =>
  shops.findIndex(({ merchant }) => merchant.id === merchantId) < 2
    ? COMMISSIONS.findLast(({ from }) => from <= day)
    : undefined;

export async function openWorld(t: TestContext, seed: number): Promise<World> {
  const ledger = await openLedger(t, START.toISOString());
  await ledger.sql(`update scrip.books set zone = '${ZONE}'`);
  const random = chance(seed);
  const base = ledger.operator;
  const operator = { ...base, actor: { ...base.actor, reason: 'a test' } };
  for (const [code, currency, decimals, expiryPolicy, validityDays] of PRODUCTS) {
    const own = { ...productDefaults(currency, decimals), expiryPolicy, validityDays };
    await createProduct(operator, { ...own, minValue: 1n, code, name: code });
  }
  const shops: Context[] = [];
  for (const at of [0, 1, 2]) {
    const shop = await ledger.merchant(0n);
    shops.push(shop);
    const merchantId = shop.merchant.id;
    for (const currency of ['USD', 'EUR', 'JPY'])
      await topUp(operator, { merchantId, currency, amountMinor: 500_000n, reference: `first ${currency}` });
    for (const { from, commissionPpm, vatPpm } of at < 2 ? COMMISSIONS : []) {
      const rates = { commission: commissionPpm / PERCENT_PPM, vat: vatPpm / PERCENT_PPM };
      await terms(operator, merchantId, { from, ...rates, delayDays: 0 });
    }
  }
  for (const [at, kind] of ACCOUNT_KINDS.entries())
    await setGlAccount(operator, { kind, number: String(FIRST_ACCOUNT + at) });
  return { t, ledger, operator, random, shops, cards: [], references: [], topUps: [], step: 0 };
}

/** An operation has nothing to work on yet. */
class Nothing extends Error {}

function pick<Each>(random: () => number, list: readonly Each[]): Each {
  if (list.length === 0) throw new Nothing();
  return list[Math.floor(random() * list.length)] as Each;
}

type Act = (world: World) => Promise<unknown>;

/** The operations. A refused one has no effect. */
const ACTS: readonly Act[] = [
  async ({ random, shops, cards }) => {
    const [productCode, currency] = pick(random, PRODUCTS);
    const value = 1 + Math.floor(random() * 200);
    const made = await sell(pick(random, shops), 1 + Math.floor(random() * 3), value, { productCode });
    cards.push(...made.map((sold) => ({ sold, currency })));
  },
  ...Array.from(
    { length: 5 },
    (): Act =>
      async ({ random, shops, cards, references, ...world }) => {
        const card = pick(random, cards);
        const shop = pick(random, shops);
        const reference = `sale ${world.step}`;
        await spend(shop, card.sold, 1 + Math.floor(random() * 40), reference);
        references.push({ shop, reference });
      },
  ),
  ...Array.from(
    { length: 3 },
    (): Act =>
      async ({ random, references, ledger }) => {
        const { shop, reference } = pick(random, references);
        const amountUsed = Math.floor(random() * 30);
        const now = ledger.started.service.clock();
        await updateRedemption({ ...shop, now }, { reference, amountUsed });
      },
  ),
  ...Array.from(
    { length: 2 },
    (): Act =>
      async ({ random, references, operator, step, ledger }) => {
        const { shop, reference } = pick(random, references);
        const amount = 1 + Math.floor(random() * 8);
        const now = ledger.started.service.clock();
        await refundAtTill(
          operator,
          { ...shop, now },
          { reference, amount, refundReference: `back ${step}` },
        );
      },
  ),
  async ({ random, shops, operator, topUps, step }) => {
    const amountMinor = 1n + BigInt(Math.floor(random() * 90_000));
    const wanted = { merchantId: pick(random, shops).merchant.id, currency: pick(random, ['USD', 'JPY']) };
    const { transactionId } = await topUp(operator, { ...wanted, amountMinor, reference: `top-up ${step}` });
    topUps.push(transactionId);
  },
  async ({ random, operator, topUps, step }) => {
    const wrong = await getTopUp(operator, pick(random, topUps));
    await correctTopUp(operator, { topUp: wrong, amountMinor: 1n, reference: `correction ${step}` });
  },
  async ({ random, shops, operator, step }) => {
    const merchantId = pick(random, shops).merchant.id;
    const usd = { currency: 'USD', amountMinor: 777n };
    await refundFloat(operator, { merchantId, ...usd, reference: `refund ${step}` });
  },
  async ({ random, cards, operator, step }) => {
    const deltaMinor = BigInt(Math.floor(random() * 400)) - 150n;
    const serialNumber = pick(random, cards).sold.serial;
    await adjustVoucher(operator, { serialNumber, deltaMinor, reference: `adjustment ${step}` });
  },
  async ({ random, cards, shops, operator, step }) => {
    const serialNumber = pick(random, cards).sold.serial;
    const merchantId = random() < 0.5 ? null : pick(random, shops).merchant.id;
    await cashOut(operator, { serialNumber, amountMinor: 25n, merchantId, reference: `cash ${step}` });
  },
  async ({ random, cards, operator, ledger }) => {
    const { sold, currency } = pick(random, cards);
    const serial = await replaceVoucher(operator, sold.serial);
    const sealed = `select sealed from scrip.vouchers where serial_number = ${serial}`;
    const [row] = await ledger.sql<{ sealed: Buffer }>(sealed);
    if (row) cards.push({ sold: { serial, ...operator.service.keys.open(serial, row.sealed) }, currency });
  },
  async ({ random, cards, operator }) => {
    if (random() < 0.5) await cancelVoucher(operator, pick(random, cards).sold.serial);
  },
  async ({ random, shops, operator, step, t }) => {
    const file = await fileOf(t, 'cards.csv', csvOf(codesOf(3)));
    const paidFrom = random() < 0.5 ? 'funding' : 'float';
    const rules = { format: 'csv', codes: 'exact', missingPin: 'refuse', expiry: null } as const;
    const merchantId = pick(random, shops).merchant.id;
    const wanted = { file, merchantId, reference: `import ${step}`, paidFrom } as const;
    await importVouchers(
      operator,
      { ...wanted, rules: { ...rules, product: 'USD-LONG' } },
      { dryRun: false },
    );
  },
  async ({ random, cards, operator }) => {
    const { serial } = pick(random, cards).sold;
    await extendVoucher(operator, serial, new Date(operator.service.clock().getTime() + 40 * DAY_MS));
  },
  async ({ random, operator }) => {
    // Batches that were ordered before keep their policy.
    const expiryPolicy = pick(random, ['operator', 'issuer', 'unclaimed'] as const);
    await products.set.run(operator, { code: 'USD-SHORT', expiryPolicy });
  },
  async ({ random, cards, operator }) => {
    if (random() < 0.2) await blockVoucher(operator, pick(random, cards).sold.serial);
  },
  async ({ random, operator, step }) => {
    const account = pick(random, ['fees', 'vat', 'breakage', 'goodwill'] as const);
    const own = { currency: 'USD', account, amountMinor: 3n, reference: `own ${step}` };
    await transferOwn(operator, own);
  },
  async ({ operator, random, cards, step }) => {
    const yen = { currency: 'JPY', reference: `state ${step}` };
    const expiredBefore = new Date(operator.service.clock().getTime() - 3 * DAY_MS);
    const of = random() < 0.5 ? { serialNumbers: [pick(random, cards).sold.serial] } : { expiredBefore };
    await escheatUnclaimed(operator, { ...yen, of });
  },
  async ({ operator, ledger }) => {
    const days = await ledger.sql<{ day: string }>(
      'select max(day)::text as day from scrip.book_closings having max(day) is not null',
    );
    for (const { day: lastDay } of days)
      for (const { id } of await draftAll(operator, lastDay)) await approve(operator, id);
  },
  ...Array.from(
    { length: 2 },
    (): Act =>
      async ({ operator, random, step, ledger }) => {
        const owed = await ledger.sql<{ id: number; isPaid: boolean }>(
          `select id, state = 'PAID' as "isPaid" from scrip.settlements where payable_minor > 0 order by id`,
        );
        const { id, isPaid } = pick(random, owed);
        const settlementId = String(id);
        const bank = { bankReference: `B ${id}`, valueDate: '2026-04-01' };
        if (isPaid) await returned(operator, { settlementId, reference: `bounced ${id} ${step}`, ...bank });
        else await pay(operator, { settlementId, reference: `payout ${id} ${step}`, ...bank });
      },
  ),
];

/** Ignores an operation that was declined or refused. */
export function wasRefused(error: unknown): void {
  if (error instanceof Refusal || error instanceof Nothing) return;
  if (!(error as Error).message.startsWith('declined')) throw error;
}

/** The reports of an interval as text, to compare them later: those that only depend on closed days. */
export async function snapshot({ ledger }: World, from: string, to: string): Promise<string> {
  const made = [];
  for (const kind of REPORTS)
    if (!['R6', 'R10', 'R13', 'R14'].includes(kind.report))
      made.push(await makeReport(ledger.started.service, kind, { from, to }));
  return JSON.stringify(made, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

export const next = (day: string) =>
  new Date(Date.parse(`${day}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10);

export async function play(world: World): Promise<Map<string, string>> {
  const { ledger, random } = world;
  const asClosed = new Map<string, string>();
  const keep = async () => {
    const closed = await close(ledger);
    for (const day of closed) asClosed.set(day, await snapshot(world, day, next(day)));
    // Rows of the next day are sealed already, and moved the ages of vouchers.
    assert.deepEqual((await verifyBooks(ledger.started.service, { lastDays: 1 })).breaks, []);
  };
  let now = START.getTime();
  for (; world.step < OPERATIONS; world.step++) {
    now += Math.ceil(random() ** 3 * 360 * MINUTE_MS);
    await ledger.at(new Date(now));
    await pick(random, ACTS)(world).catch(wasRefused);
    if (random() < 0.1) await keep();
  }
  // To the end of the day, so that nothing happens between its end and its close.
  await listDays(ledger.started.service);
  const [books] = await ledger.sql<{ ends: Date }>('select max(ends_at) as ends from scrip.book_days');
  await ledger.at(new Date((books?.ends.getTime() ?? now) + 20 * MINUTE_MS));
  await keep();
  return asClosed;
}
