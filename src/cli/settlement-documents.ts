import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { isIban, makePayoutFile, readAccounts } from '../settlement/payout-file.ts';
import { documentsOf, getSettlement, listSettlements } from '../settlement/settlements.ts';
import { checkTarget, writeWhole } from './file.ts';
import { withOperator, withService } from './open.ts';
import { fail, printJson, say, wrongUsage } from './output.ts';
import { oneOf, parseDay, parseId, parseText, repeat } from './parse.ts';

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
  const settlementId = parseId(text, 'settlement');
  const format = oneOf(options.format, '--format', ['pdf', 'csv'] as const);
  await checkTarget(options.out, options.force ?? false);
  await withService(async ({ db }) => {
    const documents = await documentsOf(db, await getSettlement(db, settlementId));
    if (!documents) fail(`settlement ${settlementId} is a draft: its documents are made when it is approved`);
    await writeWhole(options.out, piecesOf(documents[format]), options.force ?? false);
    if (options.json) printJson({ file: options.out, format });
    else say(`written to ${options.out}`);
  });
}

async function* piecesOf(content: string | Buffer): AsyncGenerator<string | Buffer> {
  yield content;
}

async function file(options: FileOptions): Promise<void> {
  const format = oneOf(options.format, '--format', ['pain001', 'csv'] as const);
  const name = parseText(options.payerName, '--payer-name', NAME_MAX);
  const iban = options.payerIban.replaceAll(' ', '').toUpperCase();
  if (!isIban(iban)) wrongUsage('--payer-iban takes an IBAN: its check digits are wrong, or its form');
  const ids = options.settlement?.map((each) => parseId(each, 'settlement'));
  const due = options.due === undefined ? undefined : parseDay(options.due, '--due');
  await checkTarget(options.out, options.force ?? false);
  const text = await readFile(options.accounts, 'utf8').catch(() =>
    fail(`${options.accounts} cannot be read`),
  );
  await withOperator(async (operator) => {
    const { db, clock } = operator.service;
    const by = due ?? clock().toISOString().slice(0, 10);
    const open = [
      ...(await listSettlements(db, { state: 'APPROVED' })),
      ...(await listSettlements(db, { state: 'RETURNED' })),
    ].filter(({ payable, dueOn }) => payable.minor > 0n && dueOn <= by);
    const settlements = ids ? await Promise.all(ids.map((each) => getSettlement(db, each))) : open;
    const accounts = readAccounts(text);
    const payer = { name, iban, bic: options.payerBic ?? null };
    const content = await makePayoutFile(operator, settlements, { format, accounts, payer });
    await writeWhole(options.out, piecesOf(content), options.force ?? false);
    if (options.json) printJson({ file: options.out, format, settlements: settlements.length });
    else say(`${settlements.length} payouts written to ${options.out}`);
  });
}
