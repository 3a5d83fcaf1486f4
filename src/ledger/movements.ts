import type { Queries } from '../db/pool.ts';
import { Refusal, type RefusalCode } from '../refusal.ts';
import type { AccountKind } from './accounts.queries.ts';
import { accountOf, ensureAccounts } from './accounts.ts';
import { newId } from './id.ts';
import { book, bookVoucher, type Movement, type VoucherMovement } from './movements.queries.ts';

/** The number of an account that is made if it is missing. @param merchantId 0 for the operator's own */
export async function getAccount(
  tx: Queries,
  merchantId: number,
  currency: string,
  kind: AccountKind,
): Promise<bigint> {
  const found = await accountOf(tx, merchantId, currency, kind);
  if (found !== undefined) return found;
  // The operator's own accounts are made with those of a merchant; without one, no merchant is given any.
  await ensureAccounts(tx, merchantId, currency);
  return (await accountOf(tx, merchantId, currency, kind)) as bigint;
}

/** Why a movement was declined, in the words of the books. */
const DECLINED: Partial<Record<RefusalCode, string>> = {
  '50': 'Insufficient merchant balance: the float does not cover it',
  '51': 'Insufficient balance: the account does not cover it',
  '13': 'Invalid amount: the account would hold too much',
  '14': 'Invalid voucher: no completed batch has this serial number',
  '44': 'Voucher canceled or replaced: that is final',
  '58': 'This was corrected before: once is all',
};

/** Books a movement between two accounts. @throws Refusal for what the database declines */
export async function post(tx: Queries, movement: Omit<Movement, 'eventId'>): Promise<void> {
  const eventId = newId(movement.now);
  await checkBooked(tx.query<{ outcome: string }>(book({ ...movement, eventId })));
}

/** Books a movement between a voucher and an account. @throws Refusal for what the database declines */
export async function postVoucher(tx: Queries, movement: Omit<VoucherMovement, 'eventId'>): Promise<void> {
  const eventId = newId(movement.now);
  await checkBooked(tx.query<{ outcome: string }>(bookVoucher({ ...movement, eventId })));
}

async function checkBooked(booking: Promise<{ outcome: string }[]>): Promise<void> {
  const [{ outcome } = { outcome: '' }] = await booking;
  if (outcome === 'ok') return;
  const code = outcome as RefusalCode;
  const message = DECLINED[code];
  throw new Refusal(code, message === undefined ? {} : { message });
}
