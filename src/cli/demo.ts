import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { NewKey } from '../api-keys/keys.ts';
import type { Generate } from '../batches/generate.ts';
import type { Actor, Context, Operator, Service } from '../context.ts';
import { makeDataFolder } from '../db/embedded.ts';
import { VARIANT_A } from '../http/variant-a.ts';
import { VARIANT_B } from '../http/variant-b.ts';
import { topUp } from '../merchants/floats.ts';
import { listFloats, listMerchants } from '../merchants/merchants.ts';
import { DEMO_OWNER, type DemoPerson, inviteDemoPerson } from '../people/demo.ts';
import { doorOf } from '../people/sessions.ts';
import { createProduct, findProduct, productDefaults } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import { MERCHANTS } from './demo-history.ts';
import { contextOf, defaultProduct, keep, makeMerchant, order } from './trial.ts';
import { actor } from './usage.ts';

/** A top-up, in major units: enough for a long session. A start makes it if less than a half is left. */
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
  const floats = await listFloats(service.db, context.merchant.id);
  const left = floats.find((float) => float.currency === currency)?.balance ?? 0n;
  if (left < amountMinor / 2n)
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

/** The people of the demo with whom the owner can show what needs two of them. */
const COLLEAGUES: readonly DemoPerson[] = [
  { email: 'finance@demo.invalid', name: 'Demo finance', roles: ['finance'], merchantId: null },
  { email: 'support@demo.invalid', name: 'Demo support', roles: ['support'], merchantId: null },
];

const [{ name: MERCHANT }] = MERCHANTS;

/**
 * Makes links that sign in the people of the demo, each once, from this machine only. A database without the
 * demo's history is not the demo's own. It gets no second person, since everything that needs approval would
 * need two people from then on.
 * @param baseUrl the address for browsers
 * @returns lines to print
 */
export async function demoLinks(service: Service, baseUrl: string): Promise<string[]> {
  const found = await listMerchants(service.db, MERCHANT, 100);
  const merchant = found.find(({ name }) => name === MERCHANT);
  const colleagues = merchant
    ? [...COLLEAGUES, { ...DEMO_OWNER, name: `Owner of ${MERCHANT}`, merchantId: merchant.id }]
    : [];
  const links = [];
  for (const person of [DEMO_OWNER, ...colleagues]) {
    const token = await inviteDemoPerson({ service, actor: demoActor() }, person);
    const app = doorOf(person.merchantId) === 'operator' ? 'console' : 'portal';
    links.push(`  ${`${person.name}, ${app}`.padEnd(30)}${baseUrl}/${app}/sign-in#${token}`);
  }
  return [
    'These links sign in once, from this machine, within an hour. Use a browser profile for each person:',
    '',
    ...links,
  ];
}
