import { access, constants, stat } from 'node:fs/promises';
import type { Command } from 'commander';
import { type ImportRules, UnreadableFile } from '../batches/import.rows.ts';
import { type ImportReport, importVouchers } from '../batches/import.ts';
import { requireMerchant } from '../merchants/merchants.ts';
import { DEFAULT_PRODUCT, ProductCode, requireProduct } from '../products/products.ts';
import { MerchantId } from '../schema.ts';
import { untilStopped } from './open.ts';
import {
  CommandError,
  fail,
  interrupted,
  numberOf,
  printJson,
  printTable,
  say,
  wrongUsage,
} from './output.ts';
import { oneOf, parseText, parseUtc } from './parse.ts';
import { parseAs, requireApproval } from './perform.ts';
import { showProgress } from './progress.ts';
import { actor } from './usage.ts';

const REFERENCE_MAX = 100;
/** The most errors that are printed for people. JSON contains more. */
const SHOWN_MAX = 50;

const PAYERS = ['funding', 'float'] as const;

type Options = {
  merchant: string;
  reference?: string;
  format?: string;
  product: string;
  expiry?: string;
  codes: string;
  missingPin: string;
  paidFrom: (typeof PAYERS)[number];
  dryRun?: boolean;
  json?: boolean;
};

export function registerImport(program: Command): void {
  program
    .command('import')
    .description('take over vouchers from another system')
    .command('vouchers <file>')
    .description(
      'import vouchers from a file, which is checked first and refused as a whole if anything is wrong',
    )
    .requiredOption('--merchant <id>', 'the issuer of the vouchers', (text) =>
      parseAs(MerchantId, text, '--merchant'),
    )
    .option(
      '--reference <reference>',
      'your reference for the import (default: one derived from the file)',
      (text) => parseText(text, '--reference', REFERENCE_MAX),
    )
    .option('--format <format>', 'csv or ndjson (default: by the name of the file)')
    .option(
      '--product <code>',
      'the product of rows that name none',
      (text) => parseAs(ProductCode, text, '--product'),
      DEFAULT_PRODUCT,
    )
    .option('--expiry <date>', 'the expiry of rows that name none')
    .option(
      '--codes <rule>',
      'exact: 12 digits; split: 16 digits, code and PIN; prefix:DIGITS, before shorter codes',
      'exact',
    )
    .option(
      '--missing-pin <rule>',
      'for rows without a PIN: refuse, draw, or four digits that all of them get',
      'refuse',
    )
    .option(
      '--paid-from <account>',
      "funding, or float: the issuer's float pays for the vouchers",
      (text) => oneOf(text, '--paid-from', PAYERS),
      'funding',
    )
    .option('--dry-run', 'only check')
    .option('--json', 'print JSON')
    .action(run);
}

async function run(file: string, options: Options): Promise<void> {
  const { merchant, reference, paidFrom } = options;
  const rules = rulesOf(file, options);
  const dryRun = options.dryRun ?? false;
  // It is read several times. A pipe or a device can be read once, or has no end.
  if (!(await stat(file)).isFile()) fail(`${file} is no ordinary file`);
  await access(file, constants.R_OK);
  await untilStopped(async (service, _config, stop) => {
    const operator = { service, actor: actor() };
    if (!dryRun) await requireApproval(operator, 'import vouchers');
    const { id: merchantId } = await requireMerchant(operator, merchant, '--merchant');
    await requireProduct(service.db, rules.product);
    const progress = showProgress('vouchers', options.json);
    const wanted = { merchantId, file, reference, rules, paidFrom };
    const watching = { dryRun, stopping: stop.isAsked, onProgress: progress.update };
    const report = await importVouchers(operator, wanted, watching).catch(explain).finally(progress.stop);
    print(report, merchantId, options.json);
    if (report.state === 'refused') process.exitCode = 1;
    if (stop.isAsked() && report.state === 'imported')
      interrupted('interrupted: the same command goes on where this one ended');
  });
}

function rulesOf(file: string, options: Options): ImportRules {
  const { codes, missingPin, product } = options;
  if (!/^(exact|split|prefix:[1-9]\d{0,10})$/.test(codes))
    wrongUsage(
      '--codes takes exact, split, or prefix: and up to 11 digits, the first not 0, such as prefix:90',
    );
  if (!/^(refuse|draw|\d{4})$/.test(missingPin))
    wrongUsage('--missing-pin takes refuse, draw, or four digits');
  const given = options.format ?? /\.(csv|ndjson|jsonl)$/i.exec(file)?.[1]?.toLowerCase();
  if (given === undefined)
    wrongUsage('--format csv or ndjson is needed: the name of the file does not show it');
  const format = oneOf(given === 'jsonl' ? 'ndjson' : given, '--format', ['csv', 'ndjson'] as const);
  // Only checked here: a day ends in the zone of the books, which only the database knows.
  if (options.expiry !== undefined) parseUtc(options.expiry, '--expiry');
  return { format, codes, missingPin, product, expiry: options.expiry ?? null };
}

function explain(error: unknown): never {
  if (!(error instanceof UnreadableFile)) throw error;
  throw new CommandError(error.message, 'unreadable');
}

function print(report: ImportReport, merchantId: number, isJson: boolean | undefined): void {
  const { state, reference, vouchers, totals, errors, errorCount, resumedAt } = report;
  if (isJson) {
    printJson({ ok: state !== 'refused', ...report, merchantId: String(merchantId) });
    return;
  }
  if (state === 'refused') {
    printTable(
      ['line', 'field', 'what is wrong'],
      errors.slice(0, SHOWN_MAX).map(({ line, field, message }) => [String(line), field, message]),
    );
    say(`nothing was imported: ${numberOf(errorCount, 'error')}`);
    return;
  }
  printTable(
    ['product', 'currency', 'vouchers', 'amount'],
    totals.map((each) => [each.product, each.currency, String(each.vouchers), each.amount]),
  );
  const done = {
    checked: `${numberOf(vouchers, 'voucher')} can be imported; nothing was written`,
    imported: `${numberOf(vouchers, 'voucher')} imported under ${reference}${resumedAt > 0 ? `, ${resumedAt} of them before` : ''}`,
    replayed: `this file was imported before, under ${reference}`,
  };
  say(done[state]);
}
