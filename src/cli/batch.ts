import type { Command } from 'commander';
import type { Batch } from '../batches/batch.ts';
import { cancelBatch } from '../batches/cancel.ts';
import { countExports } from '../batches/export.ts';
import { findBatchForOperator, listBatches, percentOf } from '../batches/list.ts';
import { toNumber, toText } from '../money.ts';
import { addExport } from './batch-export.ts';
import { addGenerate } from './batch-generate.ts';
import { withOperator, withService } from './open.ts';
import { fail, id, notFound, printFields, printJson, printTable, say } from './output.ts';
import { parseId, parseTransactionId } from './parse.ts';

type Json = { json?: boolean };

export function registerBatch(program: Command): void {
  const batch = program.command('batch').description('batches of vouchers');
  addGenerate(batch);
  addExport(batch);
  batch
    .command('list')
    .description('list the newest batches, newest first')
    .option('--merchant <id>', 'only those of this merchant')
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

async function list(options: Json & { merchant?: string }): Promise<void> {
  const merchantId = options.merchant === undefined ? null : parseId(options.merchant);
  await withService(async ({ db }) => {
    const batches = await listBatches(db, merchantId);
    if (options.json) return printJson(batches.map(toJson));
    printTable(
      ['transaction id', 'merchant', 'reference', 'status', 'quantity', 'produced'],
      batches.map((each) => [
        each.transactionId,
        String(each.merchantId),
        each.reference,
        each.status,
        String(each.quantity),
        `${percentOf(each)} %`,
      ]),
      ['reference'],
    );
  });
}

async function show(text: string, options: Json): Promise<void> {
  const transactionId = parseTransactionId(text);
  await withService(async (service) => {
    const { db } = service;
    const { batch, details } =
      (await findBatchForOperator(service, transactionId)) ?? notFound(`batch ${transactionId}`);
    const balance = { minor: details.balanceMinor, decimals: details.decimals };
    const shown = {
      ...toJson(batch),
      percent: percentOf(batch),
      product: details.product,
      value: batch.value && toNumber(batch.value),
      currency: batch.currency,
      expiryDate: batch.expiresAt,
      acceptedAt: batch.acceptedAt,
      endedAt: details.endedAt,
      failure: details.failure,
      open: details.open,
      activated: details.activated,
      balance: toNumber(balance),
      ...(await countExports(db, batch.id)),
    };
    if (options.json) return printJson(shown);
    printFields({
      ...shown,
      percent: `${shown.percent} %`,
      value: batch.value && toText(batch.value),
      balance: toText(balance),
    });
  });
}

async function cancel(text: string, options: Json): Promise<void> {
  const transactionId = parseTransactionId(text);
  await withOperator(async (operator) => {
    const batch = (await cancelBatch(operator, transactionId)) ?? notFound(`batch ${transactionId}`);
    if (batch.status !== 'CANCELED')
      fail(`batch ${transactionId} is ${batch.status}: only a batch that is being produced can be canceled`);
    if (options.json) return printJson(toJson(batch));
    say('canceled');
  });
}

function toJson({ transactionId, merchantId, reference, status, quantity, produced }: Batch) {
  return { transactionId, merchantId: id(merchantId), reference, status, quantity, produced };
}
