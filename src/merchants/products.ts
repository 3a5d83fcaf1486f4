import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { decimalsOf, toSum } from '../money.ts';
import {
  findProductRow,
  insertProduct,
  listProductRows,
  listProductRowsAfter,
  lockProduct,
  type NewProduct,
  type ProductChange,
  setOnSale,
  setProduct,
} from './queries.ts';

export type Product = NewProduct & { readonly id: number; readonly onSale: boolean };

/** The product that always exists. */
export const DEFAULT_PRODUCT = 'DEFAULT';

const VALIDITY_DAYS = 365;
const QUANTITY_DEFAULT_MAX = 100_000;
/** The default highest value, in major units. */
const GREATEST_VALUE = 100_000n;
/** The default lowest value is a hundredth, or one minor unit if the currency has no hundredths. */
const DECIMALS_MIN = 2;

/** Returns the default terms of a product. */
export function productDefaults(currency: string, decimals: number) {
  return {
    currency,
    decimals,
    activation: 'immediate',
    scope: 'network',
    expiryPolicy: 'operator',
    minValueMinor: 10n ** BigInt(Math.max(decimals - DECIMALS_MIN, 0)),
    maxValueMinor: GREATEST_VALUE * 10n ** BigInt(decimals),
    maxQuantity: QUANTITY_DEFAULT_MAX,
    validityDays: VALIDITY_DAYS,
    merchantId: null,
  } as const;
}

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
function termsOf({ minValueMinor, maxValueMinor, decimals, id: _id, ...terms }: Product) {
  const sum = (minor: bigint) => toSum(terms.currency, { minor, decimals });
  return { ...terms, minValue: sum(minValueMinor), maxValue: sum(maxValueMinor) };
}

/** Creates a product. @returns undefined if the code exists already */
export async function createProduct(operator: Operator, wanted: NewProduct): Promise<Product | undefined> {
  return operator.service.db.transaction(async (tx) => {
    const [row] = await tx.query<ProductRow>(insertProduct(wanted));
    if (!row) return undefined;
    const product = toProduct(row);
    await audit(tx, operator, {
      action: 'product.create',
      subject: `product ${product.code}`,
      after: termsOf(product),
    });
    return product;
  });
}

export async function findProduct(db: Queries, code: string): Promise<Product | undefined> {
  const [row] = await db.query<ProductRow>(findProductRow(code));
  return row && toProduct(row);
}

export async function listProducts(db: Queries): Promise<Product[]> {
  return (await db.query<ProductRow>(listProductRows())).map(toProduct);
}

/** Returns a page of products, oldest first, after an id. */
export async function pageOfProducts(db: Queries, after: number, limit: number): Promise<Product[]> {
  return (await db.query<ProductRow>(listProductRowsAfter(after, limit))).map(toProduct);
}

/** The lowest value of a product would exceed its highest. */
export class ValuesNotOrdered extends Error {}

/**
 * Changes terms of a product, for future batches.
 * @returns undefined if there is none
 * @throws ValuesNotOrdered
 */
export async function changeProduct(
  operator: Operator,
  code: string,
  wanted: ProductChange,
): Promise<Product | undefined> {
  return operator.service.db.transaction(async (tx) => {
    const [row] = await tx.query<ProductRow>(lockProduct(code));
    if (!row) return undefined;
    const before = toProduct(row);
    const least = wanted.minValueMinor ?? before.minValueMinor;
    if (least > (wanted.maxValueMinor ?? before.maxValueMinor)) throw new ValuesNotOrdered();
    const [changed] = await tx.query<ProductRow>(setProduct(code, wanted));
    const after = toProduct(changed as ProductRow);
    await audit(tx, operator, {
      action: 'product.set',
      subject: `product ${code}`,
      before: termsOf(before),
      after: termsOf(after),
    });
    return after;
  });
}

/** Puts a product on sale or takes it off sale. Existing vouchers do not change. */
export async function putOnSale(
  operator: Operator,
  code: string,
  onSale: boolean,
): Promise<Product | undefined> {
  return operator.service.db.transaction(async (tx) => {
    const [before] = await tx.query<{ on_sale: boolean }>(lockProduct(code));
    const [row] = await tx.query<ProductRow>(setOnSale(code, onSale));
    if (!before || !row) return undefined;
    const action = onSale ? 'product.on-sale' : 'product.off-sale';
    await audit(tx, operator, {
      action,
      subject: `product ${code}`,
      before: { onSale: before.on_sale },
      after: { onSale },
    });
    return toProduct(row);
  });
}

type ProductRow = {
  id: number;
  code: string;
  name: string;
  currency: string;
  decimals: number;
  activation: Product['activation'];
  scope: Product['scope'];
  expiry_policy: Product['expiryPolicy'];
  min_value_minor: bigint;
  max_value_minor: bigint;
  max_quantity: number;
  validity_days: number;
  merchant_id: number | null;
  on_sale: boolean;
};

function toProduct(row: ProductRow): Product {
  return {
    id: row.id,
    code: row.code,
    name: row.name,
    currency: row.currency,
    decimals: row.decimals,
    activation: row.activation,
    scope: row.scope,
    expiryPolicy: row.expiry_policy,
    minValueMinor: row.min_value_minor,
    maxValueMinor: row.max_value_minor,
    maxQuantity: row.max_quantity,
    validityDays: row.validity_days,
    merchantId: row.merchant_id,
    onSale: row.on_sale,
  };
}
