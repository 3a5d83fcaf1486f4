import type { Command } from 'commander';
import {
  createProduct,
  listProducts,
  type Product,
  productDefaults,
  putOnSale,
  setProductExpiry,
} from '../merchants/products.ts';
import { toNumber, toText } from '../money.ts';
import { requireMerchant, requireProduct } from './merchant.ts';
import { withOperator, withService } from './open.ts';
import { fail, id, printFields, printJson, printTable, say, wrongUsage } from './output.ts';
import { oneOf, parseAmount, parseCount, parseCurrency, parseId, parseText } from './parse.ts';

const NAME_MAX = 200;
const QUANTITY_MAX = 5_000_000;
const DAYS_MAX = 36_500;
const POLICIES = ['operator', 'issuer', 'unclaimed'] as const;

type Json = { json?: boolean };

export function registerProduct(program: Command): void {
  const product = program
    .command('product')
    .description('products, the terms on which vouchers are generated');
  product
    .command('create')
    .description('create a product')
    .requiredOption('--code <code>', 'the code by which merchants name it')
    .requiredOption('--name <name>', 'its name')
    .option(
      '--activation <when>',
      'immediate, or on-activation: vouchers carry their value once they are activated',
      'immediate',
    )
    .option(
      '--scope <scope>',
      'network: any merchant redeems; issuer: only the one that generated',
      'network',
    )
    .option(
      '--expiry-policy <policy>',
      'to whom belongs what expires: operator, issuer (its float), or unclaimed',
      'operator',
    )
    .option('--currency <code>', 'the currency of its vouchers (default: SCRIP_CURRENCY)')
    .option('--min-value <value>', 'the least value of a voucher (default: 0.01, or one minor unit)')
    .option('--max-value <value>', 'the greatest value of a voucher (default: 100000)')
    .option(
      '--max-quantity <count>',
      `the greatest quantity of a batch, up to ${QUANTITY_MAX} (default: 100000)`,
    )
    .option('--validity-days <days>', 'how long vouchers are valid (default: 365)')
    .option('--merchant <id>', 'the only merchant that may generate it')
    .option('--json', 'print JSON')
    .action(create);
  product.command('list').description('list all products').option('--json', 'print JSON').action(list);
  product.command('show <code>').description('show a product').option('--json', 'print JSON').action(show);
  product
    .command('expiry-policy <code> <policy>')
    .description('decide to whom belongs what expires of later batches: operator, issuer or unclaimed')
    .option('--json', 'print JSON')
    .action(setPolicy);
  for (const [name, onSale] of [
    ['on-sale', true],
    ['off-sale', false],
  ] as const) {
    product
      .command(`${name} <code>`)
      .description(
        onSale ? 'let merchants generate it' : 'refuse to generate it (15); its vouchers stay as they are',
      )
      .option('--json', 'print JSON')
      .action((code: string, options: Json) => sell(code, onSale, options));
  }
}

type CreateOptions = Json & {
  code: string;
  name: string;
  activation: string;
  scope: string;
  expiryPolicy: string;
  currency?: string;
  minValue?: string;
  maxValue?: string;
  maxQuantity?: string;
  validityDays?: string;
  merchant?: string;
};

async function create(options: CreateOptions): Promise<void> {
  if (!/^[\w.-]{1,50}$/.test(options.code))
    wrongUsage('--code takes 1 to 50 letters, digits, dots, dashes and underscores');
  const name = parseText(options.name, '--name', NAME_MAX);
  const activation = oneOf(options.activation, '--activation', ['immediate', 'on-activation'] as const);
  const scope = oneOf(options.scope, '--scope', ['network', 'issuer'] as const);
  const expiryPolicy = oneOf(options.expiryPolicy, '--expiry-policy', POLICIES);
  const merchantId = options.merchant === undefined ? null : parseId(options.merchant);
  await withOperator(
    async (operator, config) => {
      const currency = options.currency ?? config.currency;
      const defaults = productDefaults(currency, parseCurrency(currency));
      const wanted = {
        ...defaults,
        ...boundsOf(options, defaults),
        code: options.code,
        name,
        activation,
        scope,
        expiryPolicy,
      };
      if (wanted.maxValueMinor < wanted.minValueMinor) wrongUsage('--max-value is below --min-value');
      if (merchantId !== null) await requireMerchant(operator.service.db, merchantId);
      const product =
        (await createProduct(operator, { ...wanted, merchantId })) ??
        fail(`the product ${options.code} exists already`, 'exists');
      print(product, options);
    },
    { create: true },
  );
}

function boundsOf(options: CreateOptions, defaults: ReturnType<typeof productDefaults>) {
  const { minValue, maxValue, maxQuantity, validityDays } = options;
  const value = (text: string | undefined, option: string, fallback: bigint) =>
    text === undefined ? fallback : parseAmount(text, option, defaults.currency);
  return {
    minValueMinor: value(minValue, '--min-value', defaults.minValueMinor),
    maxValueMinor: value(maxValue, '--max-value', defaults.maxValueMinor),
    maxQuantity: maxQuantity
      ? parseCount(maxQuantity, '--max-quantity', 1, QUANTITY_MAX)
      : defaults.maxQuantity,
    validityDays: validityDays
      ? parseCount(validityDays, '--validity-days', 1, DAYS_MAX)
      : defaults.validityDays,
  };
}

async function show(code: string, options: Json): Promise<void> {
  await withService(async ({ db }) => print(await requireProduct(db, code), options));
}

async function sell(code: string, onSale: boolean, options: Json): Promise<void> {
  await withOperator(async (operator) => {
    await requireProduct(operator.service.db, code);
    const product = await putOnSale(operator, code, onSale);
    if (product && options.json) return printJson(toJson(product));
    say('done');
  });
}

async function setPolicy(code: string, given: string, options: Json): Promise<void> {
  const policy = oneOf(given, 'the policy', POLICIES);
  await withOperator(async (operator) => {
    await requireProduct(operator.service.db, code);
    const product = await setProductExpiry(operator, code, policy);
    if (product && options.json) return printJson(toJson(product));
    say('done');
  });
}

async function list(options: Json): Promise<void> {
  await withService(async ({ db }) => {
    const products = await listProducts(db);
    if (options.json) return printJson(products.map(toJson));
    printTable(
      ['code', 'name', 'currency', 'activation', 'scope', 'values', 'quantity', 'days', 'on sale'],
      products.map((each) => [
        each.code,
        each.name,
        each.currency,
        each.activation,
        each.scope,
        `${valueText(each, each.minValueMinor)} to ${valueText(each, each.maxValueMinor)}`,
        String(each.maxQuantity),
        String(each.validityDays),
        each.onSale ? 'yes' : 'no',
      ]),
      ['code', 'name'],
    );
  });
}

/** A value of a product in major units, as text. */
export function valueText({ decimals }: Product, minor: bigint): string {
  return toText({ minor, decimals });
}

function print(product: Product, options: Json): void {
  if (options.json) printJson(toJson(product));
  else printFields(toJson(product));
}

function toJson(product: Product) {
  const { decimals, minValueMinor, maxValueMinor, id: _id, merchantId, ...rest } = product;
  return {
    ...rest,
    minValue: toNumber({ minor: minValueMinor, decimals }),
    maxValue: toNumber({ minor: maxValueMinor, decimals }),
    merchantId: id(merchantId),
  };
}
