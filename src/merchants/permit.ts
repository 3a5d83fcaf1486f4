import type { Context, Permission } from '../context.ts';
import { MOST_DECIMALS } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { findFinestDecimals } from './queries.ts';

/** Refuses (`03`) what the merchant has no permission for. */
export function permit({ merchant }: Context, permission: Permission): void {
  if (!merchant.permissions.has(permission)) throw new Refusal('03');
}

/**
 * Like `permit`, for a call with an amount: one that is finer than every currency in use is told first (`13`). Which
 * currency it has to fit the voucher tells, which only who has the permission may ask for.
 * @param amountUnits in ten-thousandths of a major unit; null where there is none
 */
export function permitAmount(
  context: Context,
  permission: Permission,
  amountUnits: bigint | null,
): void | Promise<void> {
  if (context.merchant.permissions.has(permission)) return;
  return refuse(context, permission, amountUnits);
}

async function refuse(context: Context, permission: Permission, amountUnits: bigint | null): Promise<void> {
  if (amountUnits !== null) {
    const [finest] = await context.service.db.query<{ decimals: number | null }>(findFinestDecimals());
    const unit = 10n ** BigInt(MOST_DECIMALS - (finest?.decimals ?? MOST_DECIMALS));
    if (amountUnits % unit !== 0n) throw new Refusal('13');
  }
  permit(context, permission);
}
