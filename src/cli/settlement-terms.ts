import type { Command } from 'commander';
import { makeTerms, readTerms, type Terms } from '../settlement/terms.ts';
import { requireMerchant, requireProduct } from './money.ts';
import { withOperator, withService } from './open.ts';
import { id, printJson, printTable, say, wrongUsage } from './output.ts';
import { oneOf, parseCount, parseDay, parseId, parseText } from './parse.ts';
import { requireApproval } from './perform.ts';

const PAYEE_MAX = 100;
const DELAY_MAX_DAYS = 366;
const PERCENT_PPM = 10_000;

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
  lastFour?: string;
};

/** Adds `terms` to the commands of settlement. */
export function addTerms(settlement: Command): void {
  const terms = settlement.command('terms').description('terms of settlement: dated, and never edited');
  terms
    .command('set')
    .description('make terms for a merchant, or for one product of it, from a day on')
    .requiredOption('--merchant <id>', 'the merchant')
    .requiredOption('--from <day>', 'the first day, which is not closed yet')
    .requiredOption(
      '--commission <percent>',
      'the commission on what is redeemed, in percent, up to four decimals',
    )
    .option('--product <code>', 'for this product alone (default: all that have no terms of their own)')
    .option('--vat <percent>', 'the VAT on the commission, in percent (default: 0)')
    .option('--period <period>', 'day, week or month (default: month); not with --product')
    .option('--least-payout <amount>', 'what is less is carried over (default: 0); not with --product')
    .option(
      '--delay <days>',
      'days from the end of the period to the payout (default: 0); not with --product',
    )
    .option('--payee <name>', 'how you name the bank account; not with --product')
    .option('--last-four <characters>', 'the last four characters of the account number; not with --product')
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
  const merchantId = parseId(options.merchant);
  const validFrom = parseDay(options.from, '--from');
  const commissionPpm = parsePercent(options.commission, '--commission');
  const vatPpm = parsePercent(options.vat ?? '0', '--vat');
  const ofMerchant = options.product === undefined ? merchantTerms(options) : productTerms(options);
  await withOperator(async (operator) => {
    const { db } = operator.service;
    await requireApproval(operator, 'settlement.terms');
    await requireMerchant(db, merchantId);
    const product = options.product === undefined ? null : await requireProduct(db, options.product);
    const dated = { merchantId, productId: product?.id ?? 0, product: product?.code ?? null, validFrom };
    await makeTerms(operator, { ...dated, commissionPpm, vatPpm, ...ofMerchant });
    if (options.json) printJson((await readTerms(db, merchantId)).map(termsJson));
    else say('done');
  });
}

/** Percent with up to four decimals, as parts per million. */
function parsePercent(text: string, option: string): number {
  const [, whole = '', fraction = ''] = /^(\d{1,3})(?:\.(\d{1,4}))?$/.exec(text) ?? [];
  const ppm = Number(whole) * PERCENT_PPM + Number(fraction.padEnd(4, '0'));
  if (whole === '' || ppm > 100 * PERCENT_PPM)
    wrongUsage(`${option} takes percent from 0 to 100, such as 2.5`);
  return ppm;
}

function merchantTerms({ period, leastPayout = '0', delay, payee, lastFour }: SetOptions) {
  if (!/^\d{1,12}(\.\d{1,4})?$/.test(leastPayout))
    wrongUsage('--least-payout takes an amount in plain digits, such as 25.00');
  if (lastFour !== undefined && !/^[A-Z0-9]{4}$/.test(lastFour))
    wrongUsage('--last-four takes four letters or digits');
  return {
    period: oneOf(period ?? 'month', '--period', ['day', 'week', 'month'] as const),
    leastPayout,
    delayDays: delay === undefined ? 0 : parseCount(delay, '--delay', 0, DELAY_MAX_DAYS),
    payee: payee === undefined ? null : parseText(payee, '--payee', PAYEE_MAX),
    payeeLast4: lastFour ?? null,
  };
}

/** Of a product: what belongs to the merchant is left out. */
function productTerms(options: SetOptions) {
  const { period, leastPayout, delay, payee, lastFour } = options;
  if ([period, leastPayout, delay, payee, lastFour].some((each) => each !== undefined))
    wrongUsage(
      '--period, --least-payout, --delay, --payee and --last-four belong to the merchant: leave out --product',
    );
  return { period: null, leastPayout: null, delayDays: null, payee: null, payeeLast4: null };
}

async function list(options: Json & { merchant: string }): Promise<void> {
  const merchantId = parseId(options.merchant);
  await withService(async ({ db }) => {
    await requireMerchant(db, merchantId);
    const found = (await readTerms(db, merchantId)).map(termsJson);
    if (options.json) return printJson(found);
    printTable(
      ['product', 'from', 'commission %', 'VAT %', 'period', 'least payout', 'delay', 'payee'],
      found.map((each) => [
        each.product ?? 'all others',
        each.from,
        String(each.commission),
        String(each.vat),
        each.period ?? '',
        each.leastPayout ?? '',
        each.delayDays === null ? '' : String(each.delayDays),
        [each.payee, each.last4].filter(Boolean).join(' … '),
      ]),
      ['payee'],
    );
  });
}

function termsJson(terms: Terms) {
  const {
    merchantId,
    product,
    validFrom: from,
    commissionPpm,
    vatPpm,
    period,
    leastPayout,
    delayDays,
    payee,
  } = terms;
  const rates = { commission: commissionPpm / PERCENT_PPM, vat: vatPpm / PERCENT_PPM };
  return {
    merchantId: id(merchantId),
    product,
    from,
    ...rates,
    period,
    leastPayout,
    delayDays,
    payee,
    last4: terms.payeeLast4,
  };
}
