import type { Command } from 'commander';
import { readConfig } from '../config.ts';
import { type Product, products } from '../operator/products.ts';
import { amountText, parseProduct } from './merchant.ts';
import { printFields, printTable, say, wrongUsage } from './output.ts';
import { oneOf, parseCount, parseCurrencyCode, parseId, parseText, parseValue } from './parse.ts';
import { LISTED_MAX, listCommand, performCommand } from './perform.ts';

const NAME_MAX = 200;
const POLICIES = ['operator', 'issuer', 'unclaimed'] as const;
const QUANTITY_MAX = 5_000_000;
const DAYS_MAX = 36_500;

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
      'network: any merchant may redeem; issuer: only the merchant that generated the voucher',
      'network',
    )
    .option(
      '--expiry-policy <policy>',
      'who gets expired money: operator, issuer (its float), or unclaimed',
      'operator',
    )
    .option('--currency <code>', 'the currency of its vouchers (default: SCRIP_CURRENCY)')
    .option('--min-value <value>', 'the lowest value of a voucher (default: 0.01, or one minor unit)')
    .option('--max-value <value>', 'the highest value of a voucher (default: 100000)')
    .option(
      '--max-quantity <count>',
      `the highest quantity of a batch, up to ${QUANTITY_MAX} (default: 100000)`,
    )
    .option('--validity-days <days>', 'how long vouchers are valid (default: 365)')
    .option('--merchant <id>', 'the only merchant that may generate it')
    .option('--json', 'print JSON')
    .action(create);
  product
    .command('set <code>')
    .description('change a product; existing batches keep their terms')
    .option('--name <name>', 'its name')
    .option('--expiry-policy <policy>', 'who gets expired money: operator, issuer or unclaimed')
    .option('--min-value <value>', 'the lowest value of a voucher')
    .option('--max-value <value>', 'the highest value of a voucher')
    .option('--max-quantity <count>', `the highest quantity of a batch, up to ${QUANTITY_MAX}`)
    .option('--validity-days <days>', 'how long vouchers are valid')
    .option('--json', 'print JSON')
    .action(set);
  product.command('list').description('list all products').option('--json', 'print JSON').action(list);
  product.command('show <code>').description('show a product').option('--json', 'print JSON').action(show);
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
      .action((code: string, options: Json) =>
        performCommand(products[onSale ? 'onSale' : 'offSale'], { code: parseProduct(code) }, options, () =>
          say('done'),
        ),
      );
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
  const { code, minValue, maxValue, maxQuantity, validityDays, merchant } = options;
  if (!/^[\w.-]{1,50}$/.test(code))
    wrongUsage('--code takes 1 to 50 letters, digits, dots, dashes and underscores');
  const input = {
    code,
    name: parseText(options.name, '--name', NAME_MAX),
    activation: oneOf(options.activation, '--activation', ['immediate', 'on-activation'] as const),
    scope: oneOf(options.scope, '--scope', ['network', 'issuer'] as const),
    expiryPolicy: oneOf(options.expiryPolicy, '--expiry-policy', POLICIES),
    currency: parseCurrencyCode(options.currency ?? readConfig().currency),
    ...termsOf({ minValue, maxValue, maxQuantity, validityDays }),
    ...(merchant !== undefined && { merchantId: String(parseId(merchant)) }),
  };
  await performCommand(products.create, input, options, printFields, { create: true });
}

type Terms = { minValue?: string; maxValue?: string; maxQuantity?: string; validityDays?: string };

function termsOf({
  minValue,
  maxValue,
  maxQuantity,
  validityDays,
}: { [Name in keyof Terms]: Terms[Name] | undefined }) {
  return {
    ...(minValue !== undefined && { minValue: parseValue(minValue, '--min-value') }),
    ...(maxValue !== undefined && { maxValue: parseValue(maxValue, '--max-value') }),
    ...(maxQuantity !== undefined && {
      maxQuantity: parseCount(maxQuantity, '--max-quantity', 1, QUANTITY_MAX),
    }),
    ...(validityDays !== undefined && {
      validityDays: parseCount(validityDays, '--validity-days', 1, DAYS_MAX),
    }),
  };
}

async function set(
  text: string,
  options: Json & Terms & { name?: string; expiryPolicy?: string },
): Promise<void> {
  const { name, expiryPolicy, minValue, maxValue, maxQuantity, validityDays } = options;
  const terms = {
    ...(name !== undefined && { name: parseText(name, '--name', NAME_MAX) }),
    ...(expiryPolicy !== undefined && {
      expiryPolicy: oneOf(expiryPolicy, '--expiry-policy', POLICIES),
    }),
    ...termsOf({ minValue, maxValue, maxQuantity, validityDays }),
  };
  if (Object.keys(terms).length === 0)
    wrongUsage('nothing to change: give --name, --expiry-policy, a limit or --validity-days');
  await performCommand(products.set, { code: parseProduct(text), ...terms }, options, printFields);
}

async function show(code: string, options: Json): Promise<void> {
  await performCommand(products.show, { code: parseProduct(code) }, options, printFields);
}

async function list(options: Json): Promise<void> {
  await listCommand(products.list, {}, LISTED_MAX, options, (found: Product[]) =>
    printTable(
      ['code', 'name', 'currency', 'activation', 'scope', 'values', 'quantity', 'days', 'on sale'],
      found.map((each) => [
        each.code,
        each.name,
        each.currency,
        each.activation,
        each.scope,
        `${amountText(each.minValue, each.currency)} to ${amountText(each.maxValue, each.currency)}`,
        String(each.maxQuantity),
        String(each.validityDays),
        each.onSale ? 'yes' : 'no',
      ]),
      ['code', 'name'],
    ),
  );
}
