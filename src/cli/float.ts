import type { Command } from 'commander';
import type { Queries } from '../db/pool.ts';
import { listFloats, setLow, topUp } from '../merchants/floats.ts';
import { findMerchant } from '../merchants/merchants.ts';
import { DEFAULT_PRODUCT, findProduct } from '../merchants/products.ts';
import { toNumber, toText } from '../money.ts';
import { withOperator, withService } from './open.ts';
import { fail, printJson, printTable } from './output.ts';
import { parseAmount, parseCurrency, parseId } from './parse.ts';

export function registerFloat(program: Command): void {
  const float = program.command('float').description("a merchant's prefunded balance");
  float
    .command('top-up')
    .description('put money on a float')
    .requiredOption('--merchant <id>', 'whose float')
    .requiredOption('--amount <amount>', 'in major units')
    .option('--reference <text>', 'your own: the same top-up sent again is booked once')
    .option('--currency <code>', 'of the float (default: that of the product DEFAULT)')
    .option('--json', 'print JSON')
    .action(add);
  float
    .command('warn')
    .description('set from where on a float counts as low: its merchant is told by webhook on the crossing')
    .requiredOption('--merchant <id>', 'whose float')
    .requiredOption('--below <amount>', 'in major units, or "default": a tenth of what it held after its last top-up')
    .option('--currency <code>', 'of the float (default: that of the product DEFAULT)')
    .option('--json', 'print JSON')
    .action(warn);
  float
    .command('show')
    .description('the floats of a merchant')
    .requiredOption('--merchant <id>', 'whose floats')
    .option('--json', 'print JSON')
    .action(show);
}

async function add(options: {
  merchant: string;
  amount: string;
  reference?: string;
  currency?: string;
  json?: boolean;
}): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withOperator(async (operator) => {
    const { service } = operator;
    if (!(await findMerchant(service.db, merchantId))) fail(`there is no merchant ${merchantId}`);
    const currency = await currencyOf(service.db, options.currency);
    const amountMinor = parseAmount(options.amount, '--amount', currency);
    const { reference } = options;
    const { float, transactionId, replayed } = await topUp(operator, { merchantId, currency, amountMinor, reference });
    const { balance } = float;
    if (options.json)
      return printJson({ merchantId: String(merchantId), currency, balance: toNumber(balance), transactionId, replayed });
    const done = replayed ? 'this top-up was booked before; ' : '';
    process.stdout.write(`${done}the float is now ${toText(balance)} ${currency}\n`);
  });
}

async function currencyOf(db: Queries, given: string | undefined): Promise<string> {
  return given ?? (await findProduct(db, DEFAULT_PRODUCT))?.currency ?? '';
}

async function warn(options: { merchant: string; below: string; currency?: string; json?: boolean }): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withOperator(async (operator) => {
    const currency = await currencyOf(operator.service.db, options.currency);
    const decimals = parseCurrency(currency);
    const lowMinor = options.below === 'default' ? null : parseAmount(options.below, '--below', currency);
    if (!(await setLow(operator, merchantId, currency, lowMinor)))
      fail(`merchant ${merchantId} has no float in ${currency}: top it up first`);
    const below = lowMinor === null ? null : { minor: lowMinor, decimals };
    if (options.json) return printJson({ merchantId: String(merchantId), currency, below: below && toNumber(below) });
    process.stdout.write(
      below ? `low below ${toText(below)} ${currency}\n` : 'low below a tenth of what it held after its last top-up\n',
    );
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
