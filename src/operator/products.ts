import Type, { type Static } from 'typebox';
import { findMerchant } from '../merchants/merchants.ts';
import {
  changeProduct,
  createProduct as create,
  DEFAULT_PRODUCT,
  findProduct,
  type Product as ProductInfo,
  pageOfProducts,
  productDefaults,
  putOnSale,
  ValuesNotOrdered,
} from '../merchants/products.ts';
import { toNumber } from '../money.ts';
import { alone, type Caller, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MANAGE, SEE_VOUCHERS } from '../principal.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import {
  Amount,
  Currency,
  Input,
  Line,
  MerchantId,
  minorOf,
  Nullable,
  Reason,
  requireDecimals,
  Text,
  toId,
  Word,
} from '../schema.ts';

const QUANTITY_MAX = 5_000_000;
const DAYS_MAX = 36_500;

export const ProductCode = Type.String({
  pattern: '^[A-Za-z0-9_.-]{1,50}$',
  description: 'The code of the product.',
  examples: ['DEFAULT'],
});

const Activation = Word(['immediate', 'on-activation'] as const, {
  description: '`on-activation`: vouchers carry their value once they are activated.',
});
const Scope = Word(['network', 'issuer'] as const, {
  description: '`network`: any merchant may redeem; `issuer`: only the merchant that generated the voucher.',
});
const ExpiryPolicy = Word(['operator', 'issuer', 'unclaimed'] as const, {
  description:
    'Who gets expired money of future batches. `issuer`: the float of the merchant that generated the voucher.',
});
const Name = Line(200, 'The name of the product.', 'Gift card');
const MaxQuantity = Type.Integer({
  minimum: 1,
  maximum: QUANTITY_MAX,
  description: 'The highest quantity of a batch.',
});
const ValidityDays = Type.Integer({
  minimum: 1,
  maximum: DAYS_MAX,
  description: 'How long vouchers are valid.',
});

const ProductSchema = Type.Object({
  code: Text,
  name: Text,
  currency: Text,
  activation: Activation,
  scope: Scope,
  expiryPolicy: ExpiryPolicy,
  maxQuantity: MaxQuantity,
  validityDays: ValidityDays,
  onSale: Type.Boolean(),
  minValue: Type.Number(),
  maxValue: Type.Number(),
  merchantId: Nullable(MerchantId),
});

export type Product = Static<typeof ProductSchema>;

function toJson(product: ProductInfo): Product {
  const { decimals, minValueMinor, maxValueMinor, id: _id, merchantId, ...rest } = product;
  return {
    ...rest,
    minValue: toNumber({ minor: minValueMinor, decimals }),
    maxValue: toNumber({ minor: maxValueMinor, decimals }),
    merchantId: merchantId === null ? null : String(merchantId),
  };
}

/** Returns a product. @throws Problem if there is no such product */
export async function requireProduct({ service: { db } }: Caller, code: string): Promise<ProductInfo> {
  const product = await findProduct(db, code);
  if (!product) throw notFound(`product ${code}`);
  return product;
}

const createProduct = changing({
  name: 'product.create',
  summary: 'Create a product',
  method: 'POST',
  path: '/products',
  command: 'product create',
  input: Input({
    code: ProductCode,
    name: Name,
    activation: Type.Optional(Activation),
    scope: Type.Optional(Scope),
    expiryPolicy: Type.Optional(ExpiryPolicy),
    currency: Type.Optional(Currency),
    minValue: Type.Optional(Amount('The least value of a voucher.')),
    maxValue: Type.Optional(Amount('The greatest value of a voucher.')),
    maxQuantity: Type.Optional(MaxQuantity),
    validityDays: Type.Optional(ValidityDays),
    merchantId: Type.Optional(
      Nullable(MerchantId, { description: 'The only merchant that may generate it.' }),
    ),
    reason: Reason,
  }),
  output: ProductSchema,
  roles: MANAGE,
  approval: alone('It moves no money: a merchant pays for what is generated from it.'),
  status: 201,
  async run(caller, input) {
    const currency = input.currency ?? (await requireProduct(caller, DEFAULT_PRODUCT)).currency;
    const defaults = productDefaults(currency, requireDecimals(currency));
    const { code, name, activation = 'immediate', scope = 'network', maxQuantity, validityDays } = input;
    const { expiryPolicy = 'operator' } = input;
    const wanted = {
      ...defaults,
      code,
      name,
      activation,
      scope,
      expiryPolicy,
      ...(input.minValue !== undefined && { minValueMinor: minorOf(input.minValue, currency, 'minValue') }),
      ...(input.maxValue !== undefined && { maxValueMinor: minorOf(input.maxValue, currency, 'maxValue') }),
      ...(maxQuantity !== undefined && { maxQuantity }),
      ...(validityDays !== undefined && { validityDays }),
      merchantId: input.merchantId ? toId(input.merchantId, 'merchantId') : null,
    };
    if (wanted.merchantId !== null && !(await findMerchant(caller.service.db, wanted.merchantId)))
      throw notFound(`merchant ${wanted.merchantId}`);
    if (wanted.maxValueMinor < wanted.minValueMinor)
      throw invalid('maxValue', 'minimum', 'is below minValue');
    const product = await create(caller, wanted);
    if (!product) throw new Problem('exists', `the product ${code} exists already`);
    return toJson(product);
  },
});

const listProducts = reading({
  name: 'product.list',
  summary: 'List products, oldest first',
  method: 'GET',
  path: '/products',
  command: 'product list',
  input: Input({ ...PAGE }),
  output: Page(ProductSchema),
  roles: SEE_VOUCHERS,
  async run({ service }, { cursor, limit = 50 }) {
    const [after = 0] = readCursor('products', {}, cursor) ?? [];
    const rows = await pageOfProducts(service.readDb, Number(after), limit + 1);
    const { items, nextCursor } = pageOf('products', {}, rows, limit, ({ id }) => [id]);
    return { items: items.map(toJson), nextCursor };
  },
});

const showProduct = reading({
  name: 'product.show',
  summary: 'Get a product',
  method: 'GET',
  path: '/products/:code',
  command: 'product show',
  input: Input({ code: ProductCode }),
  output: ProductSchema,
  roles: SEE_VOUCHERS,
  run: async (caller, { code }) => toJson(await requireProduct(caller, code)),
});

const setProduct = changing({
  name: 'product.set',
  summary: 'Change a product; existing batches keep their terms',
  method: 'PATCH',
  path: '/products/:code',
  command: 'product set',
  input: Input({
    code: ProductCode,
    name: Type.Optional(Name),
    expiryPolicy: Type.Optional(ExpiryPolicy),
    minValue: Type.Optional(Amount('The least value of a voucher.')),
    maxValue: Type.Optional(Amount('The greatest value of a voucher.')),
    maxQuantity: Type.Optional(MaxQuantity),
    validityDays: Type.Optional(ValidityDays),
    reason: Reason,
  }),
  output: ProductSchema,
  roles: MANAGE,
  approval: alone('It moves no money: the terms of existing batches stay.'),
  async run(caller, input) {
    const { code, name = null, expiryPolicy = null, minValue, maxValue } = input;
    const { maxQuantity = null, validityDays = null } = input;
    const given = [name, expiryPolicy, minValue ?? null, maxValue ?? null, maxQuantity, validityDays];
    if (given.every((each) => each === null))
      throw invalid('name', 'required', 'or another field is required: there is nothing to change');
    const { currency } = await requireProduct(caller, code);
    const changed = await changeProduct(caller, code, {
      name,
      expiryPolicy,
      minValueMinor: minValue === undefined ? null : minorOf(minValue, currency, 'minValue'),
      maxValueMinor: maxValue === undefined ? null : minorOf(maxValue, currency, 'maxValue'),
      maxQuantity,
      validityDays,
    }).catch((error: unknown) => {
      if (error instanceof ValuesNotOrdered) throw invalid('maxValue', 'minimum', 'is below minValue');
      throw error;
    });
    if (!changed) throw notFound(`product ${code}`);
    return toJson(changed);
  },
});

function sale(verb: 'on-sale' | 'off-sale') {
  return changing({
    name: `product.${verb}`,
    summary: verb === 'on-sale' ? 'Let merchants generate a product' : 'Refuse to generate a product (15)',
    method: 'POST',
    path: `/products/:code/${verb}`,
    command: `product ${verb}`,
    input: Input({ code: ProductCode, reason: Reason }),
    output: ProductSchema,
    roles: MANAGE,
    approval: alone('It moves no money, and can be undone.'),
    async run(caller, { code }) {
      await requireProduct(caller, code);
      return toJson((await putOnSale(caller, code, verb === 'on-sale')) as ProductInfo);
    },
  });
}

export const products = {
  create: createProduct,
  list: listProducts,
  show: showProduct,
  set: setProduct,
  onSale: sale('on-sale'),
  offSale: sale('off-sale'),
};

export const PRODUCTS = tableOf(...Object.values(products));
