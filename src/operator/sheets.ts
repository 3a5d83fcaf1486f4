import { randomBytes } from 'node:crypto';
import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import { findBatchForOperator } from '../batches/batch.ts';
import { findSheets, insertSheets, listSheets } from '../batches/queries.ts';
import { describeCards, passphraseOf, sealedSheets } from '../batches/sheets.ts';
import { toText } from '../money.ts';
import {
  Count,
  FileSchema,
  Id,
  Input,
  Page,
  Reason,
  Secret,
  Text,
  Time,
  TransactionId,
  toId,
} from './fields.ts';
import { type Caller, changing, reading, tableOf } from './operations.ts';
import { MANAGE } from './principal.ts';
import { notFound, Problem } from './problem.ts';

/**
 * Sheets of cards, ordered from a browser. The file is sealed. The person who ordered it downloads it, and
 * the person who approved the order is shown the passphrase. So neither has the codes alone, and no answer
 * contains a code.
 */

/**
 * The largest batch, which takes a core half a minute. Larger batches are for a printer, who lays out the
 * CSV.
 */
const VOUCHERS_MAX = 10_000;
const HOUR_MS = 3_600_000;
/** Long enough to print on the next working day, but no lasting access to the codes. */
const VALID_MS = 24 * HOUR_MS;
const LISTED_MAX = 50;
/** The number of sheets drawn at the same time. Each takes a core. */
const AT_ONCE_MAX = 2;

const SheetsSchema = Type.Object({
  id: Id('sheets'),
  orderedBy: Text,
  orderedAt: Time,
  expiresAt: Time,
  isMine: Type.Boolean({ description: 'Whether the caller ordered them, and can download them.' }),
});

type SheetsRow = {
  id: number;
  ordered_by: number;
  name: string;
  reason: string | null;
  salt: Buffer;
  ordered_at: Date;
  expires_at: Date;
  transaction_id: string;
};

async function requireBatch({ service }: Caller, transactionId: string) {
  const found = await findBatchForOperator(service, transactionId);
  if (!found) throw notFound(`batch ${transactionId}`);
  return found;
}

/** Returns a batch that can be printed here. @throws Problem */
async function requirePrintable(caller: Caller, transactionId: string) {
  const found = await requireBatch(caller, transactionId);
  const { batch, details } = found;
  if (batch.status !== 'COMPLETED')
    throw new Problem('conflict', `the batch is ${batch.status}: only a completed batch can be printed`);
  if (details.open === 0) throw new Problem('conflict', 'the batch has no vouchers left');
  if (details.open > VOUCHERS_MAX)
    throw new Problem(
      'conflict',
      `sheets hold up to ${VOUCHERS_MAX} vouchers: an operator exports a larger batch on the machine`,
    );
  return found;
}

const order = changing({
  name: 'sheets.order',
  summary: 'Order printable sheets of a batch, sealed with a passphrase that is shown to the approver',
  description:
    'The person who ordered them downloads the PDF within 24 hours. It opens only with the passphrase.',
  method: 'POST',
  path: '/batches/:transactionId/sheets',
  command: { none: '`scrip batch export` writes the file on the machine.' },
  input: Input({ transactionId: TransactionId, reason: Reason }),
  output: Type.Object({ id: Id('sheets'), vouchers: Count, expiresAt: Time, passphrase: Secret }),
  roles: MANAGE,
  risk: 'four-eyes',
  status: 201,
  async run(caller, { transactionId }) {
    const { service, actor, principal } = caller;
    const { batch, details } = await requirePrintable(caller, transactionId);
    if (principal.userId === null)
      throw new Problem('forbidden', 'sheets are ordered by a person, who downloads them');
    const [salt, now] = [randomBytes(16), service.clock()];
    const expiresAt = new Date(now.getTime() + VALID_MS);
    const { userId: orderedBy } = principal;
    const { name, reason } = actor;
    const id = await service.db.transaction(async (tx) => {
      const wanted = { batchId: batch.id, orderedBy, name, reason, salt, now, expiresAt };
      const [row] = await tx.query<{ id: number }>(insertSheets(wanted));
      const worth = toText({ minor: details.balanceMinor, decimals: details.decimals });
      const after = { vouchers: details.open, worth: `${batch.currency} ${worth}`, expiresAt };
      await audit(tx, caller, { action: 'sheets.order', subject: `batch ${transactionId}`, after });
      return String(row?.id);
    });
    return { id, vouchers: details.open, expiresAt, passphrase: passphraseOf(service.keys, salt) };
  },
});

const list = reading({
  name: 'sheets.list',
  summary: 'List the sheets of a batch that were ordered and approved, newest first',
  method: 'GET',
  path: '/batches/:transactionId/sheets',
  command: { none: '`scrip batch exports` lists what was exported.' },
  input: Input({ transactionId: TransactionId }),
  output: Page(SheetsSchema),
  roles: MANAGE,
  async run(caller, { transactionId }) {
    const { service, principal } = caller;
    const { batch } = await requireBatch(caller, transactionId);
    const rows = await service.readDb.query<SheetsRow>(listSheets(batch.id, LISTED_MAX));
    const items = rows.map((row) => ({
      id: String(row.id),
      orderedBy: row.name,
      orderedAt: row.ordered_at,
      expiresAt: row.expires_at,
      isMine: row.ordered_by === principal.userId,
    }));
    return { items, nextCursor: null };
  },
});

let drawn = 0;

const download = changing({
  name: 'sheets.download',
  summary: 'Download the sealed sheets that you ordered, as a PDF; each download is recorded as an export',
  method: 'POST',
  path: '/sheets/:id/download',
  command: { none: '`scrip batch export` writes the file on the machine.' },
  input: Input({ id: Id('sheets') }),
  output: FileSchema,
  files: ['application/pdf'],
  roles: MANAGE,
  risk: 'step-up',
  audit: 'batch.export',
  effect: 'outside',
  async run(caller, { id }) {
    const { service, actor, principal } = caller;
    const [row] = await service.db.query<SheetsRow>(findSheets(toId(id)));
    // For everybody else the sheets do not exist.
    if (!row || row.ordered_by !== principal.userId) throw notFound(`sheets ${id}`);
    if (row.expires_at <= service.clock())
      throw new Problem('conflict', 'sheets can be downloaded for 24 hours: order them again');
    const { batch, details } = await requirePrintable(caller, row.transaction_id);
    const described = await describeCards(service, batch, details.product);
    const operator = { service, actor: { ...actor, reason: row.reason } };
    const pieces = sealedSheets(operator, batch, described, passphraseOf(service.keys, row.salt));
    return {
      name: `vouchers-${row.transaction_id}-sealed.pdf`,
      mediaType: 'application/pdf',
      content: counted(pieces),
    };
  },
});

/** Draws at most AT_ONCE_MAX files at a time. Above that, it throws before the first piece. */
async function* counted(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  if (drawn >= AT_ONCE_MAX)
    throw new Problem('too-many-requests', 'other sheets are being drawn: try again in a minute');
  drawn++;
  try {
    yield* pieces;
  } finally {
    drawn--;
  }
}

export const SHEETS = tableOf(order, list, download);
