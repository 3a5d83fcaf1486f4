import type { Permission, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { topUp } from './floats.ts';
import { createKey, type NewKey } from './keys.ts';
import {
  findMerchantRow,
  insertMerchant,
  listMerchantRows,
  setMerchant,
  setPermission,
  setSuspended,
} from './queries.ts';

export type MerchantInfo = {
  readonly id: number;
  readonly name: string;
  readonly permissions: readonly string[];
  readonly opaque: boolean;
  readonly product: string;
  readonly suspendedAt: Date | null;
  readonly createdAt: Date;
};

/** What a new merchant may do; updating redemptions is a permission of its own. */
const NEW_MERCHANT: readonly Permission[] = ['generate', 'activate', 'balance', 'redeem'];

export type CreateMerchant = {
  readonly name: string;
  /** Beside those that every new merchant has. */
  readonly permit: readonly Permission[];
  readonly opaque: boolean;
  readonly productId: number;
  readonly float?: { readonly currency: string; readonly amountMinor: bigint } | undefined;
};

/** Makes a merchant with its first key and, if asked for, money on its float: all of it or nothing. */
export async function createMerchant(service: Service, wanted: CreateMerchant): Promise<{ id: number } & NewKey> {
  return service.db.transaction(async (tx) => {
    const permissions = [...new Set([...NEW_MERCHANT, ...wanted.permit])];
    const [row] = await tx.query<{ id: number }>(
      insertMerchant(wanted.name, permissions, wanted.opaque, wanted.productId),
    );
    if (!row) throw new Error('a merchant was inserted, and no row came back');
    const key = await createKey(tx, row.id);
    if (wanted.float) await topUp(service, row.id, wanted.float.currency, wanted.float.amountMinor, tx);
    return { id: row.id, ...key };
  });
}

export async function findMerchant(db: Queries, id: number): Promise<MerchantInfo | undefined> {
  const [row] = await db.query<MerchantRow>(findMerchantRow(id));
  return row && toMerchant(row);
}

export async function listMerchants(db: Queries): Promise<MerchantInfo[]> {
  return (await db.query<MerchantRow>(listMerchantRows())).map(toMerchant);
}

/** Gives or takes a permission. @returns whether there is such a merchant */
export async function permitMerchant(
  db: Queries,
  id: number,
  permission: Permission,
  allowed: boolean,
): Promise<boolean> {
  return (await db.query(setPermission(id, permission, allowed))).length > 0;
}

/** Suspends a merchant, or lets it go on. @returns whether there is such a merchant */
export async function suspendMerchant(db: Queries, id: number, suspended: boolean): Promise<boolean> {
  return (await db.query(setSuspended(id, suspended))).length > 0;
}

/** Changes what a merchant is told and what it sells; null leaves a setting as it is. */
export async function changeMerchant(
  db: Queries,
  id: number,
  change: { readonly opaque: boolean | null; readonly productId: number | null },
): Promise<boolean> {
  return (await db.query(setMerchant(id, change.opaque, change.productId))).length > 0;
}

type MerchantRow = {
  id: number;
  name: string;
  permissions: string[];
  opaque: boolean;
  product: string;
  suspended_at: Date | null;
  created_at: Date;
};

function toMerchant(row: MerchantRow): MerchantInfo {
  return {
    id: row.id,
    name: row.name,
    permissions: row.permissions,
    opaque: row.opaque,
    product: row.product,
    suspendedAt: row.suspended_at,
    createdAt: row.created_at,
  };
}
