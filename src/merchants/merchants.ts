import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Details } from '../audit/chain.ts';
import { type Context, kept, type Operator, PERMISSIONS, type Permission, type Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { assign, type Sql, sql } from '../db/sql.ts';
import { balance } from '../figure.ts';
import { byText, listing, type Order } from '../listing.ts';
import { DECIMALS_MAX, unitOf } from '../money.ts';
import { type Asked, alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { MANAGE, SEE_VOUCHERS } from '../principal.ts';
import { invalid, notFound, requireRow } from '../problem.ts';
import { LANGUAGES } from '../products/designs.ts';
import { ProductCode, requireProduct } from '../products/products.ts';
import { Refusal } from '../refusal.ts';
import { columnsOf } from '../row.ts';
import {
  At,
  Line,
  MerchantId,
  Money,
  Nullable,
  NullableTime,
  Numbered,
  Positional,
  pastTime,
  Text,
  Time,
  Titled,
  toId,
  Word,
} from '../schema.ts';

/**
 * Merchants, which sell and accept vouchers. One is created with its first key
 * (src/api-keys/create-merchant.ts).
 */

export const PermissionWord = Word(PERMISSIONS, {
  'x-labels': {
    redeem: 'Redemption',
    activate: 'Activation',
    balance: 'Balance check',
    'update-redemption': 'Correct redemptions',
  },
  description: 'A permission.',
  examples: ['update-redemption'],
});
export const MerchantName = Line(200, 'The name of the merchant.', 'Corner shop');
export const Opaque = Type.Boolean({
  description: 'Whether an unknown code and a wrong PIN get the same answer.',
});
const OF_FLOAT = balance({ account: 'FLOAT', merchantId: '{id}', to: '{at}' });
const FloatBalance = Type.Object({ currency: Text, balance: Money(OF_FLOAT) });

const MerchantSchema = Type.Object({
  id: Numbered(MerchantId),
  name: Text,
  permissions: Type.Array(PermissionWord),
  opaque: Titled('Hides why a voucher is declined', Opaque),
  product: Type.String({ description: 'The code of the product that it generates by default.' }),
  language: Nullable(Word(LANGUAGES), {
    ...{ 'x-labels': { en: 'English', de: 'German' } },
    description: 'The language of its settlement documents; null: English.',
  }),
  downloadApproval: Type.Boolean({
    title: 'Downloads need a second person',
    description: 'Whether another person of the merchant approves each download of codes in the portal.',
  }),
  suspendedAt: NullableTime,
  createdAt: Time,
});
/** What can be set beside the name, at once or later. */
export const SETTINGS = {
  opaque: Type.Optional(Opaque),
  product: Type.Optional(ProductCode),
  language: Type.Optional(MerchantSchema.properties.language),
};
export const MerchantWithFloats = Type.Object({
  ...MerchantSchema.properties,
  floats: Type.Array(FloatBalance),
});

/** A merchant as the core has it. */
type MerchantInfo = Static<typeof MerchantSchema> & {
  readonly defaultProductId: number;
  /** Whether it, or one of its keys, has a daily limit. */
  readonly isLimited: boolean;
};

const COLUMNS = sql`
${columnsOf(MerchantSchema, 'm', { id: sql`m.id`, product: sql`p.code` })},
m.default_product_id as "defaultProductId", m.is_limited as "isLimited"`;

export async function findMerchant(db: Queries, id: number): Promise<MerchantInfo | undefined> {
  const [merchant] = await db.query<MerchantInfo>(sql`
select ${COLUMNS} from merchants m join products p on p.id = m.default_product_id where m.id = ${id}`);
  return merchant;
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

/** Returns the words of a text, as in the index merchants_by_words. */
const wordsOf = (text: Sql) =>
  sql`to_tsvector('simple'::regconfig, regexp_replace(${text}, '[^[:alnum:]]+', ' ', 'g'))`;

/**
 * Returns merchants, oldest first unless there is another order, of `m.id` or `m.name`.
 * @param name beginnings of words of the name, in any case; null for all
 */
export async function listMerchants(
  db: Queries,
  name: string | null = null,
  count = 10_000,
  order: Order = { after: sql`true`, by: sql`m.id` },
): Promise<MerchantInfo[]> {
  if (name === null)
    return db.query(sql`
select ${COLUMNS} from merchants m join products p on p.id = m.default_product_id
where ${order.after} order by ${order.by} limit ${count}`);
  return db.query(sql`
with found as materialized (
  select m.id, m.name from merchants m
  where ${wordsOf(sql`m.name`)} @@ (
    select string_agg(quote_literal(w.lexeme) || ':*', ' & ') from unnest(${wordsOf(sql`${name}`)}) w
  )::tsquery
), page as materialized (
  select m.id from found m where ${order.after} order by ${order.by} limit ${count}
)
select ${COLUMNS} from page g
cross join lateral (select r.* from merchants r where r.id = g.id) m
join products p on p.id = m.default_product_id order by ${order.by}`);
}

export const subjectOf = (id: number) => `merchant ${id}`;

type MerchantChange = {
  readonly action: string;
  /** The fields that the audit shows. */
  readonly fields: readonly (keyof MerchantInfo)[];
  readonly first?: Sql;
  readonly set: Sql;
};

/**
 * Changes a merchant under its lock, and writes both versions to the audit.
 * @returns the merchant as it is then
 */
export async function changeMerchant(caller: Caller, text: string, wanted: MerchantChange) {
  const { action, fields, first, set } = wanted;
  const id = toId(text);
  const pick = (merchant: MerchantInfo | undefined): Details =>
    Object.fromEntries(fields.map((field) => [field, merchant?.[field] ?? null])) as Details;
  await caller.service.db.transaction(async (tx) => {
    const subject = subjectOf(id);
    await requireRow(tx, sql`select id from merchants where id = ${id} for update`, subject);
    const before = pick(await findMerchant(tx, id));
    if (first) await tx.query(first);
    await tx.query(sql`update merchants set ${set} where id = ${id}`);
    await audit(tx, caller, { action, subject, before, after: pick(await findMerchant(tx, id)) });
  });
  return show(caller, text);
}

/** The key id of calls by an operator. No key has this id. */
const OPERATOR = 'operator';

/**
 * Returns a context in which an operator uses a merchant's permissions and float.
 * @returns undefined if there is no such merchant
 * @throws Refusal `04`
 */
export async function actFor(service: Service, merchantId: number): Promise<Context | undefined> {
  const found = await findMerchant(service.db, merchantId);
  if (!found) return undefined;
  const { suspendedAt, permissions, ...rest } = found;
  if (suspendedAt) throw new Refusal('04');
  const merchant = { ...rest, permissions: new Set<string>(permissions), suspended: false };
  return { service, merchant, keyId: OPERATOR, now: service.clock() };
}

/** Refuses (`03`) a call if the merchant has none of the permissions that it needs. */
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

type Known = { decimals: number; asked: Promise<void> | undefined };

/** The highest number of decimals in use. Products are never removed, so it can only grow. */
const knownTo = kept((): Known => ({ decimals: 0, asked: undefined }));

/** Calls that come at once, such as the first ones of a process, ask the database once. */
async function isTooFine(service: Service, amountUnits: bigint): Promise<boolean> {
  const known = knownTo(service);
  const fits = () => amountUnits % unitOf(known.decimals) === 0n;
  if (fits()) return false;
  known.asked ??= askDecimals(service, known).finally(() => {
    known.asked = undefined;
  });
  await known.asked;
  return !fits();
}

async function askDecimals({ db }: Service, known: Known): Promise<void> {
  const [finest] = await db.query<{ decimals: number | null }>(
    sql`select max(decimals) as decimals from products`,
  );
  known.decimals = finest?.decimals ?? DECIMALS_MAX;
}

type Asking = Pick<Asked, 'caller'>;

/** Returns the name of a merchant; null for the operator. */
export async function merchantNamed(
  { caller }: Asking,
  id: string | number | null | undefined,
): Promise<string | null> {
  if (id === null || id === undefined) return null;
  return (await findMerchant(caller.service.db, toId(String(id), 'merchantId')))?.name ?? `merchant ${id}`;
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

async function show(caller: Caller, id: string): Promise<Static<typeof MerchantWithFloats>> {
  const merchant = await requireMerchant(caller, id);
  return { ...merchant, floats: await listFloats(caller.service.db, merchant.id) };
}

const list = listing({
  name: 'merchant.list',
  summary: 'List merchants, oldest first',
  path: '/merchants',
  filters: {
    name: Type.Optional(
      Line(200, 'Only those whose name has words that begin with these, in capitals or not.', 'corner'),
    ),
  },
  item: MerchantSchema,
  columns: ['id', 'name', 'permissions', 'product', 'suspendedAt'],
  roles: SEE_VOUCHERS,
  sorts: { id: sql`m.id`, isNewestFirst: false, keys: { name: byText(sql`m.name`), createdAt: null } },
  rows: ({ service }, { name = null }, _after, count, order) =>
    listMerchants(service.readDb, name, count, order),
});

const showMerchant = reading({
  name: 'merchant.show',
  summary: 'Get a merchant and its floats',
  path: '/merchants/:id',
  description: 'With a time, its floats are those of then, and all else is as it is now.',
  input: { id: MerchantId, at: At },
  output: MerchantWithFloats,
  roles: SEE_VOUCHERS,
  async run(caller, { id, at: text }) {
    const { db, clock } = caller.service;
    const at = pastTime(text, clock());
    const merchant = await show(caller, id);
    return at ? { ...merchant, floats: await listFloatsAt(db, Number(merchant.id), at) } : merchant;
  },
});

function suspension(verb: 'suspend' | 'resume') {
  return changing({
    name: `merchant.${verb}`,
    summary: verb === 'suspend' ? 'Refuse all calls of a merchant (04)' : 'End the suspension of a merchant',
    path: `/merchants/:id/${verb}`,
    input: { id: MerchantId },
    output: MerchantWithFloats,
    roles: MANAGE,
    approval: alone('It moves no money, and can be undone.'),
    risk: verb === 'resume' ? 'step-up' : 'plain',
    run: (caller, { id }) =>
      changeMerchant(caller, id, {
        action: `merchant.${verb}`,
        fields: ['suspendedAt'],
        // A merchant that is suspended already keeps its time.
        set:
          verb === 'suspend'
            ? sql`suspended_at = coalesce(suspended_at, ${caller.service.clock()})`
            : sql`suspended_at = null`,
      }),
  });
}

function permission(verb: 'permit' | 'forbid') {
  return changing({
    name: `merchant.${verb}`,
    title: verb === 'permit' ? 'Give a permission' : 'Take a permission',
    summary: verb === 'permit' ? 'Give a merchant a permission' : 'Take a permission away from a merchant',
    path: `/merchants/:id/${verb}`,
    input: { id: MerchantId, permission: Positional(PermissionWord) },
    output: MerchantWithFloats,
    roles: MANAGE,
    approval: alone('It can be taken back, and a key that is bound to scopes gets nothing by it.'),
    risk: verb === 'permit' ? 'step-up' : 'plain',
    run(caller, { id, permission }) {
      const without = sql`array_remove(permissions, ${permission})`;
      return changeMerchant(caller, id, {
        action: `merchant.${verb}`,
        fields: ['permissions'],
        set: sql`permissions = ${verb === 'permit' ? sql`array_append(${without}, ${permission})` : without}`,
      });
    },
  });
}

const setMerchant = changing({
  name: 'merchant.set',
  summary: 'Rename a merchant, or change its settings',
  method: 'PATCH',
  path: '/merchants/:id',
  input: {
    id: MerchantId,
    name: Type.Optional(MerchantName),
    ...SETTINGS,
  },
  output: MerchantWithFloats,
  roles: MANAGE,
  approval: alone('It moves no money, and can be changed back.'),
  async run(caller, { id, name, opaque, product, language }) {
    const { db, clock } = caller.service;
    const productId = product === undefined ? undefined : (await requireProduct(db, product)).id;
    const wanted = Object.entries({ name, opaque, default_product_id: productId, language });
    const set = wanted.filter(([, value]) => value !== undefined);
    if (set.length === 0)
      throw invalid(
        'name',
        'required',
        'or `opaque`, `product` or `language` is required: there is nothing to change',
      );
    return changeMerchant(caller, id, {
      action: 'merchant.set',
      fields: ['name', 'opaque', 'product', 'language'],
      // The name that a merchant has until it gets another one is kept.
      ...(name !== undefined && {
        first: sql`
insert into merchant_names (merchant_id, until, name)
select id, ${clock()}, name from merchants where id = ${toId(id)} and name <> ${name}
on conflict do nothing`,
      }),
      set: assign(Object.fromEntries(set)),
    });
  },
});

/** The balance of a float is in minor units. */
export type Float = { readonly currency: string; readonly balance: bigint };

/** Lists a merchant's floats, one for each currency that it uses. */
export async function listFloats(db: Queries, merchantId: number): Promise<Float[]> {
  return db.query(sql`
select currency, balance_minor as balance from floats where merchant_id = ${merchantId} order by currency`);
}

/** The same at a time of the past. */
function listFloatsAt(db: Queries, merchantId: number, at: Date): Promise<Float[]> {
  return db.query(sql`
select f.currency, coalesce(t.balance_minor, 0)::bigint as balance
from floats f
left join balances_at(${at}) t
  on t.account_kind = 'FLOAT' and t.merchant_id = f.merchant_id and t.currency = f.currency
where f.merchant_id = ${merchantId} order by f.currency`);
}

export const merchants = {
  list,
  show: showMerchant,
  set: setMerchant,
  permit: permission('permit'),
  forbid: permission('forbid'),
  suspend: suspension('suspend'),
  resume: suspension('resume'),
};

export const OPERATIONS = tableOf(...Object.values(merchants));
