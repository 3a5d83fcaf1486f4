import { createMerchant } from '../api-keys/create-merchant.ts';
import { setPayIn } from '../bank/pay-in.ts';
import { findBatch, readVouchers } from '../batches/export.ts';
import { generate } from '../batches/generate.ts';
import { closeDays } from '../books/close.ts';
import { refundFloat } from '../books/floats.ts';
import { setGlAccount } from '../books/gl.ts';
import { verifyBooks } from '../books/verify.ts';
import { adjustVoucher } from '../books/vouchers.ts';
import { type Actor, type Context, createService, type Operator, type Service } from '../context.ts';
import { type MovedClock, moveClock, restoreClock } from '../db/clock.ts';
import { createPartitions } from '../db/partitions.ts';
import { openDatabase } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import { ACCOUNT_KINDS } from '../ledger/kinds.ts';
import { reconcile } from '../ledger/reconcile.ts';
import { topUp } from '../merchants/floats.ts';
import { actFor } from '../merchants/merchants.ts';
import { createProduct, findProduct, type Product, productDefaults } from '../products/products.ts';
import { redeem } from '../redemptions/redeem.ts';
import { updateRedemption } from '../redemptions/update.ts';
import { Refusal } from '../refusal.ts';
import { requireDecimals } from '../schema.ts';
import { setLetterhead } from '../settings/letterhead.ts';
import { approve } from '../settlement/approve.ts';
import { draftAll } from '../settlement/draft.ts';
import { DAY_ENDS } from '../settlement/fees.ts';
import { pay } from '../settlement/pay.ts';
import { makeTerms } from '../settlement/terms.ts';
import { DAY_MS, HOUR_MS, isoDay, MINUTE_MS } from '../time.ts';
import { blockVoucher, extendVoucher } from '../vouchers/operate.ts';
import { showProgress } from './progress.ts';

/** The history of the demo: its participants, what happens day by day, and how it fills a database. */

type DemoProduct = Pick<Product, 'code' | 'name' | 'currency' | 'validityDays' | 'expiryPolicy'>;

const PRODUCTS: readonly DemoProduct[] = [
  { code: 'GIFT-USD', name: 'Gift card', currency: 'USD', validityDays: 365, expiryPolicy: 'operator' },
  { code: 'MEAL-USD', name: 'Meal voucher', currency: 'USD', validityDays: 30, expiryPolicy: 'operator' },
  { code: 'GIFT-EUR', name: 'Geschenkkarte', currency: 'EUR', validityDays: 45, expiryPolicy: 'issuer' },
  { code: 'TEA-JPY', name: 'Tea card', currency: 'JPY', validityDays: 40, expiryPolicy: 'unclaimed' },
];

/** Floats and values in major units. The float of the last one is nearly used up at the end. */
export const MERCHANTS = [
  { name: 'Corner Kiosk', product: 'GIFT-USD', float: 6_000, values: [25, 50] },
  { name: 'Riverside Diner', product: 'MEAL-USD', float: 3_000, values: [15, 20] },
  { name: 'Alpine Outdoor', product: 'GIFT-EUR', float: 8_000, values: [50, 75] },
  { name: 'Buchladen am Markt', product: 'GIFT-EUR', float: 5_000, values: [20, 30] },
  { name: 'Kyoto Tea House', product: 'TEA-JPY', float: 230_000, values: [2_000, 3_000] },
] as const;

/** The prices at a till are multiples of these. */
const CASH_DRAWER: Readonly<Record<string, number>> = { USD: 0.5, EUR: 0.5, JPY: 100 };

/** The length of the history in days. */
const DAYS = 90;
/** The grace of a close, plus some minutes. */
const CLOSE_AFTER_MS = 20 * MINUTE_MS;
/** The interval between orders in days. */
const ORDER_DAYS = 2;
const ORDER_QUANTITY = 10;
const CLOSE_TRIES = 20;

const LETTERHEAD = {
  sender: 'Example Vouchers Ltd',
  addressLines: ['1 High Street', 'London'],
  vatNumber: 'GB123456789',
  contact: 'accounts@example.com',
};

type Card = {
  readonly code: string;
  readonly pin: string;
  readonly serial: bigint;
  readonly currency: string;
  left: number;
};

/** Returns a generator of pseudo-random numbers, which are the same in every demo. */
function chance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** The events of the history, day by day. */
class Story {
  readonly #operator: Operator;
  readonly #clock: MovedClock;
  readonly #startsAt: Date;
  readonly #random = chance(20_260_101);
  readonly #cards: Card[] = [];
  readonly #merchants: number[] = [];
  readonly #contexts: Context[] = [];
  #now: Date;

  constructor(service: Service, clock: MovedClock, actor: Actor) {
    this.#clock = clock;
    const today = Math.floor((service.clock().getTime() - HOUR_MS) / DAY_MS) * DAY_MS;
    this.#startsAt = new Date(today - DAYS * DAY_MS);
    this.#now = this.#startsAt;
    const moved = createService({ ...service, clock: () => this.#now });
    this.#operator = { service: moved, actor };
  }

  async #at(day: number, ms: number): Promise<void> {
    this.#now = new Date(this.#startsAt.getTime() + day * DAY_MS + ms);
    await this.#clock.set(this.#now);
  }

  /** Creates products, merchants with their floats, and the terms of their settlements. */
  async begin(): Promise<void> {
    await createPartitions(this.#operator.service.db, this.#startsAt, new Date(Date.now()));
    await this.#at(0, HOUR_MS);
    const products = new Map<string, Product>();
    for (const { currency, ...terms } of PRODUCTS) {
      const wanted = { ...productDefaults(currency, requireDecimals(currency)), ...terms };
      const { code } = terms;
      const product =
        (await createProduct(this.#operator, wanted)) ??
        // From a start that was killed before it created the first merchant.
        (await findProduct(this.#operator.service.db, code));
      if (product) products.set(code, product);
    }
    await setLetterhead(this.#operator, LETTERHEAD);
    await setPayIn(this.#operator, 'EUR', 'DE89370400440532013000');
    for (const [index, kind] of ACCOUNT_KINDS.entries())
      await setGlAccount(this.#operator, { kind, number: String(1_000 + 10 * index) });
    for (const { name, product: code, float } of MERCHANTS) {
      const product = products.get(code) as Product;
      const { currency, decimals } = product;
      const { id } = await createMerchant(this.#operator, {
        name,
        permit: ['update-redemption'],
        opaque: false,
        productId: product.id,
      });
      this.#merchants.push(id);
      const context = await actFor(this.#operator.service, id);
      if (context) this.#contexts.push(context);
      const amountMinor = BigInt(float) * 10n ** BigInt(decimals);
      await topUp(this.#operator, { merchantId: id, currency, amountMinor, reference: `prepayment ${id}` });
      await makeTerms(this.#operator, {
        merchantId: String(id),
        from: isoDay(this.#startsAt.getTime()),
        commission: 2.5,
        vat: 20,
        period: 'month',
        minPayout: 1,
        delayDays: 3,
        payee: 'House bank',
        iban: 'DE89370400440532013000',
      });
    }
  }

  #contextOf(merchant: number): Context {
    return { ...(this.#contexts[merchant] as Context), now: this.#now };
  }

  /** Plays a day: the close at night, sometimes an order in the morning, and payments. */
  async play(day: number): Promise<void> {
    await this.#at(day, CLOSE_AFTER_MS);
    if (day > 0) await this.#close();
    if (this.#now.getUTCDate() === 4 && day > 7) await this.#paySettlements();
    if (day % ORDER_DAYS === 0) {
      await this.#at(day, 8 * HOUR_MS);
      await this.#order(day / ORDER_DAYS);
    }
    for (const hour of [11, 17]) {
      await this.#at(day, hour * HOUR_MS + Math.floor(this.#random() * HOUR_MS));
      await this.#pay(3 + Math.floor(this.#random() * 4));
    }
    await this.#assist(day);
  }

  async #close(): Promise<void> {
    const until = isoDay(this.#now.getTime() - DAY_MS);
    for (let tries = 1; ; tries++) {
      const { waiting, closed } = await closeDays(this.#operator, { until, dayEnds: DAY_ENDS });
      const failed = closed.flatMap((each) => each.failed);
      if (failed.length > 0) throw new Error(`a day of the demo does not agree: ${failed.join(', ')}`);
      if (closed.length > 0) return;
      // Transactions in other databases on the same server delay a close while they run.
      if (tries === CLOSE_TRIES) throw new Error(`a day of the demo was not closed: ${waiting?.reason}`);
    }
  }

  /** Orders vouchers for one merchant after the other. */
  async #order(number: number): Promise<void> {
    const turn = number % MERCHANTS.length;
    const merchant = MERCHANTS[turn] as (typeof MERCHANTS)[number];
    const context = this.#contextOf(turn);
    const product = PRODUCTS.find(({ code }) => code === merchant.product);
    if (!product) return;
    const value = merchant.values[number % merchant.values.length] as number;
    const order = {
      quantity: ORDER_QUANTITY,
      value,
      reference: `order-${number + 1}`,
      productCode: product.code,
    };
    await generate(context, order);
    for await (const page of readVouchers(context.service, await findBatch(context, order.reference)))
      for (const { serialNumber, code, pin } of page)
        this.#cards.push({ code, pin, serial: serialNumber, currency: product.currency, left: value });
  }

  /** Pays with some of the vouchers that have a balance, in shops of their currency. */
  async #pay(count: number): Promise<void> {
    const open = this.#cards.filter(({ left }) => left > 0).slice(-120);
    const chosen = new Set(
      Array.from({ length: count }, () => open[Math.floor(this.#random() * open.length)]),
    );
    await Promise.all([...chosen].map((card) => card && this.#payWith(card, this.#random(), this.#random())));
  }

  async #payWith(card: Card, share: number, habit: number): Promise<void> {
    const shops = [...MERCHANTS.keys()].filter((at) => currencyOf(at) === card.currency);
    const context = this.#contextOf(shops[Math.floor(share * shops.length)] as number);
    const step = CASH_DRAWER[card.currency] ?? 1;
    const amount = habit < 0.4 ? card.left : Math.max(step, Math.floor((card.left * share) / step) * step);
    const reference = `till ${card.serial} ${card.left}`;
    const { code, pin } = card;
    // An expired or blocked voucher is declined, as at a till.
    const outcome = await redeem(context, { code, pin, amount, reference }).catch(declined);
    if (outcome === undefined || typeof outcome === 'string') {
      card.left = 0;
      return;
    }
    card.left -= amount;
    if (habit < 0.97 || amount <= step) return;
    await updateRedemption(context, { reference, amountUsed: amount - step });
    card.left += step;
  }

  /** Makes an occasional change of support. */
  async #assist(day: number): Promise<void> {
    const card = this.#cards.find(({ left, currency }) => left > 0 && currency === 'USD');
    const operator: Operator = this.#operator;
    if (day === 30 && card) {
      const adjustment = { serialNumber: card.serial, deltaMinor: 500n, reference: 'complaint 1' };
      await adjustVoucher(operator, adjustment).catch(() => {});
    }
    if (day === 45) {
      const merchantId = this.#merchants[0] as number;
      const refund = {
        merchantId,
        currency: 'USD',
        amountMinor: 25_000n,
        reference: 'refund 1',
      };
      await refundFloat(operator, refund);
    }
    const last = this.#cards.at(-1);
    if (day === 60 && last) await blockVoucher(operator, last.serial);
    const old = this.#cards.find(({ currency }) => currency === 'EUR');
    if (day === 75 && old)
      await extendVoucher(operator, old.serial, new Date(this.#now.getTime() + 180 * DAY_MS));
  }

  /**
   * Once a month, a few days after its end: drafts and approves settlements for all, and pays all but the
   * last.
   */
  async #paySettlements(): Promise<void> {
    const drafts = await draftAll(this.#operator, undefined);
    const due = drafts.filter(({ payable }) => payable > 0n);
    const approved = await Promise.all(due.map(({ id }) => approve(this.#operator, id)));
    for (const { settlement } of approved.slice(0, -1)) {
      const reference = `payout ${settlement.number}`;
      const valueDate = isoDay(this.#now.getTime());
      await pay(this.#operator, {
        settlementId: settlement.id,
        reference,
        bankReference: reference,
        valueDate,
      });
    }
  }

  /** Checks that the days are closed, that the books are right, and that nothing has changed since. */
  async prove(): Promise<void> {
    await this.#at(DAYS, CLOSE_AFTER_MS);
    await this.#close();
    const { service } = this.#operator;
    const [{ ok, checks }, verified] = [await reconcile(service), await verifyBooks(service)];
    if (ok && verified.ok) return;
    const names = checks.filter((each) => !each.ok).map(({ name }) => name);
    throw new Error(
      `the books of the demo do not agree: ${[...names, ...verified.breaks.map(({ change }) => change)].join(', ')}`,
    );
  }
}

function declined(error: unknown): undefined {
  if (!(error instanceof Refusal)) throw error;
}

const currencyOf = (merchant: number) =>
  PRODUCTS.find(({ code }) => code === MERCHANTS[merchant]?.product)?.currency ?? '';

/** Returns the size of the history: the number of movements, and the last closed day. */
function findHistory(): Sql {
  return sql`
select (select count(*)::integer from journal) as movements,
  (select max(day)::text from book_closings) as until`;
}

type Progress = { readonly tell: (line: string) => void; readonly stopping: () => boolean };

/**
 * Fills an empty database with a history: merchants, products of several currencies, closed days, expiries,
 * settlements. It uses the operations that serve calls, and moves the clocks of the service and of the books
 * from day to day.
 * @param ownerUrl of the schema's owner
 * @param progress.tell receives lines for people
 * @param progress.stopping ends the history early; the days so far remain
 * @returns false if the database is not empty
 * @throws Error if the books are wrong at the end
 */
export async function fillHistory(
  service: Service,
  ownerUrl: string,
  actor: Actor,
  { tell, stopping }: Progress,
): Promise<boolean> {
  const wasKilled = await restoreClock(ownerUrl);
  const [empty] = await service.db.query(sql`
select 1 as empty
where not exists (select from merchants) and not exists (select from journal)
  and not exists (select from book_days)`);
  if (!empty) {
    if (wasKilled) tell(`a start was killed while it made the history, which ${await endOf(service)}`);
    return false;
  }
  tell(`filling the empty database with ${DAYS} days of history`);
  const began = performance.now();
  const clock = await moveClock(ownerUrl);
  const db = openDatabase(service.db.url, 'scrip-demo', { isPatient: true });
  const progress = showProgress('days');
  try {
    const story = new Story(createService({ ...service, db, readDb: db }), clock, actor);
    await story.begin();
    for (let day = 0; day < DAYS && !stopping(); day++) {
      await story.play(day);
      progress.update(day + 1, DAYS);
    }
    progress.stop();
    if (stopping()) {
      tell(`stopped while it made the history, which ${await endOf(service)}`);
      return true;
    }
    await story.prove();
    const [made] = await service.db.query<History>(findHistory());
    const seconds = ((performance.now() - began) / 1_000).toFixed(1);
    tell(`made ${DAYS} closed days with ${made?.movements} movements in ${seconds} s`);
    return true;
  } finally {
    progress.stop();
    await db.close();
    await clock.close();
  }
}

type History = { readonly movements: number; readonly until: string | null };

/** Returns the end of an interrupted history. It is never continued, since its days are complete. */
async function endOf({ db }: Service): Promise<string> {
  const [found] = await db.query<History>(findHistory());
  const end = found?.until ? `ends soon after ${found.until}` : 'has no closed day';
  return `${end} and stays so; for a whole one, start with an empty data folder`;
}
