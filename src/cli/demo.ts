import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { NewKey } from '../api-keys/keys.ts';
import type { Generate } from '../batches/generate.ts';
import type { Actor, Context, Operator, Service } from '../context.ts';
import { makeDataFolder } from '../db/embedded.ts';
import { VARIANT_A } from '../http/variant-a.ts';
import { VARIANT_B } from '../http/variant-b.ts';
import { topUp } from '../merchants/floats.ts';
import { createProduct, findProduct, type Product, productDefaults } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import { contextOf, defaultProduct, keep, makeMerchant, order } from './trial.ts';
import { actor } from './usage.ts';

/** The top-up of each start, in major units: enough for a long session. */
const DEMO_FLOAT = 100_000n;
/** A product whose vouchers are sold inactive. */
const DEMO_PRODUCT = 'DEMO-CARD';

/**
 * Prepares the demo merchant, and returns an entire cycle as curl lines that work unchanged. Its key is
 * stored in the data folder, so a second start shows the same key. Each start makes the orders with which the
 * lines begin. In the lines these are replays, and the next lines can use the vouchers.
 */
export async function prepareDemo(service: Service, baseUrl: string, dataDir: string): Promise<string[]> {
  await makeDataFolder(dataDir);
  const operator = { service, actor: demoActor() };
  const standard = await defaultProduct(service);
  const key = await findOrCreate(operator, join(dataDir, 'demo.json'));
  const context = await contextOf(service, key);
  const { currency, decimals } = standard;
  const amountMinor = DEMO_FLOAT * 10n ** BigInt(decimals);
  await topUp(operator, { merchantId: context.merchant.id, currency, amountMinor });
  if (!(await findProduct(service.db, DEMO_PRODUCT))) {
    const terms = { ...productDefaults(currency, decimals), activation: 'on-activation' } as const;
    await createProduct(operator, { ...terms, code: DEMO_PRODUCT, name: 'Demo gift card' });
  }
  const run = Date.now().toString(36);
  const { quantity } = DEMO_ORDER;
  const inA = await firstOf(context, { ...DEMO_ORDER, reference: `order-${run}`, productCode: DEMO_PRODUCT });
  const inB = await firstOf(context, { quantity, reference: `order-b-${run}` });
  return curlRound({ baseUrl, ...key, run, productCode: DEMO_PRODUCT, inA, inB });
}

export const demoActor = (): Actor => ({ ...actor(), reason: actor().reason ?? 'the demo' });

/** Places an order, and returns its first voucher. */
async function firstOf(context: Context, wanted: Generate): Promise<DemoVoucher> {
  const [voucher] = await order(context, wanted);
  if (!voucher) throw new Error('the demo order has no vouchers');
  return voucher;
}

async function findOrCreate(operator: Operator, file: string): Promise<NewKey> {
  const kept = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as NewKey,
    () => undefined,
  );
  if (kept) {
    // The key belongs to another database, or was revoked. A new demo merchant is then created.
    const known = await contextOf(operator.service, kept).catch((error: unknown) => {
      if (error instanceof Refusal && error.code === '01') return undefined;
      throw error;
    });
    if (known) return kept;
  }
  const { keyId, secret } = await makeMerchant(operator, 'Demo');
  await keep(file, { keyId, secret });
  return { keyId, secret };
}

type DemoVoucher = { readonly serialNumber: bigint; readonly code: string; readonly pin: string };

/** The orders of the curl lines. The caller has placed the same orders, so it knows the codes. */
const DEMO_ORDER = { quantity: 2, value: 50 } as const;
const ACTIVATION_VALUE = 25;

type Demo = {
  readonly baseUrl: string;
  readonly keyId: string;
  readonly secret: string;
  /** Makes the references of this round unique. */
  readonly run: string;
  /** A product whose vouchers get their value when they are activated. */
  readonly productCode: string;
  /** A voucher of the order under `order-<run>`, with that product and a value. */
  readonly inA: DemoVoucher;
  /** A voucher of the order under `order-b-<run>`, with the default product and no value. */
  readonly inB: DemoVoucher;
};

/** Returns an entire cycle in both variants, as curl lines that work unchanged, in this order. */
function curlRound({ baseUrl, keyId, secret, run, productCode, inA, inB }: Demo): string[] {
  // A line end after each answer, so that the next prompt does not follow it on the same line.
  const user = `-u ${keyId}:${secret} -w '\\n'`;
  const get = (path: string) => `curl ${user} ${baseUrl}${path}`;
  const post = (path: string, body: object) =>
    `curl ${user} ${baseUrl}${path} -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`;
  const { quantity, value } = DEMO_ORDER;
  const card = { code: inA.code, pin: inA.pin };
  const a = VARIANT_A.prefix;
  const b = VARIANT_B.prefix;
  return [
    `Demo merchant: key ${keyId}, secret ${secret}`,
    'The whole round in variant A, to paste line by line:',
    '',
    post(`${a}/vouchers`, { reference: `order-${run}`, productCode, quantity, amount: value }),
    get(`${a}/vouchers/order-${run}`),
    post(`${a}/activate`, { ...card, reference: `activation-${run}` }),
    post(`${a}/balance`, card),
    post(`${a}/redeem`, { ...card, amount: 12.5, reference: `sale-${run}` }),
    post(`${a}/redemptions/update`, { reference: `sale-${run}`, amountUsed: 10 }),
    get(`${a}/redemptions/update/sale-${run}`),
    get(`${a}/transactions/sale-${run}`),
    get(`${a}/transactions`),
    '',
    'The same in variant B, with vouchers whose value is given at activation:',
    '',
    post(`${b}/vouchers`, { reference: `order-b-${run}`, quantity }),
    get(`${b}/vouchers/order-b-${run}`),
    post(`${b}/activate`, {
      serialNumber: Number(inB.serialNumber),
      value: ACTIVATION_VALUE,
      reference: `activation-b-${run}`,
    }),
    post(`${b}/balance`, { voucherCode: inB.code, pin: inB.pin }),
    post(`${b}/redeem`, { voucherCode: `${inB.code}${inB.pin}`, amount: 5, reference: `sale-b-${run}` }),
    get(`${b}/transactions/sale-b-${run}`),
    get(`${b}/transactions`),
  ];
}

/** The participants of the demo's history, and their terms. */

type DemoProduct = Pick<Product, 'code' | 'name' | 'currency' | 'validityDays' | 'expiryPolicy'>;

export const PRODUCTS: readonly DemoProduct[] = [
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
export const CASH_DRAWER: Readonly<Record<string, number>> = { USD: 0.5, EUR: 0.5, JPY: 100 };
