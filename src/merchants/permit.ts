import type { Context, Permission, Service } from '../context.ts';
import { DECIMALS_MAX, unitOf } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { findFinestDecimals } from './queries.ts';

/** Refuses (`03`) a call for which the merchant has none of the permissions. */
export function permit({ merchant }: Context, ...permissions: readonly Permission[]): void {
  if (!permissions.some((permission) => merchant.permissions.has(permission))) throw new Refusal('03');
}

/**
 * Like `permit`, for a call with an amount. An amount finer than every currency in use is declined
 * first (`13`). Whether it fits the voucher's currency is decided with the voucher.
 * @param amountUnits in ten-thousandths of a major unit; null if there is none
 */
export async function permitAmount(
  context: Context,
  permission: Permission,
  amountUnits: bigint | null,
): Promise<void> {
  if (amountUnits !== null && (await isTooFine(context.service, amountUnits))) throw new Refusal('13');
  permit(context, permission);
}

/** The highest number of decimals in use. Products are only ever added, so it can only grow. */
const known = new WeakMap<Service, number>();

async function isTooFine(service: Service, amountUnits: bigint): Promise<boolean> {
  const fits = () => amountUnits % unitOf(known.get(service) ?? 0) === 0n;
  if (fits()) return false;
  const [finest] = await service.db.query<{ decimals: number | null }>(findFinestDecimals());
  known.set(service, finest?.decimals ?? DECIMALS_MAX);
  return !fits();
}
