import { rename } from 'node:fs/promises';
import { authenticate } from '../api-keys/authenticate.ts';
import { createMerchant } from '../api-keys/create-merchant.ts';
import type { NewKey } from '../api-keys/keys.ts';
import { findBatch, readVouchers } from '../batches/export.ts';
import { type Generate, generate } from '../batches/generate.ts';
import type { Context, Operator, Service } from '../context.ts';
import { withDraft, writePrivate } from '../private-file.ts';
import { DEFAULT_PRODUCT, type Product, requireProduct } from '../products/products.ts';

/** What the demo and the sandbox share: merchants whose keys are kept in a file, and their vouchers. */

export const defaultProduct = ({ db }: Service): Promise<Product> => requireProduct(db, DEFAULT_PRODUCT);

/** Creates a merchant that may do everything, with an empty float. */
export async function makeMerchant(operator: Operator, name: string): Promise<NewKey & { id: number }> {
  const { id: productId } = await defaultProduct(operator.service);
  const wanted = { name, permit: ['update-redemption'] as const, opaque: false, productId };
  const { id, keyId, secret } = await createMerchant(operator, wanted);
  return { id, keyId, secret };
}

/** Returns the context in which a key calls. @throws Refusal `01` */
export async function contextOf(service: Service, { keyId, secret }: NewKey): Promise<Context> {
  const header = `Basic ${Buffer.from(`${keyId}:${secret}`).toString('base64')}`;
  return (await authenticate(service, header)).context;
}

/** Writes keys into a file, completely or not at all. */
export async function keep(file: string, keys: object): Promise<void> {
  await withDraft(file, async (draft) => {
    await writePrivate(draft, [`${JSON.stringify(keys)}\n`]);
    await rename(draft, file);
  });
}

/** Places an order, and returns its vouchers. */
export async function order(context: Context, wanted: Generate) {
  await generate(context, wanted);
  const batch = await findBatch(context, wanted.reference);
  return (await Array.fromAsync(readVouchers(context.service, batch))).flat();
}
