import { randomInt } from 'node:crypto';
import { createMerchant } from '../src/api-keys/create-merchant.ts';
import { readVouchersOf } from '../src/batches/export.ts';
import { generate } from '../src/batches/generate.ts';
import { type Context, createService, type Operator, type Service } from '../src/context.ts';
import { readBuckets } from '../src/db/buckets.ts';
import { isUnavailable } from '../src/db/errors.ts';
import { openDatabase } from '../src/db/pool.ts';
import { withWorkers } from '../src/db/workers.ts';
import { openKeyRing } from '../src/keyring/store.ts';
import { createLogger } from '../src/log.ts';
import { DEFAULT_PRODUCT, ensureDefaultProduct, findProduct } from '../src/products/products.ts';
import { redeem } from '../src/redemptions/redeem.ts';
import { updateRedemption } from '../src/redemptions/update.ts';
import { Refusal } from '../src/refusal.ts';
import { activate } from '../src/vouchers/activate.ts';
import { DEPLOYMENT } from '../test/support/doctor.ts';
import type { Asked } from './traces.ts';

/** The load of the soak on Citus: concurrent redemptions, each sent until its outcome is certain. */

export type Card = { readonly serialNumber: bigint; readonly code: string; readonly pin: string };

/** A request with all its answers: `00`, `00 replayed`, or the code of a refusal. */
export type Ask = {
  readonly reference: string;
  readonly card: Card;
  /** In minor units. */
  readonly amount: number;
  readonly operation: 'redeem' | 'activate';
  readonly answers: { readonly code: string; readonly id?: string }[];
  /** Each time that it was sent. */
  readonly sendings: Asked['sendings'][number][];
};

export type Update = { readonly reference: string; readonly amount: number; code: string };

/**
 * A service with its own connections, as in a process.
 * @param isPatient whether it waits for a connection, as a command does
 */
export async function openService(url: string, keys: string, isPatient = false): Promise<Service> {
  const db = await withWorkers(openDatabase(url, 'scrip-soak', { isPatient }), 'scrip-soak');
  await ensureDefaultProduct(db, 'USD');
  const ring = await openKeyRing(db, { keys, dataDir: '/nowhere' });
  const buckets = await readBuckets(db);
  const log = createLogger('silent');
  const deployment = async () => DEPLOYMENT;
  return createService({ db, readDb: db, buckets, keys: ring, log, clock: () => new Date(), deployment });
}

/** Creates a merchant with active vouchers and inactive ones. */
export async function prepare(service: Service, cards: number, inactive: number) {
  const { db } = service;
  const product = await findProduct(db, DEFAULT_PRODUCT);
  if (!product) throw new Error('there is no product');
  const actor = {
    kind: 'command-line',
    id: null,
    name: 'soak',
    origin: 'soak',
    requestId: null,
    reason: null,
  } as const;
  const operator: Operator = { service, actor };
  const { id, keyId } = await createMerchant(operator, {
    name: 'Soak',
    permit: ['update-redemption'],
    opaque: false,
    productId: product.id,
    float: { currency: 'USD', amountMinor: 10_000_000_000n },
  });
  const permissions = new Set(['generate', 'download', 'activate', 'balance', 'redeem', 'update-redemption']);
  const merchant = {
    id,
    name: 'Soak',
    permissions,
    opaque: false,
    suspended: false,
    isLimited: false,
    defaultProductId: product.id,
  };
  const contextOf = (of: Service): Context => ({ service: of, merchant, keyId, now: new Date() });
  const order = async (name: string, count: number, value?: number): Promise<Card[]> => {
    const made: Card[] = [];
    for (let at = 0; at < count; at += 10) {
      const { batch } = await generate(contextOf(service), {
        reference: `${name}-${at}`,
        quantity: 10,
        value,
      });
      made.push(...((await readVouchersOf(service, batch.transactionId, 10)) ?? []));
    }
    return made;
  };
  return {
    merchantId: id,
    contextOf,
    cards: await order('cards', cards, 5_000),
    inactive: await order('later', inactive),
  };
}

/** A worker that was killed is away for seconds, and hundreds of callers would do nothing but ask. */
const RETRY_MS = 200;

const again = () => new Promise((resolve) => setTimeout(resolve, RETRY_MS));

/** The code of a refusal; undefined if the outcome is unknown. @throws any error that no outage explains */
function refusalOf(error: unknown): string | undefined {
  if (error instanceof Refusal && error.code !== '91') return error.code;
  if (!(error instanceof Refusal) && !isUnavailable(error)) throw error;
  return undefined;
}

/** Sends a request again until its outcome is known, as clients should. */
export async function ask(context: Context, request: Ask, isOver: () => boolean): Promise<void> {
  for (;;) {
    const from = performance.now();
    const answer = await send(context, request).catch((error: unknown) => {
      return { code: refusalOf(error) ?? 'unknown' };
    });
    const id = 'id' in answer ? answer.id : null;
    request.sendings.push({ from, to: performance.now(), code: answer.code, id });
    if (answer.code !== 'unknown' || isOver()) return void request.answers.push(answer);
    await again();
  }
}

async function send(context: Context, request: Ask): Promise<{ code: string; id: string }> {
  const { card, reference, amount, operation } = request;
  const now = { ...context, now: new Date() };
  const { replayed, transaction } =
    operation === 'redeem'
      ? await redeem(now, { ...card, amount: amount / 100, reference })
      : await activate(now, {
          voucher: { serialNumber: Number(card.serialNumber) },
          value: amount / 100,
          reference,
        });
  return { code: replayed ? '00 replayed' : '00', id: transaction.transactionId };
}

export async function update(context: Context, request: Update, isOver: () => boolean): Promise<void> {
  const { reference, amount } = request;
  for (;;) {
    const code = await updateRedemption(
      { ...context, now: new Date() },
      { reference, amountUsed: amount / 100 },
    ).then(() => '00', refusalOf);
    if (code !== undefined || isOver()) {
      request.code = code ?? 'unknown';
      return;
    }
    await again();
  }
}

/** A random element. */
export const any = <T>(of: readonly T[]): T => of[randomInt(of.length)] as T;
