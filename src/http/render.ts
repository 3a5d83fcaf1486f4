import type { Static } from 'typebox';
import { type Batch, batchData } from '../batches/batch.ts';
import { readVouchers } from '../batches/download.ts';
import type { Context } from '../context.ts';
import { toNumber } from '../money.ts';
import type { VoucherBalance } from '../vouchers/balance.ts';
import type { Answer } from './endpoint.ts';
import type { BatchData, BatchVoucher } from './fields.ts';

/** Renders results of the core as data of an answer, where both variants show the same. */

/** A batch. Where it is complete its vouchers follow page by page. */
export function renderBatch({ service }: Context, batch: Batch, replayed: boolean): Answer<typeof BatchData> {
  const data = batchData(batch);
  if (batch.status !== 'COMPLETED') return { data, replayed };
  const pages = renderPages(readVouchers(service, batch));
  return { data, replayed, vouchers: { quantity: batch.quantity, pages } };
}

async function* renderPages(
  pages: ReturnType<typeof readVouchers>,
): AsyncGenerator<Static<typeof BatchVoucher>[]> {
  for await (const page of pages) {
    yield page.map(({ serialNumber, code, pin }) => ({ serialNumber: Number(serialNumber), code, pin }));
  }
}

/**
 * A balance.
 * @param voucherCode as it was sent
 */
export function renderBalance(found: VoucherBalance, voucherCode: string) {
  return {
    serialNumber: Number(found.serialNumber),
    voucherCode,
    balance: toNumber(found.balance),
    usableAmount: toNumber(found.usable),
    transactions: found.transactions.map(({ transactionId, type, amount, timestamp, reference }) => ({
      transactionId,
      transactionType: type,
      amount: toNumber(amount),
      timestamp,
      reference,
    })),
  };
}
