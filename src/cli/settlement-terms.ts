import type { Command } from 'commander';
import { settlementTerms, type Terms } from '../operator/settlement-terms.ts';
import { printTable, say, wrongUsage } from './output.ts';
import { oneOf, parseCount, parseDay, parseIban, parseId, parsePercent, parseText } from './parse.ts';
import { listCommand, performCommand } from './perform.ts';

const PAYEE_MAX = 100;
const DELAY_MAX_DAYS = 366;

type Json = { json?: boolean };
type SetOptions = Json & {
  merchant: string;
  product?: string;
  from: string;
  commission: string;
  vat?: string;
  period?: string;
  leastPayout?: string;
  delay?: string;
  payee?: string;
  iban?: string;
};

/** Adds `terms` to the commands of settlement. */
export function addTerms(settlement: Command): void {
  const terms = settlement.command('terms').description('terms of settlement: dated, and never edited');
  terms
    .command('set')
    .description('set the terms of a merchant, or of one of its products, from a day on')
    .requiredOption('--merchant <id>', 'the merchant')
    .requiredOption('--from <day>', 'the first day, which is not closed yet')
    .requiredOption(
      '--commission <percent>',
      'the commission on redemptions, in percent, up to four decimals',
    )
    .option('--product <code>', 'only for this product (default: all that have no own terms)')
    .option('--vat <percent>', 'the VAT on the commission, in percent (default: 0)')
    .option('--period <period>', 'day, week or month (default: month); not with --product')
    .option('--least-payout <amount>', 'smaller amounts are carried over (default: 0); not with --product')
    .option(
      '--delay <days>',
      'days from the end of the period to the payout (default: 0); not with --product',
    )
    .option('--payee <name>', 'how you name the bank account; not with --product')
    .option('--iban <iban>', 'the account that payout files pay; not with --product')
    .option('--json', 'print JSON')
    .action(set);
  terms
    .command('list')
    .description('list the terms of a merchant')
    .requiredOption('--merchant <id>', 'the merchant')
    .option('--json', 'print JSON')
    .action(list);
}

async function set(options: SetOptions): Promise<void> {
  const { product } = options;
  const input = {
    merchantId: String(parseId(options.merchant)),
    from: parseDay(options.from, '--from'),
    commission: parsePercent(options.commission, '--commission'),
    vat: parsePercent(options.vat ?? '0', '--vat'),
    ...(product === undefined ? merchantTerms(options) : productTerms(product, options)),
  };
  await performCommand(settlementTerms.set, input, options, () => say('done'));
}

function merchantTerms({ period, leastPayout = '0', delay, payee, iban }: SetOptions) {
  if (!/^\d{1,12}(\.\d{1,4})?$/.test(leastPayout))
    wrongUsage('--least-payout takes an amount in plain digits, such as 25.00');
  return {
    period: oneOf(period ?? 'month', '--period', ['day', 'week', 'month'] as const),
    leastPayout: Number(leastPayout),
    delayDays: delay === undefined ? 0 : parseCount(delay, '--delay', 0, DELAY_MAX_DAYS),
    ...(payee !== undefined && { payee: parseText(payee, '--payee', PAYEE_MAX) }),
    ...(iban !== undefined && { iban: parseIban(iban, '--iban') }),
  };
}

/** Returns the terms of a product, which include none of the merchant's terms. */
function productTerms(product: string, options: SetOptions) {
  const { period, leastPayout, delay, payee, iban } = options;
  if ([period, leastPayout, delay, payee, iban].some((each) => each !== undefined))
    wrongUsage(
      '--period, --least-payout, --delay, --payee and --iban belong to the merchant: leave out --product',
    );
  return { product };
}

async function list(options: Json & { merchant: string }): Promise<void> {
  const filters = { merchantId: String(parseId(options.merchant)) };
  await listCommand(settlementTerms.list, filters, undefined, options, (found: Terms[]) =>
    printTable(
      ['product', 'from', 'commission %', 'VAT %', 'period', 'least payout', 'delay', 'payee'],
      found.map((each) => [
        each.product ?? 'all others',
        each.from,
        String(each.commission),
        String(each.vat),
        each.period ?? '',
        each.leastPayout === null ? '' : String(each.leastPayout),
        each.delayDays === null ? '' : String(each.delayDays),
        [each.payee, each.last4].filter(Boolean).join(' … '),
      ]),
      ['payee'],
    ),
  );
}
