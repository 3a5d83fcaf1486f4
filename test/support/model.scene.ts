import { merchants } from '../../src/merchants/merchants.ts';
import { createProduct, productDefaults, products } from '../../src/products/products.ts';
import { asOperator, type ListeningService } from './harness.ts';
import { FLOAT_MINOR, MERCHANTS, PRODUCTS } from './model.state.ts';

/** Creates the merchants and products of the model in the service. */

export type Merchant = Awaited<ReturnType<ListeningService['createMerchant']>>;

/** The permissions that a merchant may lack. */
const ALL = ['generate', 'download', 'activate', 'balance', 'redeem'] as const;

/** Creates the merchants of a run, in the order of MERCHANTS. */
export async function createMerchants(process: ListeningService): Promise<readonly Merchant[]> {
  const operator = asOperator(process.service);
  return Promise.all(
    MERCHANTS.map(async (wanted) => {
      const { opaque, mayUpdate, mayNothing = false, suspended = false } = { ...NORMAL, ...wanted };
      const permit = mayUpdate ? (['update-redemption'] as const) : [];
      const forbid = mayNothing ? ALL : [];
      const merchant = await process.createMerchant({ opaque, permit, forbid, float: BigInt(FLOAT_MINOR) });
      // Before its first call, so that no process has cached it.
      if (suspended) await merchants.suspend.run(operator, { id: String(merchant.id) });
      return merchant;
    }),
  );
}

const NORMAL: { readonly mayNothing?: boolean; readonly suspended?: boolean } = {};

/** Creates the products, which all runs share. */
export async function createProducts({ service }: ListeningService): Promise<void> {
  const operator = asOperator(service);
  for (const [code, product] of Object.entries(PRODUCTS)) {
    const { issuerOnly, later, onSale, leastMinor, mostMinor, most } = product;
    await createProduct(operator, {
      ...productDefaults('USD', 2),
      code,
      name: code,
      activation: later ? 'on-activation' : 'immediate',
      scope: issuerOnly ? 'issuer' : 'network',
      minValue: BigInt(leastMinor),
      maxValue: BigInt(mostMinor),
      maxQuantity: most,
    });
    if (!onSale) await products.offSale.run(operator, { code });
  }
}
