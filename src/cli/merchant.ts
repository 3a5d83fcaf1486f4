import type { Command } from 'commander';
import { type Operator, PERMISSIONS } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { listFloats } from '../merchants/floats.ts';
import {
  changeMerchant,
  createMerchant,
  findMerchant,
  listMerchants,
  type MerchantInfo,
  permitMerchant,
  suspendMerchant,
} from '../merchants/merchants.ts';
import { DEFAULT_PRODUCT, findProduct } from '../merchants/products.ts';
import { toNumber, toText } from '../money.ts';
import { withOperator, withService } from './open.ts';
import { fail, printFields, printJson, printTable } from './output.ts';
import { parseAmount, parseId, parsePermission, repeat } from './parse.ts';

export function registerMerchant(program: Command): void {
  const merchant = program.command('merchant').description('merchants: who sells and accepts vouchers');
  merchant
    .command('create')
    .description('make a merchant with its first API key; the secret is shown once')
    .requiredOption('--name <name>', 'what it is called')
    .option(
      '--permit <permission>',
      `a permission beside those every merchant has (repeatable): ${PERMISSIONS.join(', ')}`,
      repeat,
    )
    .option('--float <amount>', 'money to put on its float, in major units')
    .option('--currency <code>', 'of the float (default: that of its product)')
    .option('--product <code>', 'the product it generates by default', DEFAULT_PRODUCT)
    .option('--opaque', 'tell it the same of an unknown code and of a wrong PIN')
    .option('--json', 'print JSON')
    .action(create);
  merchant.command('list').description('all merchants').option('--json', 'print JSON').action(list);
  merchant.command('show <id>').description('one merchant').option('--json', 'print JSON').action(show);
  for (const [name, allowed] of [
    ['permit', true],
    ['forbid', false],
  ] as const) {
    merchant
      .command(`${name} <id> <permission>`)
      .description(`${allowed ? 'give' : 'take'} a permission: ${PERMISSIONS.join(', ')}`)
      .action((id: string, permission: string) =>
        change(id, (operator, number) => permitMerchant(operator, number, parsePermission(permission), allowed)),
      );
  }
  for (const [name, suspended] of [
    ['suspend', true],
    ['resume', false],
  ] as const) {
    merchant
      .command(`${name} <id>`)
      .description(suspended ? 'refuse all its calls (04) until it is resumed' : 'let a suspended merchant go on')
      .action((id: string) => change(id, (operator, number) => suspendMerchant(operator, number, suspended)));
  }
  merchant
    .command('set <id>')
    .description('change what it is told and what it sells')
    .option('--opaque', 'tell it the same of an unknown code and of a wrong PIN')
    .option('--no-opaque', 'tell them apart')
    .option('--product <code>', 'the product it generates by default')
    .action((id: string, options: { opaque?: boolean; product?: string }) =>
      change(id, async (operator, number) => {
        const { db } = operator.service;
        const productId = options.product === undefined ? null : (await requireProduct(db, options.product)).id;
        return changeMerchant(operator, number, { opaque: options.opaque ?? null, productId });
      }),
    );
}

type CreateOptions = {
  name: string;
  permit?: string[];
  float?: string;
  currency?: string;
  product: string;
  opaque?: boolean;
  json?: boolean;
};

async function create(options: CreateOptions): Promise<void> {
  const permit = (options.permit ?? []).map(parsePermission);
  if (options.name.trim() === '' || options.name.length > 200) fail('--name takes 1 to 200 characters');
  await withOperator(async (operator) => {
    const product = await requireProduct(operator.service.db, options.product);
    const currency = options.currency ?? product.currency;
    // With 0 it is funded later, as without the option.
    const { float: amount = '0' } = options;
    const float = /^0+(\.0+)?$/.test(amount)
      ? undefined
      : { currency, amountMinor: parseAmount(amount, '--float', currency) };
    const opaque = options.opaque ?? false;
    const { id, keyId, secret } = await createMerchant(operator, {
      name: options.name,
      permit,
      opaque,
      productId: product.id,
      float,
    });
    const made = { id: String(id), name: options.name, keyId, secret };
    if (options.json) return printJson(made);
    printFields(made);
    process.stdout.write('The secret is not shown again.\n');
  });
}

async function list(options: { json?: boolean }): Promise<void> {
  await withService(async ({ db }) => {
    const merchants = await listMerchants(db);
    if (options.json) return printJson(merchants.map(toJson));
    printTable(
      ['id', 'name', 'permissions', 'product', 'suspended'],
      merchants.map((each) => [
        String(each.id),
        each.name,
        each.permissions.join(' '),
        each.product,
        each.suspendedAt?.toISOString() ?? '',
      ]),
    );
  });
}

async function show(id: string, options: { json?: boolean }): Promise<void> {
  const number = parseId(id);
  await withService(async ({ db }) => {
    const merchant = (await findMerchant(db, number)) ?? fail(`there is no merchant ${id}`);
    const floats = await listFloats(db, number);
    if (options.json) {
      return printJson({
        ...toJson(merchant),
        floats: floats.map(({ currency, balance }) => ({ currency, balance: toNumber(balance) })),
      });
    }
    printFields({
      ...toJson(merchant),
      permissions: merchant.permissions.join(' '),
      floats: floats.map(({ currency, balance }) => `${toText(balance)} ${currency}`).join(', ') || '-',
    });
  });
}

function toJson(merchant: MerchantInfo) {
  return { ...merchant, id: String(merchant.id) };
}

async function change(id: string, run: (operator: Operator, number: number) => Promise<boolean>): Promise<void> {
  const number = parseId(id);
  await withOperator(async (operator) => {
    if (!(await run(operator, number))) fail(`there is no merchant ${id}`);
    process.stdout.write('done\n');
  });
}

async function requireProduct(db: Queries, code: string) {
  return (await findProduct(db, code)) ?? fail('there is no such product');
}
