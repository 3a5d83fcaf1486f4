import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findBatch, readVouchers } from '../batches/download.ts';
import { generate } from '../batches/generate.ts';
import type { Actor, Context, Service } from '../context.ts';
import { authenticate } from '../merchants/authenticate.ts';
import { topUp } from '../merchants/floats.ts';
import type { NewKey } from '../merchants/keys.ts';
import { createMerchant } from '../merchants/merchants.ts';
import { DEFAULT_PRODUCT, findProduct, type Product } from '../merchants/products.ts';
import { Refusal } from '../refusal.ts';
import { actor } from './actor.ts';
import { curlRound, type DemoVoucher } from './curl-round.ts';

/** What each start puts on the demo merchant's float, in major units: enough for a long afternoon of trying things out. */
const DEMO_FLOAT = 100_000n;
const DEMO_VALUE = 50;

/**
 * Makes sure of the demo merchant and prints the whole round as curl lines that work as they stand. Its key is kept in the
 * data folder, so a second start shows the same one; each start generates fresh vouchers for the lines to use.
 */
export async function prepareDemo(service: Service, baseUrl: string, dataDir: string): Promise<string[]> {
  const key = await findOrCreate(service, join(dataDir, 'demo.json'));
  const { context } = await authenticate(service, basic(key));
  const run = Date.now().toString(36);
  const { currency, decimals } = await defaultProduct(service);
  const amountMinor = DEMO_FLOAT * 10n ** BigInt(decimals);
  await topUp({ service, actor: demoActor() }, { merchantId: context.merchant.id, currency, amountMinor });
  const [voucher] = await make(context, `demo-${run}`, DEMO_VALUE);
  const [inactive] = await make(context, `demo-${run}-inactive`, undefined);
  return curlRound({ baseUrl, ...key, run, voucher: voucher as DemoVoucher, inactive: inactive as DemoVoucher });
}

/** Whoever started the service, which makes what the curl lines need. */
const demoActor = (): Actor => ({ ...actor(), reason: actor().reason ?? 'the demo' });

async function make(context: Context, reference: string, value: number | undefined): Promise<DemoVoucher[]> {
  await generate(context, { reference, quantity: 1, value });
  for await (const page of readVouchers(context.service, await findBatch(context, reference))) return page;
  return [];
}

const basic = (key: NewKey) => `Basic ${Buffer.from(`${key.keyId}:${key.secret}`).toString('base64')}`;

async function defaultProduct(service: Service): Promise<Product> {
  const product = await findProduct(service.db, DEFAULT_PRODUCT);
  if (!product) throw new Error('the product DEFAULT is missing');
  return product;
}

async function findOrCreate(service: Service, file: string): Promise<NewKey> {
  const kept = await readFile(file, 'utf8').then(
    (text) => JSON.parse(text) as NewKey,
    () => undefined,
  );
  if (kept) {
    // Of another database, or revoked: then a new demo merchant is made.
    const known = await authenticate(service, basic(kept)).catch((error: unknown) => {
      if (error instanceof Refusal && error.code === '01') return undefined;
      throw error;
    });
    if (known) return kept;
  }
  const { id: productId } = await defaultProduct(service);
  const permit = ['update-redemption'] as const;
  const { keyId, secret } = await createMerchant(
    { service, actor: demoActor() },
    { name: 'Demo', permit, opaque: false, productId },
  );
  const draft = `${file}.${process.pid}`;
  await writeFile(draft, `${JSON.stringify({ keyId, secret })}\n`, { mode: 0o600 });
  await rename(draft, file);
  return { keyId, secret };
}
