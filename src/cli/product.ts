import type { Command } from 'commander';
import {
  createProduct,
  findProduct,
  listProducts,
  type Product,
  productDefaults,
  putOnSale,
} from '../merchants/products.ts';
import { toNumber, toText } from '../money.ts';
import { withOperator, withService } from './open.ts';
import { fail, printFields, printJson, printTable } from './output.ts';
import { oneOf, parseAmount, parseCount, parseCurrency, parseId } from './parse.ts';

const MOST_QUANTITY = 5_000_000;
const MOST_DAYS = 36_500;

export function registerProduct(program: Command): void {
  const product = program.command('product').description('products: the terms on which vouchers are generated');
  product
    .command('create')
    .description('make a product')
    .requiredOption('--code <code>', 'what merchants name it by')
    .requiredOption('--name <name>', 'what it is called')
    .option(
      '--activation <when>',
      'immediate, or on-activation: a voucher carries its value once it is activated',
      'immediate',
    )
    .option('--scope <scope>', 'network: any merchant redeems; issuer: only the one that generated', 'network')
    .option('--currency <code>', 'of its vouchers (default: SCRIP_CURRENCY)')
    .option('--min-value <value>', 'least value of a voucher (default: one minor unit)')
    .option('--max-value <value>', 'greatest value of a voucher (default: 100000)')
    .option('--max-quantity <count>', `most vouchers of a batch, up to ${MOST_QUANTITY} (default: 100000)`)
    .option('--validity-days <days>', 'how long vouchers are valid (default: 365)')
    .option('--merchant <id>', 'the only merchant that may generate it')
    .option('--json', 'print JSON')
    .action(create);
  product.command('list').description('all products').option('--json', 'print JSON').action(list);
  product.command('show <code>').description('one product').option('--json', 'print JSON').action(show);
  for (const [name, onSale] of [
    ['on-sale', true],
    ['off-sale', false],
  ] as const) {
    product
      .command(`${name} <code>`)
      .description(
        onSale ? 'let merchants generate it' : 'refuse to generate it (15); vouchers sold stay what they are',
      )
      .action(async (code: string) => {
        await withOperator(async (operator) => {
          if (!(await putOnSale(operator, code, onSale))) fail('there is no such product');
          process.stdout.write('done\n');
        });
      });
  }
}

type CreateOptions = {
  code: string;
  name: string;
  activation: string;
  scope: string;
  currency?: string;
  minValue?: string;
  maxValue?: string;
  maxQuantity?: string;
  validityDays?: string;
  merchant?: string;
  json?: boolean;
};

async function create(options: CreateOptions): Promise<void> {
  if (!/^[\w.-]{1,50}$/.test(options.code)) fail('--code takes 1 to 50 letters, digits, dots, dashes and underscores');
  const activation = oneOf(options.activation, '--activation', ['immediate', 'on-activation'] as const);
  const scope = oneOf(options.scope, '--scope', ['network', 'issuer'] as const);
  await withOperator(async (operator, config) => {
    const currency = options.currency ?? config.currency;
    const defaults = productDefaults(currency, parseCurrency(currency));
    const value = (text: string | undefined, option: string, fallback: bigint) =>
      text === undefined ? fallback : parseAmount(text, option, currency);
    const wanted = {
      ...defaults,
      code: options.code,
      name: options.name,
      activation,
      scope,
      minValueMinor: value(options.minValue, '--min-value', defaults.minValueMinor),
      maxValueMinor: value(options.maxValue, '--max-value', defaults.maxValueMinor),
      maxQuantity: options.maxQuantity
        ? parseCount(options.maxQuantity, '--max-quantity', 1, MOST_QUANTITY)
        : defaults.maxQuantity,
      validityDays: options.validityDays
        ? parseCount(options.validityDays, '--validity-days', 1, MOST_DAYS)
        : defaults.validityDays,
      merchantId: options.merchant ? parseId(options.merchant) : null,
    };
    if (wanted.maxValueMinor < wanted.minValueMinor) fail('--max-value is below --min-value');
    const product = (await createProduct(operator, wanted)) ?? fail(`there is a product ${options.code} already`);
    if (options.json) return printJson(toJson(product));
    printFields(toJson(product));
  });
}

async function show(code: string, options: { json?: boolean }): Promise<void> {
  await withService(async ({ db }) => {
    const product = (await findProduct(db, code)) ?? fail('there is no such product');
    if (options.json) return printJson(toJson(product));
    printFields(toJson(product));
  });
}

async function list(options: { json?: boolean }): Promise<void> {
  await withService(async ({ db }) => {
    const products = await listProducts(db);
    if (options.json) return printJson(products.map(toJson));
    printTable(
      ['code', 'name', 'currency', 'activation', 'scope', 'values', 'most', 'days', 'on sale'],
      products.map((each) => [
        each.code,
        each.name,
        each.currency,
        each.activation,
        each.scope,
        `${toText({ minor: each.minValueMinor, decimals: each.decimals })} to ${toText({ minor: each.maxValueMinor, decimals: each.decimals })}`,
        String(each.maxQuantity),
        String(each.validityDays),
        each.onSale ? 'yes' : 'no',
      ]),
    );
  });
}

function toJson(product: Product) {
  const { decimals, minValueMinor, maxValueMinor, id: _id, merchantId, ...rest } = product;
  return {
    ...rest,
    minValue: toNumber({ minor: minValueMinor, decimals }),
    maxValue: toNumber({ minor: maxValueMinor, decimals }),
    merchantId: merchantId === null ? null : String(merchantId),
  };
}
