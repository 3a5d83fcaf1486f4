import type { Command } from 'commander';
import { setDormancyRule, setVatTreatment } from '../books/tax.ts';
import { requireProduct } from './money.ts';
import { withOperator } from './open.ts';
import { printJson, say, wrongUsage } from './output.ts';
import { oneOf, parseCount, parseDay, parseText } from './parse.ts';

const NAME_MAX = 100;
const MONTHS_MAX = 600;
const PERCENT = /^(\d{1,3})(?:\.(\d{1,4}))?$/;

type Json = { json?: boolean };

/** Adds the rules that a law decides, for the reports R10 and R11. */
export function addBooksRules(books: Command): void {
  books
    .command('dormancy <rule>')
    .description('say when a voucher is dormant by the rules of a jurisdiction, for the report R10')
    .requiredOption('--months <count>', 'after how many months')
    .requiredOption('--basis <basis>', 'since its issue, or since its last-use')
    .option('--product <code>', 'of this product alone')
    .option('--json', 'print JSON')
    .action(dormancy);
  books
    .command('vat <product>')
    .description('say how the VAT of the vouchers of a product is treated, from a day on, for the report R11')
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

async function dormancy(
  text: string,
  options: Json & { months: string; basis: string; product?: string },
): Promise<void> {
  const name = parseText(text, 'the name', NAME_MAX);
  const months = parseCount(options.months, '--months', 1, MONTHS_MAX);
  const basis = oneOf(options.basis, '--basis', ['issue', 'last-use'] as const);
  await withOperator(async (operator) => {
    const product =
      options.product === undefined ? null : await requireProduct(operator.service.db, options.product);
    await setDormancyRule(operator, { name, basis, months, productId: product?.id ?? 0 });
    if (options.json) printJson({ name, basis, months, product: product?.code ?? null });
    else say('done');
  });
}

async function vat(
  code: string,
  options: Json & { from: string; treatment: string; country: string; rate?: string },
): Promise<void> {
  const from = parseDay(options.from, '--from');
  const treatment = oneOf(options.treatment, '--treatment', ['single', 'multi', 'outside'] as const);
  const { country } = options;
  if (!/^[A-Z]{2}$/.test(country)) wrongUsage('--country takes a code of ISO 3166, such as DE');
  const [, whole = '', part = ''] = PERCENT.exec(options.rate ?? '0') ?? [];
  const ratePpm = whole === '' ? -1 : Number(whole) * 10_000 + Number(part.padEnd(4, '0'));
  if (ratePpm < 0 || ratePpm > 1_000_000) wrongUsage('--rate takes percent from 0 to 100, such as 19');
  await withOperator(async (operator) => {
    const product = await requireProduct(operator.service.db, code);
    await setVatTreatment(operator, code, { productId: product.id, from, treatment, country, ratePpm });
    if (options.json) printJson({ product: code, from, treatment, country, rate: ratePpm / 10_000 });
    else say('done');
  });
}
