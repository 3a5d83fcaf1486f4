import type { Command } from 'commander';
import { GL_KINDS } from '../books/gl.ts';
import { booksRules, type GlAccount } from '../operator/books-rules.ts';
import { printTable, say, wrongUsage } from './output.ts';
import { oneOf, parseCount, parseDay, parseId, parsePercent, parseText } from './parse.ts';
import { listCommand, performCommand } from './perform.ts';
import { actor } from './usage.ts';

const NAME_MAX = 100;
const MONTHS_MAX = 600;
const REASON_MAX = 500;

type Json = { json?: boolean };

/** Adds the rules of the books: account numbers, and rules that a law or an estimate sets. */
export function addBooksRules(books: Command): void {
  addAccounts(books);
  books
    .command('rules')
    .description('list the rules of the reports: dormancy, VAT, and estimated breakage')
    .option('--json', 'print JSON')
    .action(listRules);
  books
    .command('breakage-rate <product>')
    .description(
      'estimate the part of the vouchers of a product that is never redeemed, with a reason (--reason)',
    )
    .requiredOption('--percent <percent>', 'from 0 to 100, such as 8.5')
    .option('--from <day>', 'the first day (default: today)')
    .option('--json', 'print JSON')
    .action(breakageRate);
  books
    .command('dormancy <rule>')
    .description('set when a voucher is dormant under the rules of a jurisdiction, for the report R10')
    .requiredOption('--months <count>', 'the number of months')
    .requiredOption('--basis <basis>', 'since its issue, or since its last-use')
    .option('--product <code>', 'of this product alone')
    .option('--json', 'print JSON')
    .action(dormancy);
  books
    .command('vat <product>')
    .description('set how the VAT of the vouchers of a product is treated from a day on, for the report R11')
    .requiredOption('--from <day>', 'the first day')
    .requiredOption(
      '--treatment <treatment>',
      'single: due at the issue; multi: at the redemption; outside: none',
    )
    .requiredOption('--country <code>', 'the country, such as DE')
    .option('--rate <percent>', 'the rate, such as 19 (default: 0)')
    .option('--json', 'print JSON')
    .action(vat);
}

function addAccounts(books: Command): void {
  books
    .command('account <kind>')
    .description('give a kind of account its number in your accounting system, for the export gl')
    .requiredOption('--number <number>', 'the account number')
    .option('--merchant <id>', 'of this merchant alone')
    .option('--product <code>', 'of this product alone')
    .option('--tax-code <code>', 'the tax code for this account')
    .option('--json', 'print JSON')
    .action(setAccount);
  books
    .command('accounts')
    .description('list the account numbers')
    .option('--json', 'print JSON')
    .action(listAccounts);
}

type AccountOptions = Json & { number: string; merchant?: string; product?: string; taxCode?: string };

async function setAccount(text: string, options: AccountOptions): Promise<void> {
  const { number, merchant, product, taxCode } = options;
  for (const [value, option] of [
    [number, '--number'],
    [taxCode ?? number, '--tax-code'],
  ] as const)
    if (!/^[A-Za-z0-9 ._/-]{1,30}$/.test(value))
      wrongUsage(`${option} takes up to 30 letters, digits, spaces, dots, dashes and slashes`);
  const input = {
    kind: oneOf(text.toUpperCase(), 'account', GL_KINDS),
    number,
    ...(merchant !== undefined && { merchantId: String(parseId(merchant)) }),
    ...(product !== undefined && { product }),
    ...(taxCode !== undefined && { taxCode }),
  };
  await performCommand(booksRules.account, input, options, () => say('done'));
}

async function listAccounts(options: Json): Promise<void> {
  await listCommand(booksRules.accounts, {}, undefined, options, (found: GlAccount[]) =>
    printTable(
      ['kind', 'merchant', 'product', 'number', 'tax code'],
      found.map((each) => [
        each.kind,
        each.merchantId ?? '',
        each.product ?? '',
        each.number,
        each.taxCode ?? '',
      ]),
    ),
  );
}

async function listRules(options: Json): Promise<void> {
  await performCommand(booksRules.rules, {}, options, ({ dormancy: rules, vat: treatments, breakage }) =>
    printTable(
      ['report', 'rule', 'product', 'says'],
      [
        ...rules.map((each) => [
          'R10',
          each.name,
          each.product ?? 'all',
          `${each.months} months since ${each.basis}`,
        ]),
        ...treatments.map((each) => [
          'R11',
          `from ${each.from}`,
          each.product,
          `${each.treatment} ${each.country} ${each.rate} %`,
        ]),
        ...breakage.map((each) => [
          'R5',
          `from ${each.from}, by ${each.by}`,
          each.product,
          `${each.percent} %: ${each.reason}`,
        ]),
      ],
      ['rule', 'says'],
    ),
  );
}

async function dormancy(
  text: string,
  options: Json & { months: string; basis: string; product?: string },
): Promise<void> {
  const input = {
    name: parseText(text, 'the name', NAME_MAX),
    months: parseCount(options.months, '--months', 1, MONTHS_MAX),
    basis: oneOf(options.basis, '--basis', ['issue', 'last-use'] as const),
    ...(options.product !== undefined && { product: options.product }),
  };
  await performCommand(booksRules.dormancy, input, options, () => say('done'));
}

async function vat(
  product: string,
  options: Json & { from: string; treatment: string; country: string; rate?: string },
): Promise<void> {
  const { country } = options;
  if (!/^[A-Z]{2}$/.test(country)) wrongUsage('--country takes a code of ISO 3166, such as DE');
  const input = {
    product,
    from: parseDay(options.from, '--from'),
    treatment: oneOf(options.treatment, '--treatment', ['single', 'multi', 'outside'] as const),
    country,
    rate: parsePercent(options.rate ?? '0', '--rate'),
  };
  await performCommand(booksRules.vat, input, options, () => say('done'));
}

async function breakageRate(
  product: string,
  options: Json & { percent: string; from?: string },
): Promise<void> {
  const { reason } = actor();
  if (reason === null) wrongUsage('an estimate needs a reason: give --reason');
  const percent = parsePercent(options.percent, '--percent');
  const input = {
    product,
    percent,
    ...(options.from !== undefined && { from: parseDay(options.from, '--from') }),
    reason: parseText(reason, '--reason', REASON_MAX),
  };
  await performCommand(booksRules.breakageRate, input, options, () =>
    say(`${percent} % of ${product} are estimated never to be redeemed`),
  );
}
