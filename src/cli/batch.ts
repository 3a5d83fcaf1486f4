import type { Command } from 'commander';
import { percentOf } from '../batches/list.ts';
import { type Batch, batches } from '../operator/batches.ts';
import { addExport } from './batch-export.ts';
import { addGenerate } from './batch-generate.ts';
import { amountText } from './merchant.ts';
import { printFields, printTable, say } from './output.ts';
import { oneOf, parseId, parseTransactionId } from './parse.ts';
import { LISTED_MAX, listCommand, performCommand } from './perform.ts';

const STATUSES = ['PROCESSING', 'COMPLETED', 'CANCELED'] as const;

type Json = { json?: boolean };

export function registerBatch(program: Command): void {
  const batch = program.command('batch').description('batches of vouchers');
  addGenerate(batch);
  addExport(batch);
  batch
    .command('list')
    .description('list the newest batches, newest first')
    .option('--merchant <id>', 'only those of this merchant')
    .option('--status <status>', `only those that are ${STATUSES.join(', ')}`)
    .option('--json', 'print JSON')
    .action(list);
  batch
    .command('show <transactionId>')
    .description('show a batch')
    .option('--json', 'print JSON')
    .action(show);
  batch
    .command('cancel <transactionId>')
    .description(
      'cancel a batch that is being produced: its vouchers never exist, and its float is refunded in full',
    )
    .option('--json', 'print JSON')
    .action(cancel);
}

async function list(options: Json & { merchant?: string; status?: string }): Promise<void> {
  const { merchant, status } = options;
  const filters = {
    ...(merchant !== undefined && { merchantId: String(parseId(merchant)) }),
    ...(status !== undefined && { status: oneOf(status.toUpperCase(), '--status', STATUSES) }),
  };
  await listCommand(batches.list, filters, LISTED_MAX, options, (found: Batch[]) =>
    printTable(
      ['transaction id', 'merchant', 'reference', 'status', 'quantity', 'produced'],
      found.map((each) => [
        each.transactionId,
        each.merchantId,
        each.reference,
        each.status,
        String(each.quantity),
        `${percentOf(each)} %`,
      ]),
      ['reference'],
    ),
  );
}

async function show(text: string, options: Json): Promise<void> {
  await performCommand(batches.show, { transactionId: parseTransactionId(text) }, options, (batch) =>
    printFields({
      ...batch,
      percent: `${batch.percent} %`,
      value: batch.value && amountText(batch.value, batch.currency),
      balance: amountText(batch.balance, batch.currency),
    }),
  );
}

async function cancel(text: string, options: Json): Promise<void> {
  const input = { transactionId: parseTransactionId(text) };
  await performCommand(batches.cancel, input, options, () => say('canceled'));
}
