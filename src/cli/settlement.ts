import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import { disputes, type ListedDispute } from '../operator/disputes.ts';
import { settlementDocuments } from '../operator/settlement-documents.ts';
import type { Settlement } from '../operator/settlement-schema.ts';
import { type SettlementDetails, settlements } from '../operator/settlements.ts';
import { amountText, fail, printFields, printTable, say, wrongUsage } from './output.ts';
import { oneOf, parseCount, parseDay, parseIban, parseId, parseText, repeat } from './parse.ts';
import { LISTED_MAX, listCommand, parseReference, performCommand, performFile } from './perform.ts';
import { addTerms } from './settlement-terms.ts';

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
  again?: boolean;
};

/** Adds the commands for documents of settlements. */
export function addSettlementDocuments(settlement: Command): void {
  settlement
    .command('document <id>')
    .description('write the document of an approved settlement')
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
    .option('--settlement <id>', 'pay this one; may be repeated (default: all due ones in no file)', repeat)
    .option('--due <day>', 'all that are due by this day (default: today)')
    .option('--again', 'pay settlements of an earlier file, which the bank did not execute; needs --reason')
    .requiredOption('--out <file>', 'the file')
    .option('--force', 'overwrite the file')
    .option('--json', 'print JSON')
    .action(file);
  settlement
    .command('files')
    .description('list the payout files that were made, newest first')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(listFiles);
}

async function listFiles(options: Json & { limit: string }): Promise<void> {
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  await listCommand(settlementDocuments.files, {}, limit, options, (found) =>
    printTable(
      ['id', 'made at', 'made by', 'format', 'settlements', 'SHA-256'],
      found.map(({ id, madeAt, madeBy, format, settlements: numbers, sha256 }) => {
        return [
          id,
          madeAt.toISOString().slice(0, 16).replace('T', ' '),
          madeBy,
          format,
          numbers.join(' '),
          sha256,
        ];
      }),
      ['made by', 'settlements'],
    ),
  );
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
  const payerIban = parseIban(options.payerIban, '--payer-iban');
  const { settlement, due, payerBic, again } = options;
  if (settlement !== undefined && due !== undefined)
    wrongUsage('--due needs no --settlement: give one of the two');
  const accounts = await readFile(options.accounts, 'utf8').catch(() =>
    fail(`${options.accounts} cannot be read`),
  );
  const input = {
    format,
    accounts,
    payerName,
    payerIban,
    ...(payerBic !== undefined && { payerBic }),
    ...(settlement && { settlements: settlement.map((each) => String(parseId(each, 'settlement'))) }),
    ...(due !== undefined && { due: parseDay(due, '--due') }),
    ...(again && { again }),
  };
  await performFile(settlementDocuments.file, input, options);
}

const REFERENCE_MAX = 100;
const COMMENT_MAX = 2_000;
const LISTED = '50';

type Json = { json?: boolean };

export function registerSettlement(program: Command): void {
  const settlement = program.command('settlement').description('settlements with the merchants that redeem');
  addTerms(settlement);
  settlement
    .command('draft')
    .description(
      'draft the settlements that are due: of a merchant, or of all; an existing draft is made again',
    )
    .option('--merchant <id>', 'the merchant (default: all)')
    .option('--last-day <day>', 'the last day (default: the end of the last closed period of the terms)')
    .option('--json', 'print JSON')
    .action(draft);
  settlement
    .command('approve <id>')
    .description('approve a draft: it gets its number, and never changes again')
    .option('--json', 'print JSON')
    .action(approve);
  for (const [name, description] of [
    ['pay', 'book that the bank has paid a settlement'],
    ['returned', 'book that a payout came back'],
  ] as const) {
    settlement
      .command(`${name} <id>`)
      .description(description)
      .requiredOption('--reference <reference>', 'your reference, under which a repetition books once')
      .requiredOption('--bank-reference <reference>', 'the reference of the bank')
      .option('--value-date <day>', 'the day on which the bank booked it (default: today)')
      .option('--json', 'print JSON')
      .action((text: string, options: PayOptions) => move(text, options, name));
  }
  settlement
    .command('list')
    .description('list settlements, newest first')
    .option('--merchant <id>', 'only those of this merchant')
    .option('--state <state>', 'only those that are DRAFT, APPROVED, PAID or RETURNED')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(list);
  settlement
    .command('show <id>')
    .description(
      'show a settlement: the steps from the redemptions to the payout, its lines, payouts and disputes',
    )
    .option('--json', 'print JSON')
    .action(show);
  addDisputes(settlement);
  addSettlementDocuments(settlement);
}

function addDisputes(settlement: Command): void {
  settlement
    .command('disputes')
    .description('list the disputes of merchants, newest first')
    .option('--merchant <id>', 'only those of this merchant')
    .option('--open', 'only those without an answer')
    .option('--limit <count>', `how many, up to ${LISTED_MAX}`, LISTED)
    .option('--json', 'print JSON')
    .action(listDisputes);
  settlement
    .command('dispute <id>')
    .description('record a dispute of the merchant; it changes no number')
    .requiredOption('--comment <text>', 'the objection')
    .option('--line <line>', 'the line that it is about, such as a product or a transaction')
    .option('--json', 'print JSON')
    .action(dispute);
  settlement
    .command('answer <disputeId>')
    .description('answer a dispute')
    .requiredOption('--comment <text>', 'the answer')
    .option('--json', 'print JSON')
    .action(answer);
}

const settlementOf = (text: string) => ({ id: String(parseId(text, 'settlement')) });
const merchantOf = ({ merchant }: { merchant?: string }) =>
  merchant === undefined ? {} : { merchantId: String(parseId(merchant)) };

async function draft(options: Json & { merchant?: string; lastDay?: string }): Promise<void> {
  const { lastDay } = options;
  const input = {
    ...merchantOf(options),
    ...(lastDay !== undefined && { lastDay: parseDay(lastDay, '--last-day') }),
  };
  await performCommand(
    settlements.draft,
    input,
    options,
    ({ items }) => (items.length === 0 ? say('nothing is due') : printList(items)),
    { toJson: ({ items }) => items },
  );
}

async function approve(text: string, options: Json): Promise<void> {
  await performCommand(settlements.approve, settlementOf(text), options, ({ replayed, ...settlement }) =>
    say(
      `${replayed ? 'it was approved before: ' : 'approved: '}settlement ${settlement.number}, ${payableText(settlement)}`,
    ),
  );
}

type PayOptions = Json & { reference: string; bankReference: string; valueDate?: string };

async function move(text: string, options: PayOptions, verb: 'pay' | 'returned'): Promise<void> {
  const { valueDate } = options;
  const input = {
    ...settlementOf(text),
    reference: parseReference(options.reference),
    bankReference: parseText(options.bankReference, '--bank-reference', REFERENCE_MAX),
    ...(valueDate !== undefined && { valueDate: parseDay(valueDate, '--value-date') }),
  };
  await performCommand(settlements[verb], input, options, ({ replayed, ...settlement }) =>
    say(
      `${replayed ? 'this was booked before; ' : ''}settlement ${settlement.number} is ${settlement.state}, ${payableText(settlement)}`,
    ),
  );
}

const payableText = ({ payable, currency }: Settlement) => `${amountText(payable, currency)} ${currency}`;

type ListOptions = Json & { merchant?: string; state?: string; open?: boolean; limit: string };

async function list(options: ListOptions): Promise<void> {
  const states = ['DRAFT', 'APPROVED', 'PAID', 'RETURNED'] as const;
  const { state } = options;
  const filters = {
    ...merchantOf(options),
    ...(state !== undefined && { state: oneOf(state.toUpperCase(), '--state', states) }),
  };
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  await listCommand(settlements.list, filters, limit, options, printList);
}

function printList(found: readonly Settlement[]): void {
  printTable(
    ['id', 'number', 'merchant', 'first day', 'last day', 'payable', 'currency', 'state', 'open disputes'],
    found.map((each) => [
      each.id,
      each.number ?? '-',
      `${each.merchantId} ${each.merchant}`,
      each.firstDay,
      each.lastDay,
      amountText(each.payable, each.currency),
      each.currency,
      each.state,
      String(each.openDisputes),
    ]),
    ['merchant'],
  );
}

async function show(text: string, options: Json): Promise<void> {
  await performCommand(settlements.show, settlementOf(text), options, printDetails);
}

function printDetails({ steps, rates, lines, payouts, disputes: doubts, ...settlement }: SettlementDetails) {
  const { currency } = settlement;
  printFields(settlement);
  printTable(
    ['step', 'amount'],
    steps.map(({ kind, amount }) => [kind, amountText(amount, currency)]),
  );
  for (const { commission, vat, base, fee, feeVat } of rates)
    say(
      `commission ${commission} % of ${amountText(base, currency)}: ${amountText(fee, currency)}; ` +
        `VAT ${vat} % on it: ${amountText(feeVat, currency)}`,
    );
  printTable(
    ['product', 'kind', 'rows', 'amount'],
    lines.map((line) => [
      line.product ?? '-',
      line.kind,
      String(line.rows),
      amountText(line.amount, currency),
    ]),
  );
  for (const { kind, amount, bankReference, valueDate } of payouts)
    say(`${kind} ${amountText(amount, currency)} on ${valueDate}, bank reference ${bankReference}`);
  for (const each of doubts) say(`dispute ${each.id}, ${each.state}: ${each.comment}`);
}

async function listDisputes(options: ListOptions): Promise<void> {
  const filters = { ...merchantOf(options), ...(options.open && { open: true }) };
  const limit = parseCount(options.limit, '--limit', 1, LISTED_MAX);
  await listCommand(disputes.list, filters, limit, options, (found: ListedDispute[]) =>
    printTable(
      ['id', 'settlement', 'merchant', 'line', 'comment', 'state', 'answer'],
      found.map((each) => [
        each.id,
        each.settlementId,
        each.merchantId,
        each.line ?? '',
        each.comment,
        each.state,
        each.answer ?? '',
      ]),
      ['line', 'comment', 'answer'],
    ),
  );
}

async function dispute(text: string, options: Json & { comment: string; line?: string }): Promise<void> {
  const { line } = options;
  const input = {
    ...settlementOf(text),
    comment: parseText(options.comment, '--comment', COMMENT_MAX),
    ...(line !== undefined && { line: parseText(line, '--line', REFERENCE_MAX) }),
  };
  await performCommand(disputes.dispute, input, options, ({ id }) => say(`dispute ${id} is open`));
}

async function answer(text: string, options: Json & { comment: string }): Promise<void> {
  const input = {
    id: String(parseId(text, 'dispute')),
    comment: parseText(options.comment, '--comment', COMMENT_MAX),
  };
  await performCommand(disputes.answer, input, options, ({ id }) => say(`dispute ${id} is answered`));
}
