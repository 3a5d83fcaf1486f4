import type { Command } from 'commander';
import { PERMISSIONS } from '../context.ts';
import { decimalsOf } from '../money.ts';
import { type Merchant, merchants } from '../operator/merchants.ts';
import { DEFAULT_PRODUCT } from '../products/products.ts';
import { notFound, printFields, printSecret, printTable, say, wrongUsage } from './output.ts';
import { parseCurrencyCode, parseId, parsePermission, parseText, parseValue, repeat } from './parse.ts';
import { LISTED_MAX, listCommand, performCommand } from './perform.ts';

const NAME_MAX = 200;

type Json = { json?: boolean };

export function registerMerchant(program: Command): void {
  const merchant = program.command('merchant').description('merchants, which sell and accept vouchers');
  merchant
    .command('create')
    .description('create a merchant with its first API key, whose secret is shown once')
    .requiredOption('--name <name>', 'its name')
    .option(
      '--permit <permission>',
      `a permission in addition to those that every merchant has (repeatable): ${PERMISSIONS.join(', ')}`,
      repeat,
    )
    .option('--float <amount>', 'money to put on its float, in major units')
    .option('--currency <code>', 'the currency of --float (default: that of its product)')
    .option('--product <code>', 'the product that it generates by default', DEFAULT_PRODUCT)
    .option('--opaque', 'answer an unknown code and a wrong PIN in the same way')
    .option('--json', 'print JSON')
    .action(create);
  merchant
    .command('list')
    .description('list merchants')
    .option('--name <text>', 'only those whose name has words that begin with these')
    .option('--json', 'print JSON')
    .action(list);
  merchant.command('show <id>').description('show a merchant').option('--json', 'print JSON').action(show);
  for (const [name, allowed] of [
    ['permit', true],
    ['forbid', false],
  ] as const) {
    merchant
      .command(`${name} <id> <permission>`)
      .description(`${allowed ? 'give' : 'take away'} a permission: ${PERMISSIONS.join(', ')}`)
      .option('--json', 'print JSON')
      .action((text: string, permission: string, options: Json) =>
        performCommand(
          merchants[name],
          { permission: parsePermission(permission), id: String(parseId(text)) },
          options,
          () => say('done'),
        ),
      );
  }
  for (const [name, suspended] of [
    ['suspend', true],
    ['resume', false],
  ] as const) {
    merchant
      .command(`${name} <id>`)
      .description(suspended ? 'refuse all its calls (04) until it is resumed' : 'end a suspension')
      .option('--json', 'print JSON')
      .action((text: string, options: Json) =>
        performCommand(merchants[name], { id: String(parseId(text)) }, options, () => say('done')),
      );
  }
  merchant
    .command('set <id>')
    .description('change the settings of a merchant')
    .option('--name <name>', 'its name')
    .option('--opaque', 'answer an unknown code and a wrong PIN in the same way')
    .option('--no-opaque', 'tell them apart')
    .option('--product <code>', 'the product that it generates by default')
    .option('--json', 'print JSON')
    .action(set);
}

type CreateOptions = Json & {
  name: string;
  permit?: string[];
  float?: string;
  currency?: string;
  product: string;
  opaque?: boolean;
};

async function create(options: CreateOptions): Promise<void> {
  const { product, float: amount, currency, opaque = false } = options;
  if (currency !== undefined && amount === undefined) wrongUsage('--currency needs --float');
  // With an amount of 0, the float is not funded yet.
  const isFunded = amount !== undefined && !/^0+(\.0+)?$/.test(amount);
  const input = {
    name: parseText(options.name, '--name', NAME_MAX),
    permit: (options.permit ?? []).map(parsePermission),
    product: parseProduct(product),
    opaque,
    ...(isFunded && { float: parseValue(amount, '--float') }),
    ...(isFunded && currency !== undefined && { currency: parseCurrencyCode(currency) }),
  };
  await performCommand(merchants.create, input, options, (made) => printSecret(made, false));
}

async function list(options: Json & { name?: string }): Promise<void> {
  const { name } = options;
  const filters = name === undefined ? {} : { name: parseText(name, '--name', NAME_MAX) };
  await listCommand(merchants.list, filters, LISTED_MAX, options, (found: Merchant[]) =>
    printTable(
      ['id', 'name', 'permissions', 'product', 'suspended'],
      found.map((each) => [
        each.id,
        each.name,
        each.permissions.join(' '),
        each.product,
        each.suspendedAt?.toISOString() ?? '',
      ]),
      ['name', 'product'],
    ),
  );
}

async function show(text: string, options: Json): Promise<void> {
  await performCommand(merchants.show, { id: String(parseId(text)) }, options, (merchant) =>
    printFields({
      ...merchant,
      permissions: merchant.permissions.join(' '),
      floats:
        merchant.floats
          .map(({ currency, balance }) => `${amountText(balance, currency)} ${currency}`)
          .join(', ') || '-',
    }),
  );
}

async function set(
  text: string,
  options: Json & { name?: string; opaque?: boolean; product?: string },
): Promise<void> {
  const { name, opaque, product } = options;
  if (name === undefined && opaque === undefined && product === undefined)
    wrongUsage('nothing to change: give --name, --opaque, --no-opaque or --product');
  const input = {
    id: String(parseId(text)),
    ...(name !== undefined && { name: parseText(name, '--name', NAME_MAX) }),
    ...(opaque !== undefined && { opaque }),
    ...(product !== undefined && { product: parseProduct(product) }),
  };
  await performCommand(merchants.set, input, options, () => say('done'));
}

/** Parses the code of a product. The error does not repeat a malformed code. */
export function parseProduct(text: string): string {
  if (/^[\w.-]{1,50}$/.test(text)) return text;
  return notFound('such product: `scrip product list` shows all');
}

/** Formats an amount in major units, with the decimals of its currency. */
export function amountText(amount: number, currency: string): string {
  return amount.toFixed(decimalsOf(currency) ?? 2);
}
