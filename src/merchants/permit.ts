import type { Context, Permission } from '../context.ts';
import { Refusal } from '../refusal.ts';

/** Refuses (`03`) what the merchant has no permission for. */
export function permit({ merchant }: Context, permission: Permission): void {
  if (!merchant.permissions.has(permission)) throw new Refusal('03');
}
