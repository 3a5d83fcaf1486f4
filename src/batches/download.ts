import { writeCsv } from '@scrip/print/csv';
import Type from 'typebox';
import type { Context } from '../context.ts';
import { CSV_TYPE } from '../csv.ts';
import type { Queries } from '../db/pool.ts';
import { actFor, permit, requireMerchant } from '../merchants/merchants.ts';
import { alone, type Caller, changing, NO_COMMAND, reading } from '../operation.ts';
import { Page } from '../page.ts';
import { MANAGE } from '../principal.ts';
import { invalid } from '../problem.ts';
import { CardLanguage } from '../products/designs.ts';
import { FileSchema, Nullable, Text, TransactionId, Word } from '../schema.ts';
import type { Batch } from './batch.ts';
import { batches } from './batches.ts';
import { ExportSchema, exportBatch, requireExportable, type Write } from './export.ts';
import { requirePrintable } from './order-sheets.ts';
import { useRelease } from './release.ts';
import { describeCards, drawSheets, exportedPieces } from './sheets.ts';

/** A merchant's people download the codes of their own batches (docs/how-to/print.md, "From the portal"). */

export const download = changing({
  name: 'batch.download',
  title: 'Download the vouchers',
  summary: 'Download the codes and PINs of a completed batch, as a table or as sheets of cards',
  description:
    'Each download is recorded, in the audit too, before the first code leaves. The codes leave once: after a ' +
    'download in the portal or an export of the operator, `again` and a reason are needed. The merchant needs the ' +
    'permission download or generate. Sheets hold up to 10,000 vouchers, the CSV any number.',
  path: '/batches/:transactionId/download',
  command: NO_COMMAND,
  input: {
    transactionId: TransactionId,
    format: Word(['csv', 'pdf'] as const, { description: '`csv`: a table; `pdf`: sheets of cards.' }),
    language: Type.Optional(CardLanguage),
    passphrase: Type.Optional(
      Type.String({
        pattern: '^[!-~]{12,100}$',
        description: 'Seals the PDF, which opens only with it: 12 characters or more. It is not stored.',
      }),
    ),
    again: Type.Optional(
      Type.Boolean({ description: 'Download them although they were downloaded before.' }),
    ),
  },
  output: FileSchema,
  files: ['text/csv', 'application/pdf'],
  roles: MANAGE,
  approval: alone('They are the own vouchers of the merchant.'),
  risk: 'step-up',
  audit: 'batch.export',
  effect: 'outside',
  async run(caller, { transactionId, format, language, passphrase, again = false }) {
    const { service, actor } = caller;
    if (again && actor.reason === null) throw invalid('reason', 'required', 'is required with again');
    if (passphrase !== undefined && format !== 'pdf')
      throw invalid('passphrase', 'pdf', 'seals a PDF, and not a CSV');
    const batch = await requireOwn(caller, transactionId, format);
    const described = await describeCards(service, batch, batch.product);
    const { downloadApproval } = await requireMerchant(caller, batch.merchantId);
    const agree = async (tx: Queries) => {
      if (downloadApproval) await useRelease(tx, caller, batch);
    };
    const exporting = (write: Write) => exportBatch(caller, batch, format, write, { again, agree });
    const name = `vouchers-${transactionId}.${format}`;
    if (format === 'csv') {
      const content = exportedPieces(exporting, (vouchers) => writeCsv(described, vouchers));
      return { name, mediaType: CSV_TYPE, content };
    }
    const content = drawSheets(service, described, { language, passphrase }, exporting);
    return { name, mediaType: 'application/pdf', content };
  },
});

/** Returns a batch whose merchant may download it. @throws Problem; Refusal `03`, `04` */
async function requireOwn(caller: Caller, transactionId: string, format: 'csv' | 'pdf') {
  const batch =
    format === 'pdf'
      ? await requirePrintable(caller, transactionId)
      : await requireExportable(caller.service, transactionId);
  permit(await merchantOf(caller, batch), 'download', 'generate');
  return batch;
}

const merchantOf = async ({ service }: Caller, { merchantId }: Batch) =>
  (await actFor(service, Number(merchantId))) as Context;

/** The same list as the operator's, without the names and reasons of the operator's people. */
export const ownExports = reading({
  name: batches.exports.name,
  summary: batches.exports.summary,
  path: batches.exports.path,
  command: NO_COMMAND,
  input: { transactionId: TransactionId },
  output: Page(
    Type.Object({
      ...ExportSchema.properties,
      by: Nullable(Text, { description: 'The name of your person or token; null: the operator.' }),
    }),
  ),
  roles: MANAGE,
  async run(caller, input) {
    const { items, nextCursor } = await batches.exports.run(caller, input);
    const shown = items.map((each) =>
      each.madeBy === 'merchant' ? each : { ...each, by: null, reason: null },
    );
    return { items: shown, nextCursor };
  },
});
