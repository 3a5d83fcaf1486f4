import type { DayEnd } from '../books/close.ts';
import type { Queries } from '../db/pool.ts';
import { idAt, newId } from '../ledger/id.ts';
import { getAccount, post } from '../ledger/movements.ts';
import { insertFee, listNets, type NetRow } from './fees.queries.ts';

const MILLION = 1_000_000n;

/**
 * A share of an amount, in parts per million: rounded to whole minor units, half away from zero. The only
 * place where anything is rounded.
 */
export function shareOf(minor: bigint, ppm: number): bigint {
  const size = ((minor < 0n ? -minor : minor) * BigInt(ppm) + MILLION / 2n) / MILLION;
  return minor < 0n ? -size : size;
}

/**
 * Books the commission of a day, and the VAT on it: one movement for each merchant, product and currency,
 * stamped into the last millisecond of the day. Reversals that exceed the redemptions of a day give
 * commission back.
 * @param tx the transaction that closes the day; its last slice is not sealed yet
 */
const bookFees: DayEnd = async ({ service }, tx, { day, startsAt, endsAt }) => {
  const stamp = new Date(endsAt.getTime() - 1);
  for (const row of await tx.query<NetRow>(listNets(day, startsAt, endsAt))) {
    const { merchant_id: merchantId, product_id: productId, currency, net_minor: netMinor } = row;
    const feeMinor = shareOf(netMinor, row.commission_ppm);
    const vatMinor = shareOf(feeMinor, row.vat_ppm);
    const feeId = feeMinor === 0n ? null : idAt(newId(service.clock()), stamp);
    const vatId = vatMinor === 0n ? null : idAt(newId(service.clock()), stamp);
    const rates = { commissionPpm: row.commission_ppm, vatPpm: row.vat_ppm };
    const fee = {
      day,
      merchantId,
      productId,
      currency,
      netMinor,
      ...rates,
      feeMinor,
      vatMinor,
      feeId,
      vatId,
    };
    await tx.query(insertFee(fee));
    const to = { merchantId, currency, now: stamp };
    if (feeId) await move(tx, 'FEE', 'FEES', feeId, feeMinor, to);
    if (vatId) await move(tx, 'FEE_VAT', 'VAT', vatId, vatMinor, to);
  }
};

/** What each close books. */
export const DAY_ENDS: readonly DayEnd[] = [bookFees];

/** From the settlement account, or back to it where the amount is negative. */
async function move(
  tx: Queries,
  kind: 'FEE' | 'FEE_VAT',
  account: 'FEES' | 'VAT',
  id: string,
  minor: bigint,
  { merchantId, currency, now }: { merchantId: number; currency: string; now: Date },
): Promise<void> {
  const settlement = await getAccount(tx, merchantId, currency, 'SETTLEMENT');
  const own = await getAccount(tx, 0, currency, account);
  const isBack = minor < 0n;
  const [debit, credit] = isBack ? [own, settlement] : [settlement, own];
  const amountMinor = isBack ? -minor : minor;
  await post(tx, {
    kind: isBack ? `${kind}_REVERSAL` : kind,
    id,
    debit,
    credit,
    amountMinor,
    merchantId,
    now,
  });
}
