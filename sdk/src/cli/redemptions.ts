import type { Scrip } from '../scrip.ts';
import type { RedemptionUpdate } from '../types.ts';
import { amountOf, CONNECTION, type Command, type Line, wrongUsage } from './command.ts';
import { openSession, type Session } from './session.ts';
import { printFields, printJson, printTable, say, write } from './terminal.ts';
import { printTransaction } from './vouchers.ts';

export const UPDATE: Command = {
  name: 'update',
  args: ['REFERENCE'],
  summary: 'change the amount of a redemption, once',
  details: 'Variant a only. To give everything back, use `reverse`.',
  options: {
    'amount-used': { value: 'AMOUNT', summary: 'the amount that it should have taken', required: true },
    ...CONNECTION,
  },
  async run(line) {
    const amountUsed = amountOf(line, 'amount-used') as number;
    const { scrip, call } = await openForUpdates(line);
    await printUpdate(
      line,
      await scrip.updateRedemption({ reference: line.args[0] ?? '', amountUsed }, call),
    );
  },
};

export const REVERSE: Command = {
  name: 'reverse',
  args: ['REFERENCE'],
  summary: 'give the whole amount of a redemption back to the voucher',
  details: 'Variant a only. A redemption can be updated or reversed once.',
  options: { ...CONNECTION },
  async run(line) {
    const { scrip, call } = await openForUpdates(line);
    await printUpdate(line, await scrip.reverseRedemption(line.args[0] ?? '', call));
  },
};

export const UPDATED: Command = {
  name: 'updated',
  args: ['REFERENCE'],
  summary: 'show the update or reversal of a redemption',
  details: 'Variant a only.',
  options: { ...CONNECTION },
  async run(line) {
    const { scrip, call } = await openForUpdates(line);
    await printUpdate(line, await scrip.redemptionUpdate(line.args[0] ?? '', call));
  },
};

export const UNDO: Command = {
  name: 'undo',
  args: ['REFERENCE'],
  summary: 'give a redemption up: reverse it, or ensure that it is never booked',
  details:
    'For a redemption whose outcome is unknown. It needs SCRIP_PORTAL_TOKEN, a token of the portal. Do not use\n' +
    'the reference again.',
  options: { ...CONNECTION },
  async run(line) {
    const { scrip, call } = await openSession(line);
    const undone = await scrip.undo(line.args[0] ?? '', call);
    if (line.has('json')) return printJson(undone);
    const { outcome, reference, amount, voucherCode } = undone;
    await printFields({
      outcome,
      reference,
      ...(amount !== null && { 'given back': amount }),
      ...(voucherCode !== null && { voucher: voucherCode }),
    });
  },
};

export const TRANSACTION: Command = {
  name: 'transaction',
  args: ['REFERENCE'],
  summary: 'show the active transaction under a reference',
  options: { ...CONNECTION },
  async run(line) {
    const { scrip, call } = await openSession(line);
    await printTransaction(line, await scrip.transaction(line.args[0] ?? '', call));
  },
};

export const TRANSACTIONS: Command = {
  name: 'transactions',
  args: [],
  summary: 'list the most recent transactions, newest first, at most 50',
  options: { ...CONNECTION },
  async run(line) {
    const { scrip, call } = await openSession(line);
    const found = await scrip.transactions(call);
    if (line.has('json')) return printJson(found);
    await printTable(
      ['time', 'type', 'amount', 'voucher', 'reference', 'refund'],
      found.map(({ timestamp, transactionType, amount, voucherCode, reference, refundStatus }) => [
        timestamp,
        transactionType,
        amount,
        voucherCode,
        reference,
        refundStatus,
      ]),
    );
  },
};

async function openForUpdates(line: Line): Promise<{ scrip: Scrip<'a'>; call: Session['call'] }> {
  const { inA, call } = await openSession(line);
  if (!inA) wrongUsage('variant b has no updates: --variant a');
  return { scrip: inA, call };
}

async function printUpdate(line: Line, update: RedemptionUpdate & { replayed?: boolean }): Promise<void> {
  if (line.has('json')) return printJson(update);
  if (update.replayed) say('this had been done before, and was not done again');
  const { summary, originalTransaction, cancellationTransaction, newTransaction } = update;
  await printFields({
    reference: summary.reference,
    'original amount': summary.originalAmount,
    'new amount': summary.newAmount,
  });
  await write('\n');
  await printTable(
    ['type', 'amount', 'voucher', 'reference', 'refund'],
    [originalTransaction, cancellationTransaction, newTransaction]
      .filter((each) => each !== null)
      .map(({ transactionType, amount, voucherCode, reference, refundStatus }) => [
        transactionType,
        amount,
        voucherCode,
        reference,
        refundStatus,
      ]),
  );
}
