import Type, { type Static, type TProperties, type TSchema, type TUnsafe } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Details } from '../audit/chain.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { assign, insertInto, type Sql, sql } from '../db/sql.ts';
import { SETTING } from '../figure.ts';
import { byText, listing } from '../listing.ts';
import { decimalsOf, toSum } from '../money.ts';
import { alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { MANAGE, SEE_VOUCHERS } from '../principal.ts';
import { invalid, notFound, Problem, requireChange, requireOneServer, requireRow } from '../problem.ts';
import { columnsOf, storedAs } from '../row.ts';
import {
  Amount,
  Currency,
  Gtin,
  inSection,
  Line,
  MerchantId,
  Money,
  minorOf,
  Nullable,
  Opening,
  requireDecimals,
  Text,
  Titled,
  toId,
  Word,
  withDefaults,
} from '../schema.ts';
import { DesignName, requireDesign } from './designs.ts';

/** Products: the terms under which merchants generate vouchers. A batch keeps the terms of its order. */

/** The product that always exists. */
export const DEFAULT_PRODUCT = 'DEFAULT';

/** The highest quantity limit that a product can have. */
export const QUANTITY_MAX = 5_000_000;
const DAYS_MAX = 36_500;

/** Whose an expired balance is. */
export const EXPIRY_POLICIES = ['operator', 'issuer', 'unclaimed'] as const;

const CODE = {
  pattern: '^[A-Za-z0-9_.-]{1,50}$',
  description: 'The code of the product.',
  examples: [DEFAULT_PRODUCT],
};
/** A code that no product has yet: a form has it typed, and not chosen. */
const NewProductCode = Type.String(CODE);
export const ProductCode = Type.String({ ...CODE, 'x-format': 'product' });

const Activation = Word(['immediate', 'on-activation'] as const, {
  'x-labels': { immediate: 'At production', 'on-activation': 'At the till' },
  description: '`on-activation`: vouchers carry their value once they are activated.',
});
const Scope = Word(['network', 'issuer'] as const, {
  title: 'Accepted by',
  'x-labels': { network: 'Every merchant', issuer: 'Its issuer' },
  description: '`network`: any merchant may redeem; `issuer`: only the merchant that generated the voucher.',
});
const Name = Line(200, 'The name of the product.', 'Gift card');
/*
 * The fields that can change, by the sections of their form. Everything else about them follows. Existing
 * batches keep theirs.
 */

const CARDS = {
  gtin: Titled(
    'GTIN',
    Nullable(Gtin, {
      description:
        'The number of GS1 on cards that have to be activated, beside the serial number; null: none. Cards that ' +
        'were printed with another one are no longer activated by a scan.',
    }),
  ),
  design: Nullable(DesignName, { description: 'The design of its cards; null: black on white.' }),
};
const QUANTITIES = {
  maxQuantity: Type.Integer({
    title: 'Largest order',
    minimum: 1,
    maximum: QUANTITY_MAX,
    description: 'The highest quantity of a batch.',
  }),
};
const VALIDITY = {
  expiryPolicy: Word(EXPIRY_POLICIES, {
    title: 'Expired value goes to',
    'x-labels': { operator: 'The operator', issuer: 'Its issuer', unclaimed: 'A state' },
    description:
      'Who gets expired money of future batches. `issuer`: the float of the merchant that generated the voucher.',
  }),
  validityDays: Type.Integer({
    title: 'Valid for (days)',
    minimum: 1,
    maximum: DAYS_MAX,
    description: 'How long vouchers are valid.',
  }),
  validity: Nullable(Type.String({ pattern: '^[1-9][0-9]?y-end-of-year$', examples: ['3y-end-of-year'] }), {
    title: 'Valid by the calendar',
    description:
      'Takes the place of the days: `3y-end-of-year` ends with the third year after that of the order.',
  }),
};
/** In an input: in major units. */
const AMOUNTS = {
  minValue: Titled('Minimum value', Amount('The minimum value of a voucher.')),
  maxValue: Titled('Maximum value', Amount('The maximum value of a voucher.')),
  cashOutBelow: Titled(
    'Cash-out at tills below',
    Nullable(Amount('In major units.'), {
      description:
        'Tills pay out a balance below this in cash, in major units; null: none. It applies to existing vouchers too.',
    }),
  ),
  outstandingMax: Titled(
    'Most outstanding',
    Nullable(Amount('In major units.'), {
      description:
        'The most that its vouchers may hold together, in major units; null: no limit. An order or an activation ' +
        'above it is refused (03).',
    }),
  ),
};
type Amounts = { [Field in keyof typeof AMOUNTS]: Static<(typeof AMOUNTS)[Field]> };
type Minor<Given> = { [Field in keyof Given]: null extends Given[Field] ? bigint | null : bigint };

const inMinorUnits = ({ title, type }: { title?: string; type?: string }) =>
  Type.Unsafe<unknown>({ ...Money(SETTING), title, type });
/** The same amounts in an answer and in a row: in minor units. */
const MINOR = Object.fromEntries(
  Object.entries<TSchema>(AMOUNTS).map(([field, schema]) => [field, inMinorUnits(schema)]),
) as { [Field in keyof Amounts]: TUnsafe<Minor<Amounts>[Field]> };

/** A first product needs none of these. */
const FOLDED = { isFolded: true };
const CHANGES = Type.Partial(
  Type.Object({
    ...inSection('identity', { name: Name }),
    ...inSection('value', { ...AMOUNTS, ...QUANTITIES }, FOLDED),
    ...inSection('validity', VALIDITY, FOLDED),
    ...inSection('cards', CARDS, FOLDED),
  }),
).properties;
const { name: _name, ...OTHER_CHANGES } = CHANGES;

/** Returns fields for an answer, in which a number is a setting and opens into nothing. */
function settings<Fields extends TProperties>(fields: Fields): Fields {
  const opened = Object.entries<TSchema>(fields).map(([field, schema]) => [
    field,
    [(schema as { type?: unknown }).type].flat().includes('integer') ? Opening(SETTING, schema) : schema,
  ]);
  return Object.fromEntries(opened);
}

const ProductSchema = Type.Object(
  {
    code: Text,
    name: Name,
    currency: Text,
    activation: Activation,
    scope: Scope,
    ...settings(VALIDITY),
    ...settings(QUANTITIES),
    onSale: Type.Boolean(),
    ...MINOR,
    ...CARDS,
    merchantId: Nullable(MerchantId),
  },
  { title: 'Product' },
);
export const ProductRow = Type.Object({
  id: Type.Integer(),
  ...ProductSchema.properties,
  decimals: Type.Integer(),
});

/** A product. The values are in minor units. */
export type Product = Static<typeof ProductRow>;

const COLUMNS = columnsOf(ProductRow);

/** A new product. The other fields are null, or have the default of their column. */
type NewProduct = Partial<Product> &
  Pick<Product, 'code' | 'name' | keyof ReturnType<typeof productDefaults>>;

/** What a new product has unless it is given. */
const DEFAULTS = {
  activation: 'immediate',
  scope: 'network',
  expiryPolicy: 'operator',
  maxQuantity: 100_000,
  validityDays: 365,
} as const;
/** The default maximum value, in major units. */
const DEFAULT_VALUE_MAX = 100_000n;
/** The default minimum value is a hundredth, or one minor unit if the currency has no hundredths. */
const DECIMALS_MIN = 2;

export function productDefaults(currency: string, decimals: number) {
  return {
    currency,
    decimals,
    ...DEFAULTS,
    minValue: 10n ** BigInt(Math.max(decimals - DECIMALS_MIN, 0)),
    maxValue: DEFAULT_VALUE_MAX * 10n ** BigInt(decimals),
  } as const;
}

const insertProduct = (product: NewProduct): Sql => sql`
${insertInto('products', storedAs(ProductRow, product))}
on conflict on constraint products_code_unique do nothing returning ${COLUMNS}`;

/** Creates the product `DEFAULT` if it is missing. Several processes can do so at once. */
export async function ensureDefaultProduct(db: Queries, currency: string): Promise<void> {
  if (await findProduct(db, DEFAULT_PRODUCT)) return;
  const decimals = decimalsOf(currency);
  if (decimals === undefined) throw new Error(`${currency} is not a currency of ISO 4217`);
  await db.query(
    insertProduct({ code: DEFAULT_PRODUCT, name: 'Voucher', ...productDefaults(currency, decimals) }),
  );
}

/** Returns a product as the audit shows it. */
function termsOf({ id: _id, ...terms }: Product): Details {
  const shown = Object.entries(terms).map(([field, value]) => [
    field,
    typeof value === 'bigint' ? toSum(terms.currency, value) : value,
  ]);
  return Object.fromEntries(shown) as Details;
}

/** Creates a product. @returns undefined if the code exists already */
export async function createProduct(operator: Operator, wanted: NewProduct): Promise<Product | undefined> {
  return operator.service.db.transaction(async (tx) => {
    const [product] = await tx.query<Product>(insertProduct(wanted));
    if (!product) return undefined;
    await audit(tx, operator, {
      action: 'product.create',
      subject: `product ${product.code}`,
      after: termsOf(product),
    });
    return product;
  });
}

export async function findProduct(db: Queries, code: string): Promise<Product | undefined> {
  const [product] = await db.query<Product>(sql`select ${COLUMNS} from products where code = ${code}`);
  return product;
}

/** Returns a product. @throws Problem if there is no such product */
export async function requireProduct(db: Queries, code: string): Promise<Product> {
  return requireRow(db, sql`select ${COLUMNS} from products where code = ${code}`, `product ${code}`);
}

/** Returns all products, oldest first. */
export async function listProducts(db: Queries): Promise<Product[]> {
  return db.query<Product>(sql`select ${COLUMNS} from products order by id limit 10000`);
}

type Change = {
  readonly action: string;
  readonly wanted: Partial<Product>;
  /** What the audit shows of the product. */
  readonly shown: (product: Product) => Details;
};

/** Changes a product, for future batches: existing vouchers do not change. @throws Problem */
async function change(operator: Operator, code: string, { action, wanted, shown }: Change): Promise<Product> {
  return operator.service.db.transaction(async (tx) => {
    const before = await requireRow<Product>(
      tx,
      sql`select ${COLUMNS} from products where code = ${code} for no key update`,
      `product ${code}`,
    );
    checkValues({ ...before, ...wanted });
    const [after] = (await tx.query<Product>(sql`
update products set ${assign(storedAs(ProductRow, wanted))} where code = ${code} returning ${COLUMNS}`)) as [
      Product,
    ];
    // Each limit begins its own count.
    if (after.outstandingMax !== before.outstandingMax)
      await tx.query(sql`select begin_holding(${after.id}, ${operator.service.clock()})`);
    await audit(tx, operator, {
      action,
      subject: `product ${code}`,
      before: shown(before),
      after: shown(after),
    });
    return after;
  });
}

function checkValues({ minValue, maxValue }: Pick<Product, 'minValue' | 'maxValue'>): void {
  if (maxValue < minValue) throw invalid('maxValue', 'minimum', 'is below `minValue`');
}

function checkOutstanding(
  { service: { buckets } }: Caller,
  { outstandingMax }: { readonly outstandingMax?: bigint | null },
): void {
  if (typeof outstandingMax === 'bigint') requireOneServer(buckets, 'no limit bounds what vouchers hold');
}

/** Returns an input with its amounts in minor units. @throws Problem for too many decimals */
function inMinor<Given extends Partial<Amounts>>(
  given: Given,
  currency: string,
): Omit<Given, keyof Amounts> & Partial<Minor<Amounts>> {
  const fields = Object.entries(given).map(([field, value]) => [
    field,
    field in AMOUNTS && typeof value === 'number' ? minorOf(value, currency, field) : value,
  ]);
  return Object.fromEntries(fields);
}

const create = changing({
  name: 'product.create',
  summary: 'Create a product',
  path: '/products',
  input: {
    ...inSection('identity', {
      code: NewProductCode,
      name: Name,
      currency: Type.Optional({
        ...Currency,
        description: `A code of ISO 4217; left out: that of the product ${DEFAULT_PRODUCT}.`,
      }),
      merchantId: Type.Optional(
        Nullable(MerchantId, { description: 'The only merchant that may generate it.' }),
      ),
    }),
    ...withDefaults(
      {
        ...OTHER_CHANGES,
        ...inSection(
          'validity',
          { activation: Type.Optional(Activation), scope: Type.Optional(Scope) },
          FOLDED,
        ),
      },
      DEFAULTS,
    ),
  },
  output: ProductSchema,
  roles: MANAGE,
  approval: alone('It moves no money: a merchant pays for what is generated from it.'),
  status: 201,
  async run(caller, { merchantId = null, ...given }) {
    const { db } = caller.service;
    const currency = given.currency ?? (await requireProduct(db, DEFAULT_PRODUCT)).currency;
    const wanted = {
      ...productDefaults(currency, requireDecimals(currency)),
      ...inMinor(given, currency),
      merchantId,
    };
    if (merchantId !== null) {
      const id = toId(merchantId, 'merchantId');
      const [merchant] = await db.query(sql`select from merchants where id = ${id}`);
      if (!merchant) throw notFound(`merchant ${merchantId}`);
    }
    checkValues(wanted);
    checkOutstanding(caller, wanted);
    await requireDesign(db, wanted.design);
    const product = await createProduct(caller, wanted);
    if (!product) throw new Problem('exists', `the product ${wanted.code} exists already`);
    return product;
  },
});

const list = listing({
  name: 'product.list',
  summary: 'List products, oldest first',
  path: '/products',
  filters: {
    reached: Type.Optional(
      Type.Boolean({ description: 'Only those whose most outstanding has refused a request today.' }),
    ),
  },
  columns: ['code', 'name', 'onSale', 'scope', 'validityDays', 'minValue', 'maxValue'],
  item: ProductSchema,
  roles: SEE_VOUCHERS,
  sorts: {
    id: sql`id`,
    isNewestFirst: false,
    keys: { code: byText(sql`code`), name: byText(sql`name`) },
  },
  rows: ({ service: { readDb, clock } }, { reached = false }, _after, count, order) =>
    readDb.query<Product>(sql`
select ${COLUMNS} from products
where ${order.after} and (not ${reached}::boolean or id in (
  select h.product_id from product_holdings h where day_of(h.refused_at) = day_of(${clock()})))
order by ${order.by} limit ${count}`),
});

const show = reading({
  name: 'product.show',
  summary: 'Get a product',
  path: '/products/:code',
  input: { code: ProductCode },
  output: ProductSchema,
  roles: SEE_VOUCHERS,
  run: ({ service }, { code }) => requireProduct(service.db, code),
});

const set = changing({
  name: 'product.set',
  summary: 'Change a product; existing batches keep their terms',
  method: 'PATCH',
  path: '/products/:code',
  input: { code: ProductCode, ...CHANGES },
  output: ProductSchema,
  roles: MANAGE,
  approval: alone('It moves no money: the terms of existing batches stay.'),
  async run(caller, { code, ...given }) {
    const { currency } = await requireProduct(caller.service.db, code);
    const wanted = inMinor(given, currency);
    requireChange(wanted, 'name');
    checkOutstanding(caller, wanted);
    await requireDesign(caller.service.db, wanted.design);
    return change(caller, code, { action: 'product.set', wanted, shown: termsOf });
  },
});

function sale(verb: 'on-sale' | 'off-sale') {
  return changing({
    name: `product.${verb}`,
    title: verb === 'on-sale' ? 'Put on sale' : 'Take off sale',
    summary: verb === 'on-sale' ? 'Let merchants generate a product' : 'Refuse to generate a product (15)',
    path: `/products/:code/${verb}`,
    input: { code: ProductCode },
    output: ProductSchema,
    roles: MANAGE,
    approval: alone('It moves no money, and can be undone.'),
    run: (caller, { code }) =>
      change(caller, code, {
        action: `product.${verb}`,
        wanted: { onSale: verb === 'on-sale' },
        shown: ({ onSale }) => ({ onSale }),
      }),
  });
}

export const products = { create, list, show, set, onSale: sale('on-sale'), offSale: sale('off-sale') };

export const OPERATIONS = tableOf(...Object.values(products));
