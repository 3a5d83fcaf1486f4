import type { Command } from 'commander';
import { listFloats, topUp } from '../merchants/floats.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { DEFAULT_PRODUCT, findProduct } from '../merchants/products.ts';
import { toNumber, toText } from '../money.ts';
import { withService } from './open.ts';
import { fail, printJson, printTable } from './output.ts';
import { parseAmount, parseId } from './parse.ts';

export function registerFloat(program: Command): void {
  const float = program.command('float').description("a merchant's prefunded balance");
  float
    .command('top-up')
    .description('put money on a float')
    .requiredOption('--merchant <id>', 'whose float')
    .requiredOption('--amount <amount>', 'in major units')
    .option('--currency <code>', 'of the float (default: that of the product DEFAULT)')
    .option('--json', 'print JSON')
    .action(add);
  float
    .command('show')
    .description('the floats of a merchant')
    .requiredOption('--merchant <id>', 'whose floats')
    .option('--json', 'print JSON')
    .action(show);
}

async function add(options: { merchant: string; amount: string; currency?: string; json?: boolean }): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withService(async (service) => {
    if (!(await findMerchant(service.db, merchantId))) fail(`there is no merchant ${merchantId}`);
    const currency = options.currency ?? (await findProduct(service.db, DEFAULT_PRODUCT))?.currency ?? '';
    const amountMinor = parseAmount(options.amount, '--amount', currency);
    const { balance } = await topUp(service, merchantId, currency, amountMinor);
    if (options.json) return printJson({ merchantId: String(merchantId), currency, balance: toNumber(balance) });
    process.stdout.write(`the float is now ${toText(balance)} ${currency}\n`);
  });
}

async function show(options: { merchant: string; json?: boolean }): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withService(async ({ db }) => {
    if (!(await findMerchant(db, merchantId))) fail(`there is no merchant ${merchantId}`);
    const floats = await listFloats(db, merchantId);
    if (options.json)
      return printJson(floats.map(({ currency, balance }) => ({ currency, balance: toNumber(balance) })));
    printTable(
      ['currency', 'balance'],
      floats.map(({ currency, balance }) => [currency, toText(balance)]),
    );
  });
}
