import type { DayEnd } from '../books/close.ts';
import type { Queries } from '../db/pool.ts';
import { idAt, newId } from '../ledger/id.ts';
import {
  bookFees,
  countRows,
  type FeeMovement,
  insertFees,
  listFees,
  listNets,
  type NetRow,
  type NewFee,
} from './fees.queries.ts';

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
 * Commission that is already booked is kept.
 * @param tx a transaction that holds the books; the day's last slice is not sealed yet
 */
const bookDay: DayEnd = async ({ service }, tx, { day, startsAt, endsAt }) => {
  if (await isBooked(tx, day)) return;
  const stamp = new Date(endsAt.getTime() - 1);
  const fees: NewFee[] = [];
  const movements: FeeMovement[] = [];
  for (const row of await tx.query<NetRow>(listNets(day, startsAt, endsAt))) {
    const { merchant_id: merchantId, product_id: productId, currency, net_minor: netMinor } = row;
    const { commission_ppm: commissionPpm, vat_ppm: vatPpm } = row;
    const feeMinor = shareOf(netMinor, commissionPpm);
    const vatMinor = shareOf(feeMinor, vatPpm);
    const move = (kind: 'FEE' | 'FEE_VAT', account: bigint, minor: bigint) => {
      if (minor === 0n) return null;
      const id = idAt(newId(service.clock()), stamp);
      movements.push({ id, merchantId, ...sidesOf(kind, row.settlement_account, account, minor) });
      return id;
    };
    const feeId = move('FEE', row.fees_account, feeMinor);
    const vatId = move('FEE_VAT', row.vat_account, vatMinor);
    const amounts = { netMinor, commissionPpm, vatPpm, feeMinor, vatMinor };
    fees.push({ merchantId, productId, currency, ...amounts, feeId, vatId });
  }
  if (fees.length === 0) return;
  await tx.query(insertFees(day, fees));
  const [declined] = await tx.query<{ id: string; outcome: string }>(bookFees(movements, stamp));
  if (declined) throw new Error(`commission ${declined.id} of ${day} was declined: ${declined.outcome}`);
};

/** Whether a transaction before this one booked the commission of a day. @throws while it cannot be read */
async function isBooked(tx: Queries, day: string): Promise<boolean> {
  const fees = await tx.query<{ fee_id: string | null; vat_id: string | null }>(listFees(day));
  const ids = fees.flatMap(({ fee_id, vat_id }) => [fee_id, vat_id]).filter((id) => id !== null);
  const [found] = ids.length > 0 ? await tx.query<{ rows: bigint }>(countRows(ids)) : [];
  if (Number(found?.rows ?? 0) !== ids.length) throw new Error(`commission of ${day} is not readable yet`);
  return fees.length > 0;
}

/** What each close books. */
export const DAY_ENDS: readonly DayEnd[] = [bookDay];

/** From the settlement account, or back to it where the amount is negative. */
function sidesOf(kind: 'FEE' | 'FEE_VAT', settlement: bigint, own: bigint, minor: bigint) {
  if (minor > 0n) return { kind, debit: settlement, credit: own, amountMinor: minor };
  return { kind: `${kind}_REVERSAL`, debit: own, credit: settlement, amountMinor: -minor } as const;
}
