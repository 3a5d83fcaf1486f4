import { makeKey, type NewKey } from '../api-keys/keys.ts';
import { audit, type Change } from '../audit/audit.ts';
import type { Details } from '../audit/chain.ts';
import type { Context, Operator, Permission, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import type { Sql } from '../db/sql.ts';
import { DECIMALS_MAX, unitOf } from '../money.ts';
import type { Asked } from '../operation.ts';
import { notFound } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { toId } from '../schema.ts';
import { bookTopUp } from './floats.ts';
import {
  findFinestDecimals,
  findMerchantRow,
  insertFormerName,
  insertMerchant,
  listMerchantRows,
  listMerchantRowsAfter,
  lockMerchant,
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

/** The permissions of a new merchant. `update-redemption` is granted separately. */
const NEW_MERCHANT: readonly Permission[] = ['generate', 'download', 'activate', 'balance', 'redeem'];

export type CreateMerchant = {
  readonly name: string;
  /** Permissions in addition to those of every new merchant. */
  readonly permit: readonly Permission[];
  readonly opaque: boolean;
  readonly productId: number;
  /** The scopes of its first key; left out: all permissions. */
  readonly scopes?: readonly Permission[] | undefined;
  readonly float?: { readonly currency: string; readonly amountMinor: bigint } | undefined;
};

/** Creates a merchant with its first key and, on request, money on its float, in one transaction. */
export async function createMerchant(
  operator: Operator,
  wanted: CreateMerchant,
): Promise<{ id: number } & NewKey> {
  const { service } = operator;
  const now = service.clock();
  return service.db.transaction(async (tx) => {
    const permissions = [...new Set([...NEW_MERCHANT, ...wanted.permit])];
    const [row] = await tx.query<{ id: number }>(
      insertMerchant(wanted.name, permissions, wanted.opaque, wanted.productId, now),
    );
    if (!row) throw new Error('a merchant was inserted, and no row came back');
    const { key, change } = await makeKey(tx, row.id, now, { scopes: wanted.scopes ?? null });
    const { name, opaque, productId, float } = wanted;
    const changes: Change[] = [
      {
        action: 'merchant.create',
        subject: subjectOf(row.id),
        after: { name, permissions, opaque, productId },
      },
      change,
    ];
    if (float) {
      const { change: topUp } = await bookTopUp(service, tx, { merchantId: row.id, ...float });
      if (topUp) changes.push(topUp);
    }
    await audit(tx, operator, ...changes);
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

/** Returns a page of merchants, oldest first, after an id. */
export async function pageOfMerchants(
  db: Queries,
  after: number,
  limit: number,
  name: string | null,
): Promise<MerchantInfo[]> {
  return (await db.query<MerchantRow>(listMerchantRowsAfter(after, limit, name))).map(toMerchant);
}

/** Grants or removes a permission. @returns whether the merchant exists */
export async function permitMerchant(
  operator: Operator,
  id: number,
  permission: Permission,
  allowed: boolean,
): Promise<boolean> {
  const action = allowed ? 'merchant.permit' : 'merchant.forbid';
  return change(operator, id, action, [setPermission(id, permission, allowed)], ({ permissions }) => ({
    permissions,
  }));
}

/** Suspends or resumes a merchant. @returns whether it exists */
export async function suspendMerchant(operator: Operator, id: number, suspended: boolean): Promise<boolean> {
  const action = suspended ? 'merchant.suspend' : 'merchant.resume';
  const suspendedAt = suspended ? operator.service.clock() : null;
  return change(operator, id, action, [setSuspended(id, suspendedAt)], (row) => ({
    suspendedAt: row.suspendedAt,
  }));
}

/** Changes the name of a merchant, its opacity and its default product; null does not change a setting. */
export async function changeMerchant(
  operator: Operator,
  id: number,
  wanted: {
    readonly name: string | null;
    readonly opaque: boolean | null;
    readonly productId: number | null;
  },
): Promise<boolean> {
  const { name: next } = wanted;
  const renamed = next === null ? [] : [insertFormerName(id, next, operator.service.clock())];
  return change(
    operator,
    id,
    'merchant.set',
    [...renamed, setMerchant(id, wanted)],
    ({ name, opaque, product }) => ({
      name,
      opaque,
      product,
    }),
  );
}

const subjectOf = (id: number) => `merchant ${id}`;

/** Runs statements under the merchant's lock, and writes both versions to the audit. */
async function change(
  operator: Operator,
  id: number,
  action: string,
  statements: readonly Sql[],
  describe: (merchant: MerchantInfo) => Details,
): Promise<boolean> {
  return operator.service.db.transaction(async (tx) => {
    await tx.query(lockMerchant(id));
    const before = await findMerchant(tx, id);
    if (!before) return false;
    for (const statement of statements) await tx.query(statement);
    const after = (await findMerchant(tx, id)) ?? before;
    await audit(tx, operator, {
      action,
      subject: subjectOf(id),
      before: describe(before),
      after: describe(after),
    });
    return true;
  });
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

type Row = {
  id: number;
  name: string;
  permissions: string[];
  opaque: boolean;
  suspended_at: Date | null;
  default_product_id: number;
};

/** The key id of calls by an operator. No key has this id. */
const OPERATOR = 'operator';

/**
 * Returns a context in which an operator uses a merchant's permissions and float.
 * @returns undefined if there is no such merchant
 * @throws Refusal `04`
 */
export async function actFor(service: Service, merchantId: number): Promise<Context | undefined> {
  const [row] = await service.db.query<Row>(findMerchantRow(merchantId));
  if (!row) return undefined;
  if (row.suspended_at) throw new Refusal('04');
  const merchant = {
    id: row.id,
    name: row.name,
    permissions: new Set(row.permissions),
    opaque: row.opaque,
    suspended: false,
    defaultProductId: row.default_product_id,
  };
  return { service, merchant, keyId: OPERATOR, now: service.clock() };
}

/** Refuses (`03`) a call for which the merchant has none of the permissions. */
export function permit({ merchant }: Context, ...permissions: readonly Permission[]): void {
  if (!permissions.some((permission) => merchant.permissions.has(permission))) throw new Refusal('03');
}

/**
 * Like `permit`, for a call with an amount. It first declines (`13`) an amount that is finer than every
 * currency in use. Whether the amount fits the voucher's currency is decided with the voucher.
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

/** The highest number of decimals in use. Products are never removed, so it can only grow. */
const known = new WeakMap<Service, number>();

async function isTooFine(service: Service, amountUnits: bigint): Promise<boolean> {
  const fits = () => amountUnits % unitOf(known.get(service) ?? 0) === 0n;
  if (fits()) return false;
  const [finest] = await service.db.query<{ decimals: number | null }>(findFinestDecimals());
  known.set(service, finest?.decimals ?? DECIMALS_MAX);
  return !fits();
}

/**
 * Returns a merchant.
 * @param field the field that names it
 * @throws Problem if there is no such merchant
 */
export async function requireMerchant(
  { service: { db } }: Pick<Operator, 'service'>,
  text: string,
  field = 'id',
): Promise<MerchantInfo> {
  const id = toId(text, field);
  const merchant = await findMerchant(db, id);
  if (!merchant) throw notFound(`merchant ${id}`);
  return merchant;
}

type Asking = Pick<Asked, 'caller'>;

/** Returns the name of a merchant; null for the operator. */
export async function merchantNamed(
  { caller }: Asking,
  id: string | number | null | undefined,
): Promise<string | null> {
  if (id === null || id === undefined) return null;
  return (await findMerchant(caller.service.db, Number(id)))?.name ?? `merchant ${id}`;
}

/** Returns the name of a merchant, and its page. */
export async function ofMerchant(
  asking: Asking,
  id: string | number,
  tab?: string,
): Promise<{ readonly merchant: string | null; readonly link: string }> {
  const link = `/merchants/${id}${tab === undefined ? '' : `?tab=${tab}`}`;
  return { merchant: await merchantNamed(asking, id), link };
}
