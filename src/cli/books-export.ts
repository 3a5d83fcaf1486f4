import type { Command } from 'commander';
import { EXPORT_FORMATS } from '../books/export.ts';
import { booksFiles } from '../operator/books-files.ts';
import { wrongUsage } from './output.ts';
import { oneOf, parseDay, parseId } from './parse.ts';
import { performFile } from './perform-file.ts';

type ExportOptions = {
  json?: boolean;
  format: string;
  from: string;
  to: string;
  merchant?: string;
  rows?: boolean;
  european?: boolean;
  out?: string;
  force?: boolean;
};

/** Adds exports to the commands of the books. */
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
}

async function run(options: ExportOptions): Promise<void> {
  const format = oneOf(options.format, '--format', EXPORT_FORMATS);
  const [from, to] = [parseDay(options.from, '--from'), parseDay(options.to, '--to')];
  if (to <= from) wrongUsage('--to is the day behind the last one: it comes after --from');
  if (options.json && !options.out) wrongUsage('--json needs --out FILE');
  if (options.merchant !== undefined && format !== 'camt053') wrongUsage('--merchant needs --format camt053');
  const input = {
    format,
    from,
    to,
    rows: options.rows ?? false,
    european: options.european ?? false,
    ...(options.merchant !== undefined && { merchantId: String(parseId(options.merchant)) }),
  };
  await performFile(booksFiles.export, input, options);
}
