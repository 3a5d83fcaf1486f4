import { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Command } from 'commander';
import type { GlAccountRow } from '../books/export.queries.ts';
import { listGlAccounts } from '../books/export.queries.ts';
import { DayNotClosed } from '../books/export.rows.ts';
import { EXPORT_FORMATS, type ExportWanted, exportBooks } from '../books/export.ts';
import { Unmapped } from '../books/gl.ts';
import { GL_KINDS, setGlAccount } from '../books/gl-accounts.ts';
import type { Service } from '../context.ts';
import { checkTarget, writeWhole } from './file.ts';
import { requireMerchant, requireProduct } from './money.ts';
import { withOperator, withService } from './open.ts';
import { CommandError, id, printJson, printTable, say, wrongUsage } from './output.ts';
import { oneOf, parseDay, parseId } from './parse.ts';

type Json = { json?: boolean };
type ExportOptions = Json & {
  format: string;
  from: string;
  to: string;
  merchant?: string;
  rows?: boolean;
  european?: boolean;
  out?: string;
  force?: boolean;
};

/** Adds exports, and the account numbers that they need, to the commands of the books. */
export function addBooksExport(books: Command): void {
  books
    .command('export')
    .description('export closed days for another bookkeeping')
    .requiredOption('--format <format>', EXPORT_FORMATS.join(', '))
    .requiredOption('--from <day>', 'the first day')
    .requiredOption('--to <day>', 'the day behind the last one')
    .option('--merchant <id>', 'camt053: the accounts of one merchant (default: of all)')
    .option('--rows', 'beancount, hledger, gl: each row by itself (default: the sums of each day)')
    .option('--european', 'gl, csv: separated by semicolons, amounts with a comma')
    .option('--out <file>', 'the file (default: stdout)')
    .option('--force', 'overwrite the file')
    .option('--json', 'print JSON; the export then goes into a file')
    .action(run);
  books
    .command('account <kind>')
    .description('give a kind of account its number in another bookkeeping, for the export gl')
    .requiredOption('--number <number>', 'the account number')
    .option('--merchant <id>', 'of this merchant alone')
    .option('--product <code>', 'of this product alone')
    .option('--tax-code <code>', 'the tax code that stands beside it')
    .option('--json', 'print JSON')
    .action(setAccount);
  books
    .command('accounts')
    .description('list the account numbers')
    .option('--json', 'print JSON')
    .action(listAccounts);
}

async function run(options: ExportOptions): Promise<void> {
  const format = oneOf(options.format, '--format', EXPORT_FORMATS);
  const [from, to] = [parseDay(options.from, '--from'), parseDay(options.to, '--to')];
  if (to <= from) wrongUsage('--to is the day behind the last one: it comes after --from');
  if (options.json && !options.out) wrongUsage('--json needs --out FILE');
  if (options.merchant !== undefined && format !== 'camt053') wrongUsage('--merchant needs --format camt053');
  const merchantId = options.merchant === undefined ? undefined : parseId(options.merchant);
  const style = options.european ? 'european' : 'standard';
  const wanted: ExportWanted = { format, from, to, merchantId, style, rowByRow: options.rows ?? false };
  const { out } = options;
  if (out) await checkTarget(out, options.force ?? false);
  await withService(async (service) => {
    if (merchantId !== undefined) await requireMerchant(service.db, merchantId);
    const pieces = stream(service, wanted);
    if (out) await writeWhole(out, pieces, options.force ?? false).catch(explain);
    else await pipeline(pieces, process.stdout, { end: false }).catch(explain);
    if (options.json) printJson({ format, from, to, file: out });
    else if (out) say(`written to ${out}`);
  });
}

/** What an export writes, as its reader takes it. */
function stream(service: Service, wanted: ExportWanted): PassThrough {
  const out = new PassThrough();
  const write = (piece: string) =>
    new Promise<void>((resolve, reject) => {
      if (out.destroyed) reject(new Error('the output was closed'));
      else out.write(piece, (error) => (error ? reject(error) : resolve()));
    });
  exportBooks(service, wanted, write).then(
    () => out.end(),
    (error: Error) => out.destroy(error),
  );
  return out;
}

function explain(error: unknown): never {
  if (error instanceof DayNotClosed) throw new CommandError(error.message, 'not-closed');
  if (error instanceof Unmapped) throw new CommandError(error.message, 'unmapped');
  throw error;
}

type AccountOptions = Json & { number: string; merchant?: string; product?: string; taxCode?: string };

async function setAccount(text: string, options: AccountOptions): Promise<void> {
  const kind = oneOf(text.toUpperCase(), 'account', GL_KINDS);
  if (!/^[A-Za-z0-9 ._/-]{1,30}$/.test(options.number))
    wrongUsage('--number takes up to 30 letters, digits, spaces, dots and dashes');
  if (options.taxCode !== undefined && !/^[A-Za-z0-9 ._/-]{1,30}$/.test(options.taxCode))
    wrongUsage('--tax-code takes up to 30 letters, digits, spaces, dots and dashes');
  const merchantId = options.merchant === undefined ? 0 : parseId(options.merchant);
  await withOperator(async (operator) => {
    const { db } = operator.service;
    if (merchantId > 0) await requireMerchant(db, merchantId);
    const productId = options.product === undefined ? 0 : (await requireProduct(db, options.product)).id;
    const row = {
      account_kind: kind,
      merchant_id: merchantId,
      product_id: productId,
      account: options.number,
    };
    await setGlAccount(operator, { ...row, tax_code: options.taxCode ?? null });
    if (options.json) printJson({ kind, number: options.number });
    else say('done');
  });
}

async function listAccounts(options: Json): Promise<void> {
  await withService(async ({ db }) => {
    const rows = await db.query<GlAccountRow>(listGlAccounts());
    const found = rows.map((row) => ({
      kind: row.account_kind,
      merchantId: row.merchant_id === 0 ? null : id(row.merchant_id),
      productId: row.product_id === 0 ? null : id(row.product_id),
      number: row.account,
      taxCode: row.tax_code,
    }));
    if (options.json) return printJson(found);
    printTable(
      ['kind', 'merchant', 'product', 'number', 'tax code'],
      found.map((each) => [
        each.kind,
        each.merchantId ?? '',
        each.productId ?? '',
        each.number,
        each.taxCode ?? '',
      ]),
    );
  });
}
