import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createMerchant } from '../../src/api-keys/create-merchant.ts';
import { findBatch, readVouchers } from '../../src/batches/export.ts';
import { generate } from '../../src/batches/generate.ts';
import { closeDays } from '../../src/books/close.ts';
import { verifyBooks } from '../../src/books/verify.ts';
import type { Context, Operator, Service } from '../../src/context.ts';
import { type MovedClock, moveClock } from '../../src/db/clock.ts';
import { adaptFunctions, isDistributed } from '../../src/db/distribute.ts';
import { openOwner } from '../../src/db/pool.ts';
import { reconcile } from '../../src/ledger/reconcile.ts';
import { topUp } from '../../src/merchants/floats.ts';
import { actFor } from '../../src/merchants/merchants.ts';
import type { Caller } from '../../src/operation.ts';
import { createProduct, DEFAULT_PRODUCT, findProduct, productDefaults } from '../../src/products/products.ts';
import { redeem } from '../../src/redemptions/redeem.ts';
import { asOperator, startTestService, type TestService } from './harness.ts';
import type { ListOf } from './list.ts';
import type { Scope } from './scope.ts';

/**
 * A service whose clock a test moves through days together with that of the database. The times of entries
 * are checked as in production.
 */
export type Ledger = {
  readonly started: TestService;
  readonly operator: Caller;
  /** Moves both clocks. */
  at(time: string | Date): Promise<void>;
  /** Runs SQL as the owner of the database, also to tamper with it. */
  sql<Row>(text: string): Promise<Row[]>;
  merchant(floatMinor?: bigint, currency?: string): Promise<Context>;
  /** Closes the days that are due. */
  close(options?: Parameters<typeof closeDays>[1]): ReturnType<typeof closeDays>;
};

export type Sold = { readonly serial: bigint; readonly code: string; readonly pin: string };

/** @param options.buckets several: requests are claimed and booked as over shards, on one server as well */
export async function openLedger(
  t: Scope,
  start: string,
  options: { readonly buckets?: number } = {},
): Promise<Ledger> {
  const started = await startTestService(undefined, options);
  const { service, clock } = started;
  const moved: MovedClock = await moveClock(started.url);
  const owner = await openOwner(started.url);
  t.after(async () => {
    await moved.close();
    await owner.close();
    await started.stop();
  });
  const query = <Row>(text: string) => owner.query<Row>({ text, values: [] });
  await query(await checkOfStamps());
  // Each bucket has a copy.
  if (await isDistributed(owner)) await adaptFunctions(owner);
  const at = async (time: string | Date) => {
    clock.set(new Date(time));
    await moved.set(new Date(time));
  };
  await at(start);
  const operator = asOperator(service);
  return {
    started,
    operator,
    at,
    sql: query,
    async merchant(floatMinor = 1_000_000n, currency = 'USD') {
      const product = await findProduct(service.db, DEFAULT_PRODUCT);
      const permit = ['update-redemption'] as const;
      const wanted = { name: 'Shop', permit, opaque: false, productId: product?.id ?? 0 };
      const { id } = await createMerchant(operator, wanted);
      if (floatMinor > 0n) await topUp(operator, { merchantId: id, currency, amountMinor: floatMinor });
      return contextOf(operator, id);
    },
    close: (options) => closeWhenPassed(operator, options),
  };
}

/** Closes the days. Transactions of other tests on the server delay a close for as long as they run. */
async function closeWhenPassed(...asked: Parameters<typeof closeDays>): ReturnType<typeof closeDays> {
  const closed = [];
  for (let tries = 0; ; tries++) {
    const done = await closeDays(...asked);
    closed.push(...done.closed);
    if (!done.waiting?.reason.startsWith('a transaction') || tries === 20) return { ...done, closed };
  }
}

/** The books reconcile, and closed days have not changed. */
export async function proveSound(service: Service): Promise<void> {
  for (const sinceClosing of [false, true])
    assert.deepEqual(
      (await reconcile(service, { sinceClosing })).checks.filter(({ ok }) => !ok),
      [],
    );
  assert.deepEqual((await verifyBooks(service)).breaks, []);
}

/** The context of a merchant. */
async function contextOf({ service }: Operator, id: number): Promise<Context> {
  const context = await actFor(service, id);
  if (!context) throw new Error('there is no such merchant');
  return context;
}

/** The check that the template of the tests leaves out (test/support/server.ts). */
export async function checkOfStamps(): Promise<string> {
  const text = await readFile(new URL('../../sql/005-rules.sql', import.meta.url), 'utf8');
  const found = /create function check_stamp[\s\S]*?^end \$\$;/m.exec(text)?.[0];
  if (!found) throw new Error('sql/005-rules.sql has no check_stamp');
  return `set search_path = scrip; ${found.replace('create function', 'create or replace function')}`;
}

let orders = 0;

/** Sells vouchers of a value, or of one that their activation gives them, and returns them. */
export async function sell<Count extends number>(
  context: Context,
  quantity: Count,
  value: number | undefined,
  terms: { productCode?: string; expiryDate?: Date } = {},
): Promise<ListOf<Sold, Count>> {
  const now = context.service.clock();
  const asking = { ...context, now };
  const reference = `order ${++orders}`;
  await generate(asking, { quantity, value, reference, ...terms });
  return (await soldBy(asking, reference)) as ListOf<Sold, Count>;
}

/** Returns the vouchers of an order. */
export async function soldBy(context: Context, reference: string): Promise<Sold[]> {
  const sold: Sold[] = [];
  for await (const page of readVouchers(context.service, await findBatch(context, reference)))
    for (const { serialNumber, code, pin } of page) sold.push({ serial: serialNumber, code, pin });
  return sold;
}

/** The context of a request that comes now. */
export const atNow = (context: Context): Context => ({ ...context, now: context.service.clock() });

export async function spend(context: Context, { code, pin }: Sold, amount: number, reference?: string) {
  const now = context.service.clock();
  const outcome = await redeem({ ...context, now }, { code, pin, amount, reference });
  if (typeof outcome === 'string') throw new Error(`declined: ${outcome}`);
  return outcome.transaction;
}

export async function product(
  operator: Operator,
  code: string,
  expiryPolicy: 'operator' | 'issuer' | 'unclaimed',
) {
  const terms = { ...productDefaults('USD', 2), expiryPolicy, validityDays: 2 };
  await createProduct(operator, { ...terms, code, name: code });
  return code;
}
