import type { Call } from './model.calls.ts';
import type { Voucher } from './model.state.ts';

/** The operator's movements of money to and from vouchers. */

export type Movement = Extract<Call, { do: 'adjust' | 'cashOut' | 'cancelVoucher' }>;

/** Moves money to or from a voucher. @returns the refusal, or `00` */
export function moveMoney(voucher: Voucher, call: Movement, now: number): string {
  const refusal =
    call.do === 'cancelVoucher' ? refusedToCancel(voucher, now) : refusedToMove(voucher, call, now);
  if (refusal) return refusal;
  if (call.do === 'adjust') voucher.balance += call.minor;
  else voucher.balance = 0;
  if (call.do === 'cancelVoucher') voucher.canceled = true;
  return '00';
}

function refusedToMove(voucher: Voucher, call: Movement, now: number): string | undefined {
  if (call.do === 'cashOut' && voucher.blocked) return '43';
  if (voucher.expires <= now) return '54';
  if (voucher.value === null) return '40';
  if (call.do === 'cashOut' && voucher.balance === 0) return '42';
  return call.do === 'adjust' && voucher.balance + call.minor < 0 ? '51' : undefined;
}

function refusedToCancel(voucher: Voucher, now: number): string | undefined {
  if (voucher.value !== null && voucher.balance === 0) return '42';
  return voucher.expires <= now ? '54' : undefined;
}
