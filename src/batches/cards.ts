import type * as print from '@scrip/print';
import type { Service } from '../context.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { findProduct } from '../merchants/products.ts';
import { toText } from '../money.ts';
import type { Batch } from './batch.ts';
import type { PrintedVoucher } from './export.ts';

/** Vouchers as the printer gets them. */

/** What the cards of a batch have in common. */
export async function describeCards(
  { db }: Service,
  batch: Batch,
  productCode: string,
): Promise<print.Batch> {
  const [merchant, product] = await Promise.all([
    findMerchant(db, batch.merchantId),
    findProduct(db, productCode),
  ]);
  return {
    merchant: merchant?.name ?? '',
    merchantId: String(batch.merchantId),
    product: product?.name ?? '',
    productCode,
    reference: batch.reference,
    transactionId: batch.transactionId,
    needsActivation: product?.activation === 'on-activation',
  };
}

export const toCard = (voucher: PrintedVoucher): print.Voucher => ({
  ...voucher,
  value: voucher.value && toText(voucher.value),
});
