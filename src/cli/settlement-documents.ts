import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { settlementDocuments } from '../operator/settlement-documents.ts';
import { isIban } from '../settlement/payout-file.ts';
import { fail, wrongUsage } from './output.ts';
import { oneOf, parseDay, parseId, parseText, repeat } from './parse.ts';
import { performFile } from './perform.ts';

const NAME_MAX = 70;

type Out = { out: string; force?: boolean; json?: boolean };
type FileOptions = Out & {
  format: string;
  accounts: string;
  payerName: string;
  payerIban: string;
  payerBic?: string;
  settlement?: string[];
  due?: string;
};

/** Adds the documents of settlements to their commands. */
export function addSettlementDocuments(settlement: Command): void {
  settlement
    .command('document <id>')
    .description('write the document of an approved settlement as it was frozen')
    .requiredOption('--format <format>', 'pdf or csv')
    .requiredOption('--out <file>', 'the file')
    .option('--force', 'overwrite the file')
    .option('--json', 'print JSON')
    .action(document);
  settlement
    .command('file')
    .description('write a file that pays settlements, for your bank; it books nothing')
    .requiredOption('--format <format>', 'pain001 or csv')
    .requiredOption('--accounts <file>', 'CSV with merchantId, name, iban, bic: account numbers are not kept')
    .requiredOption('--payer-name <name>', 'the owner of your account')
    .requiredOption('--payer-iban <iban>', 'your account')
    .option('--payer-bic <bic>', 'its bank')
    .option('--settlement <id>', 'pay this one; may be repeated (default: all that are due)', repeat)
    .option('--due <day>', 'all that are due by this day (default: today, UTC)')
    .requiredOption('--out <file>', 'the file')
    .option('--force', 'overwrite the file')
    .option('--json', 'print JSON')
    .action(file);
}

async function document(text: string, options: Out & { format: string }): Promise<void> {
  const input = {
    id: String(parseId(text, 'settlement')),
    format: oneOf(options.format, '--format', ['pdf', 'csv'] as const),
  };
  await performFile(settlementDocuments.document, input, options);
}

async function file(options: FileOptions): Promise<void> {
  const format = oneOf(options.format, '--format', ['pain001', 'csv'] as const);
  const payerName = parseText(options.payerName, '--payer-name', NAME_MAX);
  if (!isIban(options.payerIban.replaceAll(' ', '').toUpperCase()))
    wrongUsage('--payer-iban takes an IBAN: its check digits or its form are wrong');
  const { settlement, due, payerBic } = options;
  if (settlement !== undefined && due !== undefined)
    wrongUsage('--due needs no --settlement: give one of the two');
  const accounts = await readFile(options.accounts, 'utf8').catch(() =>
    fail(`${options.accounts} cannot be read`),
  );
  const input = {
    format,
    accounts,
    payerName,
    payerIban: options.payerIban,
    ...(payerBic !== undefined && { payerBic }),
    ...(settlement && { settlements: settlement.map((each) => String(parseId(each, 'settlement'))) }),
    ...(due !== undefined && { due: parseDay(due, '--due') }),
  };
  await performFile(settlementDocuments.file, input, options);
}
