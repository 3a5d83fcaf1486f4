import type { Command } from 'commander';
import { toNumber, toText } from '../money.ts';
import { approve, requireFourEyes } from '../settlement/approve.ts';
import { answer, dispute } from '../settlement/disputes.ts';
import { draftAll, draftSettlements } from '../settlement/draft.ts';
import { giveBack, pay } from '../settlement/pay.ts';
import {
  disputesOf,
  getSettlement,
  type Line,
  linesOf,
  listSettlements,
  payoutsOf,
  type Settlement,
} from '../settlement/settlements.ts';
import { requireMerchant } from './money.ts';
import { withOperator, withService } from './open.ts';
import { id, printFields, printJson, printTable, say } from './output.ts';
import { oneOf, parseDay, parseId, parseText } from './parse.ts';
import { requireApproval } from './perform.ts';
import { addSettlementDocuments } from './settlement-documents.ts';
import { addTerms } from './settlement-terms.ts';

const REFERENCE_MAX = 100;
const COMMENT_MAX = 2_000;

type Json = { json?: boolean };

export function registerSettlement(program: Command): void {
  const settlement = program.command('settlement').description('settlements with the merchants that redeem');
  addTerms(settlement);
  settlement
    .command('draft')
    .description('draft what is due: of a merchant, or of all; an existing draft is made again')
    .option('--merchant <id>', 'the merchant (default: all)')
    .option('--last-day <day>', 'the last day (default: the end of the last closed period of the terms)')
    .option('--json', 'print JSON')
    .action(draft);
  settlement
    .command('approve <id>')
    .description('approve a draft: it gets its number, and nothing of it changes any more')
    .option('--json', 'print JSON')
    .action(approveOne);
  for (const [name, description, run] of [
    ['pay', 'book that the bank has paid a settlement', pay],
    ['returned', 'book that a payout came back', giveBack],
  ] as const) {
    settlement
      .command(`${name} <id>`)
      .description(description)
      .requiredOption('--reference <reference>', 'your reference, under which a repetition books once')
      .requiredOption('--bank-reference <reference>', 'the reference of the bank')
      .option('--value-date <day>', 'the day on which the bank booked it (default: today, UTC)')
      .option('--json', 'print JSON')
      .action((text: string, options: PayOptions) => move(text, options, run));
  }
  settlement
    .command('list')
    .description('list settlements, the newest first')
    .option('--merchant <id>', 'of one merchant')
    .option('--state <state>', 'DRAFT, APPROVED, PAID or RETURNED')
    .option('--json', 'print JSON')
    .action(list);
  settlement
    .command('show <id>')
    .description('show a settlement, its lines, payouts and disputes')
    .option('--json', 'print JSON')
    .action(show);
  settlement
    .command('dispute <id>')
    .description('write down a doubt of the merchant, which changes no number')
    .requiredOption('--comment <text>', 'what is doubted')
    .option('--line <line>', 'the line that it is about, such as a product or a transaction')
    .option('--json', 'print JSON')
    .action(disputeOne);
  settlement
    .command('answer <disputeId>')
    .description('answer a dispute')
    .requiredOption('--comment <text>', 'the answer')
    .option('--json', 'print JSON')
    .action(answerOne);
  settlement
    .command('four-eyes <on-or-off>')
    .description('whether another person must approve than the one who drafted')
    .option('--json', 'print JSON')
    .action(fourEyes);
  addSettlementDocuments(settlement);
}

async function draft(options: Json & { merchant?: string; lastDay?: string }): Promise<void> {
  const lastDay = options.lastDay === undefined ? undefined : parseDay(options.lastDay, '--last-day');
  const merchantId = options.merchant === undefined ? undefined : parseId(options.merchant);
  await withOperator(async (operator) => {
    if (merchantId !== undefined) await requireMerchant(operator.service.db, merchantId);
    const drafts =
      merchantId === undefined
        ? await draftAll(operator, lastDay)
        : await draftSettlements(operator, { merchantId, lastDay });
    if (options.json) return printJson(drafts.map(settlementJson));
    if (drafts.length === 0) return say('nothing is due');
    printList(drafts);
  });
}

async function approveOne(text: string, options: Json): Promise<void> {
  const settlementId = parseId(text, 'settlement');
  await withOperator(async (operator) => {
    await requireApproval(operator, 'settlement.approve');
    const { settlement, replayed } = await approve(operator, settlementId);
    if (options.json) return printJson({ ...settlementJson(settlement), replayed });
    say(
      `${replayed ? 'it was approved before: ' : 'approved: '}settlement ${settlement.number}, ${payableText(settlement)}`,
    );
  });
}

type PayOptions = Json & { reference: string; bankReference: string; valueDate?: string };

async function move(text: string, options: PayOptions, run: typeof pay): Promise<void> {
  const settlementId = parseId(text, 'settlement');
  const reference = parseText(options.reference, '--reference', REFERENCE_MAX);
  const bankReference = parseText(options.bankReference, '--bank-reference', REFERENCE_MAX);
  await withOperator(async (operator) => {
    if (run === pay) await requireApproval(operator, 'settlement.pay');
    const today = operator.service.clock().toISOString().slice(0, 10);
    const valueDate = options.valueDate === undefined ? today : parseDay(options.valueDate, '--value-date');
    const { settlement, transactionId, replayed } = await run(operator, {
      settlementId,
      reference,
      bankReference,
      valueDate,
    });
    if (options.json) return printJson({ ...settlementJson(settlement), transactionId, replayed });
    say(
      `${replayed ? 'this was booked before; ' : ''}settlement ${settlement.number} is ${settlement.state}, ${payableText(settlement)}`,
    );
  });
}

const payableText = ({ payable, currency }: Settlement) => `${toText(payable)} ${currency}`;

async function list(options: Json & { merchant?: string; state?: string }): Promise<void> {
  const merchantId = options.merchant === undefined ? undefined : parseId(options.merchant);
  const states = ['DRAFT', 'APPROVED', 'PAID', 'RETURNED'] as const;
  const state = options.state === undefined ? undefined : oneOf(options.state, '--state', states);
  await withService(async ({ db }) => {
    const found = await listSettlements(db, { merchantId, state });
    if (options.json) printJson(found.map(settlementJson));
    else printList(found);
  });
}

function printList(settlements: readonly Settlement[]): void {
  printTable(
    ['id', 'number', 'merchant', 'first day', 'last day', 'payable', 'currency', 'state'],
    settlements.map((each) => [
      String(each.id),
      each.number ?? '-',
      `${each.merchantId} ${each.merchant}`,
      each.firstDay,
      each.lastDay,
      toText(each.payable),
      each.currency,
      each.state,
    ]),
    ['merchant'],
  );
}

async function show(text: string, options: Json): Promise<void> {
  const settlementId = parseId(text, 'settlement');
  await withService(async ({ db }) => {
    const settlement = await getSettlement(db, settlementId);
    const lines = await linesOf(db, settlement);
    const payouts = await payoutsOf(db, settlement);
    const disputes = await disputesOf(db, settlement);
    if (options.json)
      return printJson({
        ...settlementJson(settlement),
        lines: lines.map(lineJson),
        payouts: payouts.map((each) => ({ ...each, amount: toNumber(each.amount) })),
        disputes: disputes.map((each) => ({ ...each, id: id(each.id) })),
      });
    printFields(settlementJson(settlement));
    printTable(
      ['product', 'kind', 'rows', 'amount'],
      lines.map((line) => [line.product ?? '-', line.kind, String(line.rows), toText(line.amount)]),
    );
    for (const { kind, amount, bankReference, valueDate } of payouts)
      say(`${kind} ${toText(amount)} on ${valueDate}, bank reference ${bankReference}`);
    for (const each of disputes) say(`dispute ${each.id}, ${each.state}: ${each.comment}`);
  });
}

function lineJson({ product, kind, rows, amount }: Line) {
  return { product, kind, rows, amount: toNumber(amount) };
}

/** A settlement as JSON: amounts are numbers, ids are text. */
export function settlementJson(settlement: Settlement) {
  const { id: settlementId, merchantId, carried, closing, outstanding, payable, ...rest } = settlement;
  return {
    id: id(settlementId),
    merchantId: id(merchantId),
    ...rest,
    carried: toNumber(carried),
    closing: toNumber(closing),
    outstanding: toNumber(outstanding),
    payable: toNumber(payable),
  };
}

async function disputeOne(text: string, options: Json & { comment: string; line?: string }): Promise<void> {
  const settlementId = parseId(text, 'settlement');
  const comment = parseText(options.comment, '--comment', COMMENT_MAX);
  const line = options.line === undefined ? null : parseText(options.line, '--line', REFERENCE_MAX);
  await withOperator(async (operator) => {
    const disputeId = await dispute(operator, { settlementId, line, comment });
    if (options.json) printJson({ id: id(disputeId), settlementId: id(settlementId), state: 'OPEN' });
    else say(`dispute ${disputeId} is open`);
  });
}

async function answerOne(text: string, options: Json & { comment: string }): Promise<void> {
  const disputeId = parseId(text, 'dispute');
  const comment = parseText(options.comment, '--comment', COMMENT_MAX);
  await withOperator(async (operator) => {
    await answer(operator, disputeId, comment);
    if (options.json) printJson({ id: id(disputeId), state: 'ANSWERED' });
    else say(`dispute ${disputeId} is answered`);
  });
}

async function fourEyes(text: string, options: Json): Promise<void> {
  const on = oneOf(text, 'four-eyes', ['on', 'off'] as const) === 'on';
  await withOperator(async (operator) => {
    await requireFourEyes(operator, on);
    if (options.json) printJson({ fourEyes: on });
    else
      say(on ? 'another person must approve than the one who drafted' : 'the person who drafted may approve');
  });
}
