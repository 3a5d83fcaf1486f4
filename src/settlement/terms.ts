import { audit } from '../audit/audit.ts';
import type { DayEnd } from '../books/close.ts';
import { requireOpen } from '../books/days.ts';
import type { Operator, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { idAt, newId } from '../ledger/id.ts';
import { Refusal } from '../refusal.ts';
import {
  bookFees,
  countRows,
  type FeeMovement,
  findMerchantTerms,
  insertFees,
  insertTerms,
  listFees,
  listNets,
  listTerms,
  type NetRow,
  type NewFee,
  type NewTerms,
  type TermsRow,
} from './terms.queries.ts';

const LAST_CHARACTERS = 4;

export type Terms = Omit<NewTerms, 'now'> & {
  /** Null for all products without terms of their own. */
  readonly product: string | null;
};

type WantedTerms = Omit<Terms, 'by' | 'payeeLast4' | 'payeeDigest'> & {
  /** The account that payout files pay; null: none. */
  readonly payeeIban: string | null;
};

/** Returns the keyed digest by which the account of a payment is compared with that of the terms. */
export function digestOfIban({ keys }: Pick<Service, 'keys'>, iban: string): Buffer {
  return keys.fingerprintOf(`payee ${iban}`);
}

/**
 * Makes terms for a merchant, or for one product of a merchant, from a day on. Terms are never edited, but
 * replaced by newer ones.
 * @throws Refusal `17` if the day is closed; `94` if there are already terms from this day on
 */
export async function makeTerms(operator: Operator, { payeeIban, ...given }: WantedTerms): Promise<Terms> {
  const { service, actor } = operator;
  const wanted = {
    ...given,
    payeeLast4: payeeIban?.slice(-LAST_CHARACTERS) ?? null,
    payeeDigest: payeeIban === null ? null : digestOfIban(service, payeeIban),
    by: actor.name,
  };
  await service.db.transaction(async (tx) => {
    await requireOpen(tx, wanted.validFrom, 'terms');
    const [made] = await tx.query(insertTerms({ ...wanted, now: service.clock() }));
    if (!made)
      throw new Refusal('94', {
        message: `there are terms from ${wanted.validFrom} on already: terms are never edited`,
      });
    const { merchantId, productId: _id, payeeDigest: _digest, by: _by, ...after } = wanted;
    await audit(tx, operator, { action: 'settlement.terms', subject: `merchant ${merchantId}`, after });
  });
  return wanted;
}

/** Returns all terms of a merchant by day; those without a product come first. */
export async function readTerms(db: Queries, merchantId: number): Promise<Terms[]> {
  return (await db.query<TermsRow>(listTerms(merchantId))).map(toTerms);
}

/** Returns the merchant's own terms on a day: period, least payout and delay. */
export async function termsOn(db: Queries, merchantId: number, day: string): Promise<Terms | undefined> {
  const [row] = await db.query<TermsRow>(findMerchantTerms(merchantId, day));
  return row && toTerms(row);
}

function toTerms(row: TermsRow): Terms {
  return {
    merchantId: row.merchant_id,
    productId: row.product_id,
    product: row.product,
    validFrom: row.valid_from,
    commissionPpm: row.commission_ppm,
    vatPpm: row.vat_ppm,
    period: row.period,
    leastPayout: row.least_payout,
    delayDays: row.delay_days,
    payee: row.payee,
    payeeLast4: row.payee_last4,
    payeeDigest: row.payee_digest,
    by: row.made_by,
  };
}

const MILLION = 1_000_000n;

/**
 * Returns a share of an amount, in parts per million. It is rounded to whole minor units, half away from
 * zero. Nothing else is rounded when money is booked.
 */
export function shareOf(minor: bigint, ppm: number): bigint {
  const size = ((minor < 0n ? -minor : minor) * BigInt(ppm) + MILLION / 2n) / MILLION;
  return minor < 0n ? -size : size;
}

/**
 * Books the commission of a day and the VAT on it: one movement for each merchant, product and currency,
 * stamped with the last millisecond of the day. A correction of an earlier redemption follows the terms of
 * the day of that redemption. If reversals exceed the redemptions of the day, commission is returned.
 * Commission that is already booked is kept.
 * @param tx a transaction that holds the lock on the books, before the day's last slice is sealed
 */
const bookDay: DayEnd = async ({ service }, tx, { day, startsAt, endsAt }) => {
  if (await isBooked(tx, day)) return;
  const stamp = new Date(endsAt.getTime() - 1);
  const movements: FeeMovement[] = [];
  const nets = await tx.query<NetRow>(listNets(day, startsAt, endsAt));
  const groups = Map.groupBy(nets, (row) => `${row.merchant_id} ${row.product_id} ${row.currency}`);
  const fees = [...groups.values()].flatMap((rows): NewFee[] => {
    const { settlement_account, fees_account, vat_account, merchant_id: merchantId } = rows[0] as NetRow;
    const move = (kind: 'FEE' | 'FEE_VAT', account: bigint, minor: bigint) => {
      if (minor === 0n) return null;
      const id = idAt(newId(service.clock()), stamp);
      movements.push({ id, merchantId, ...sidesOf(kind, settlement_account, account, minor) });
      return id;
    };
    const computed = rows.map((row) => {
      const feeMinor = shareOf(row.net_minor, row.commission_ppm);
      return { row, feeMinor, vatMinor: shareOf(feeMinor, row.vat_ppm) };
    });
    const sum = (of: 'feeMinor' | 'vatMinor') => computed.reduce((total, each) => total + each[of], 0n);
    const feeId = move('FEE', fees_account, sum('feeMinor'));
    const vatId = move('FEE_VAT', vat_account, sum('vatMinor'));
    return computed.map(({ row, feeMinor, vatMinor }) => ({
      ofDay: row.of_day,
      merchantId,
      productId: row.product_id,
      currency: row.currency,
      netMinor: row.net_minor,
      commissionPpm: row.commission_ppm,
      vatPpm: row.vat_ppm,
      feeMinor,
      vatMinor,
      feeId,
      vatId,
    }));
  });
  if (fees.length === 0) return;
  await tx.query(insertFees(day, fees));
  const [declined] = await tx.query<{ id: string; outcome: string }>(bookFees(movements, stamp));
  if (declined) throw new Error(`commission ${declined.id} of ${day} was declined: ${declined.outcome}`);
};

/**
 * Returns whether an earlier transaction booked the commission of a day.
 * @throws while its rows cannot be read yet
 */
async function isBooked(tx: Queries, day: string): Promise<boolean> {
  const fees = await tx.query<{ fee_id: string | null; vat_id: string | null }>(listFees(day));
  const ids = new Set(fees.flatMap(({ fee_id, vat_id }) => [fee_id, vat_id]).filter((id) => id !== null));
  const [found] = ids.size > 0 ? await tx.query<{ rows: bigint }>(countRows([...ids])) : [];
  if (Number(found?.rows ?? 0) !== ids.size) throw new Error(`commission of ${day} is not readable yet`);
  return fees.length > 0;
}

/** The bookings that belong to the close of each day. */
export const DAY_ENDS: readonly DayEnd[] = [bookDay];

/** Returns the sides of a movement: from the settlement account, or back to it if the amount is negative. */
function sidesOf(kind: 'FEE' | 'FEE_VAT', settlement: bigint, own: bigint, minor: bigint) {
  if (minor > 0n) return { kind, debit: settlement, credit: own, amountMinor: minor };
  return { kind: `${kind}_REVERSAL`, debit: own, credit: settlement, amountMinor: -minor } as const;
}
