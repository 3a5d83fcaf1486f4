import type { Command } from 'commander';
import { type Operator, PERMISSIONS, type Service } from '../context.ts';
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
import { id, notFound, printFields, printJson, printSecret, printTable, say, wrongUsage } from './output.ts';
import { parseAmount, parseId, parsePermission, parseText, repeat } from './parse.ts';

const NAME_MAX = 200;

type Json = { json?: boolean };

export function registerMerchant(program: Command): void {
  const merchant = program.command('merchant').description('merchants, who sell and accept vouchers');
  merchant
    .command('create')
    .description('create a merchant with its first API key, whose secret is shown once')
    .requiredOption('--name <name>', 'its name')
    .option(
      '--permit <permission>',
      `a permission beside those that every merchant has (repeatable): ${PERMISSIONS.join(', ')}`,
      repeat,
    )
    .option('--float <amount>', 'money to put on its float, in major units')
    .option('--currency <code>', 'the currency of --float (default: that of its product)')
    .option('--product <code>', 'the product that it generates by default', DEFAULT_PRODUCT)
    .option('--opaque', 'answer an unknown code and a wrong PIN alike')
    .option('--json', 'print JSON')
    .action(create);
  merchant.command('list').description('list all merchants').option('--json', 'print JSON').action(list);
  merchant.command('show <id>').description('show a merchant').option('--json', 'print JSON').action(show);
  for (const [name, allowed] of [
    ['permit', true],
    ['forbid', false],
  ] as const) {
    merchant
      .command(`${name} <id> <permission>`)
      .description(`${allowed ? 'give' : 'take away'} a permission: ${PERMISSIONS.join(', ')}`)
      .option('--json', 'print JSON')
      .action((text: string, permission: string, options: Json) => {
        const wanted = parsePermission(permission);
        return change(text, options, (operator, merchantId) =>
          permitMerchant(operator, merchantId, wanted, allowed),
        );
      });
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
        change(text, options, (operator, merchantId) => suspendMerchant(operator, merchantId, suspended)),
      );
  }
  merchant
    .command('set <id>')
    .description('change the settings of a merchant')
    .option('--opaque', 'answer an unknown code and a wrong PIN alike')
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
  const name = parseText(options.name, '--name', NAME_MAX);
  const permit = (options.permit ?? []).map(parsePermission);
  if (options.currency !== undefined && options.float === undefined) wrongUsage('--currency needs --float');
  await withOperator(
    async (operator) => {
      const product = await requireProduct(operator.service.db, options.product);
      const { float: amount, currency = product.currency } = options;
      // A float of 0 is like none: it is funded later.
      const isFunded = amount !== undefined && !/^0+(\.0+)?$/.test(amount);
      const made = await createMerchant(operator, {
        name,
        permit,
        opaque: options.opaque ?? false,
        productId: product.id,
        ...(isFunded && { float: { currency, amountMinor: parseAmount(amount, '--float', currency) } }),
      });
      printSecret({ id: id(made.id), name, keyId: made.keyId, secret: made.secret }, options.json);
    },
    { create: true },
  );
}

async function list(options: Json): Promise<void> {
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
      ['name', 'product'],
    );
  });
}

async function show(text: string, options: Json): Promise<void> {
  const merchantId = parseId(text);
  await withService((service) => print(service, merchantId, options));
}

async function print({ db }: Service, merchantId: number, options: Json): Promise<void> {
  const merchant = (await findMerchant(db, merchantId)) ?? notFound(`merchant ${merchantId}`);
  const floats = await listFloats(db, merchantId);
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
}

function toJson(merchant: MerchantInfo) {
  return { ...merchant, id: id(merchant.id) };
}

async function change(
  text: string,
  options: Json,
  run: (operator: Operator, merchantId: number) => Promise<boolean>,
): Promise<void> {
  const merchantId = parseId(text);
  await withOperator(async (operator) => {
    if (!(await run(operator, merchantId))) notFound(`merchant ${merchantId}`);
    if (options.json) return print(operator.service, merchantId, options);
    say('done');
  });
}

async function set(text: string, options: Json & { opaque?: boolean; product?: string }): Promise<void> {
  const { opaque = null, product } = options;
  if (opaque === null && product === undefined)
    wrongUsage('nothing to change: give --opaque, --no-opaque or --product');
  await change(text, options, async (operator, merchantId) => {
    const productId = product === undefined ? null : (await requireProduct(operator.service.db, product)).id;
    return changeMerchant(operator, merchantId, { opaque, productId });
  });
}

/** @throws CommandError where there is no such merchant */
export async function requireMerchant(db: Queries, merchantId: number): Promise<MerchantInfo> {
  return (await findMerchant(db, merchantId)) ?? notFound(`merchant ${merchantId}`);
}

/** @throws CommandError where there is no such product */
export async function requireProduct(db: Queries, code: string) {
  const what = /^[\w.-]{1,50}$/.test(code) ? `product ${code}` : 'such product';
  return (await findProduct(db, code)) ?? notFound(`${what}: \`scrip product list\` shows all`);
}
