import { randomBytes } from 'node:crypto';
import Type, { type Static } from 'typebox';
import { changeIn } from '../agreement.ts';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { sql } from '../db/sql.ts';
import { listingAll } from '../listing.ts';
import { merchantNamed } from '../merchants/merchants.ts';
import { toSum } from '../money.ts';
import { alone, type Caller, changing, tableOf, twoPeople } from '../operation.ts';
import { CARE, MANAGE } from '../principal.ts';
import { invalid, notFound, Problem } from '../problem.ts';
import { CardLanguage, LANGUAGES } from '../products/designs.ts';
import {
  Count,
  FileSchema,
  Id,
  Secret,
  SerialNumber,
  Text,
  Time,
  TransactionId,
  toId,
  Word,
} from '../schema.ts';
import { HOUR_MS } from '../time.ts';
import { ofVoucher, showVoucher } from '../vouchers/show.ts';
import { type Batch, getBatch } from './batch.ts';
import {
  countReplacementExports,
  exportBatch,
  exportReplacement,
  findReplacement,
  requireExportable,
  SHEETS_MAX,
  type Write,
} from './export.ts';
import { describeCards, drawSheets, passphraseOf } from './sheets.ts';

/**
 * Sheets of cards, ordered from a browser: those of a batch, or the one card that replaced another. The file
 * is sealed. The person who ordered it downloads it, and the person who approved the order is shown the
 * passphrase. So neither has the codes alone, and no answer contains a code.
 */

/** Long enough to print on the next working day, but no lasting access to the codes. */
const VALID_MS = 24 * HOUR_MS;
const LISTED_MAX = 50;

type Language = (typeof LANGUAGES)[number];

const SheetsSchema = Type.Object({
  id: Id('sheets'),
  orderedBy: Text,
  orderedAt: Time,
  expiresAt: Time,
  language: Word(LANGUAGES),
  isMine: Type.Boolean({ description: 'Whether the caller ordered them, and can download them.' }),
});

const order = changing({
  name: 'sheets.order',
  title: 'Order sheets',
  summary: 'Order printable sheets of a batch, sealed with a passphrase that is shown to the approver',
  description:
    'The person who ordered them downloads the PDF within 24 hours. It opens only with the passphrase.',
  path: '/batches/:transactionId/sheets',
  command: { none: '`scrip batch export` writes the file on the machine.' },
  input: { transactionId: TransactionId, language: Type.Optional(CardLanguage) },
  output: Type.Object({ id: Id('sheets'), vouchers: Count, expiresAt: Time, passphrase: Secret }),
  roles: MANAGE,
  approval: twoPeople({ why: 'Codes and PINs are money.' }),
  agreement: {
    sentence: 'Print the vouchers of order {reference} of {merchant}: {vouchers}, worth {worth}',
    async of(asked) {
      const { transactionId } = asked.input;
      const { merchantId, reference } = await requirePrintable(asked.caller, transactionId);
      const { vouchers, worth } = changeIn(asked).after;
      const merchant = await merchantNamed(asked, merchantId);
      return { merchant, reference, vouchers, worth, link: `/batches/${transactionId}` };
    },
  },
  status: 201,
  async run(caller, { transactionId, language }) {
    const batch = await requirePrintable(caller, transactionId);
    const { balance, open: vouchers } = batch;
    const order = { batch, product: batch.product, card: null, subject: `batch ${transactionId}`, language };
    return { ...(await insertOrder(caller, order, balance, { vouchers })), vouchers };
  },
});

/** Returns a batch that can be printed here. @throws Problem */
export async function requirePrintable({ service }: Caller, transactionId: string) {
  const batch = await requireExportable(service, transactionId);
  if (batch.open > SHEETS_MAX)
    throw new Problem(
      'conflict',
      `sheets hold up to ${SHEETS_MAX} vouchers: an operator exports a larger batch on the machine`,
    );
  return batch;
}

type Order = {
  readonly batch: Batch;
  readonly product: string;
  readonly card: { readonly replaced: bigint; readonly exportsBefore: number } | null;
  /** The subject in the audit. */
  readonly subject: string;
  readonly language: Language | undefined;
};

/** Stores an order of the caller, with an entry in the audit. @throws Problem `forbidden` for a machine */
async function insertOrder(
  caller: Caller,
  { batch, product, card, subject, language: asked }: Order,
  minor: bigint,
  facts: object,
) {
  const { service, actor, principal } = caller;
  const { userId: orderedBy } = principal;
  if (orderedBy === null)
    throw new Problem('forbidden', 'sheets are ordered by a person, who downloads them');
  const [salt, now] = [randomBytes(16), service.clock()];
  const expiresAt = new Date(now.getTime() + VALID_MS);
  const { name, reason } = actor;
  const language = asked ?? (await describeCards(service, batch, product)).design?.language ?? 'en';
  const id = await service.db.transaction(async (tx) => {
    const [row] = await tx.query<{ id: string }>(sql`
insert into batch_sheets
  (batch_id, replaced, exports_before, ordered_by, name, reason, language, salt, ordered_at, expires_at)
values (${batch.id}, ${card?.replaced ?? null}, ${card?.exportsBefore ?? null}, ${orderedBy}, ${name},
  ${reason}, ${language}, ${salt}, ${now}, ${expiresAt})
returning id::text`);
    const worth = toSum(batch.currency, minor);
    const after = { ...facts, language, worth, expiresAt };
    await audit(tx, caller, { action: 'sheets.order', subject, after });
    return row?.id as string;
  });
  return { id, expiresAt, passphrase: passphraseOf(service.keys, salt) };
}

const orderCard = changing({
  name: 'sheets.order-card',
  title: 'Order the card',
  summary: 'Order the one card that replaced a voucher, sealed with a passphrase that the approver is shown',
  description:
    'The person who ordered it downloads the PDF within 24 hours, once. It opens only with the passphrase. ' +
    'A card that was exported before is ordered with `again` and a reason: make sure that nobody has it.',
  path: '/vouchers/:serialNumber/card',
  command: { none: '`scrip voucher export` writes the file on the machine.' },
  input: {
    serialNumber: SerialNumber,
    language: Type.Optional(CardLanguage),
    again: Type.Optional(Type.Boolean({ description: 'Order it although it was exported before.' })),
  },
  output: Type.Object({ id: Id('sheets'), serialNumber: SerialNumber, expiresAt: Time, passphrase: Secret }),
  roles: MANAGE,
  approval: twoPeople({ why: 'Codes and PINs are money.', proposers: ['support'] }),
  agreement: {
    sentence: 'Print the card that replaces voucher {replaced} of {merchant}, worth {worth}',
    async of(asked) {
      const { serialNumber } = await findReplacement(asked.caller.service, BigInt(asked.input.serialNumber));
      const { worth, exportsBefore } = changeIn(asked).after;
      const about = await ofVoucher(asked, String(serialNumber));
      return { ...about, replaced: asked.input.serialNumber, worth, exportsBefore };
    },
  },
  audit: 'sheets.order',
  status: 201,
  async run(caller, { serialNumber: text, language, again = false }) {
    const { service } = caller;
    const replaced = BigInt(text);
    const { serialNumber, batch, product, balance, state } = await findReplacement(service, replaced);
    if (state === 'CANCELED') throw new Problem('conflict', `voucher ${serialNumber} is canceled`);
    const exportsBefore = await countReplacementExports(service.db, batch, serialNumber);
    if (exportsBefore > 0 && !again)
      throw new Problem(
        'conflict',
        `voucher ${serialNumber} was exported before: make sure that nobody has the card, and order it again`,
      );
    if (again && caller.actor.reason === null)
      throw invalid('reason', 'required', 'is required with `again`');
    const card = { replaced, exportsBefore };
    const order = { batch, product, card, subject: `voucher ${serialNumber}`, language };
    const made = await insertOrder(caller, order, balance, { replaced, exportsBefore });
    return { ...made, serialNumber: String(serialNumber) };
  },
});

const list = listingAll({
  name: 'sheets.list',
  summary: 'List the sheets of a batch that were ordered and approved, newest first',
  path: '/batches/:transactionId/sheets',
  command: { none: '`scrip batch exports` lists what was exported.' },
  input: { transactionId: TransactionId },
  item: SheetsSchema,
  roles: MANAGE,
  async rows(caller, { transactionId }) {
    return listOrders(caller, await getBatch(caller.service.readDb, transactionId), null);
  },
});

/** Lists the newest sheets of a batch, or of the replacement of one of its vouchers. */
const listOrders = ({ service, principal }: Caller, batch: Batch, replaced: bigint | null) =>
  service.readDb.query<Static<typeof SheetsSchema>>(sql`
select id::text, name as "orderedBy", ordered_at as "orderedAt", expires_at as "expiresAt", language,
  ordered_by is not distinct from ${principal.userId}::int as "isMine"
from batch_sheets
where batch_id = ${batch.id} and replaced is not distinct from ${replaced}::bigint
order by id desc limit ${LISTED_MAX}`);

const listCards = listingAll({
  name: 'sheets.list-cards',
  summary: 'List the orders of the card that replaced a voucher, newest first',
  path: '/vouchers/:serialNumber/card',
  command: { none: '`scrip batch exports` lists what was exported.' },
  input: { serialNumber: SerialNumber },
  item: SheetsSchema,
  roles: CARE,
  async rows(caller, { serialNumber }) {
    const replaced = BigInt(serialNumber);
    const { batch } = await showVoucher(caller.service, replaced);
    return listOrders(caller, await getBatch(caller.service.readDb, batch), replaced);
  },
});

/** Sheets that were ordered. */
type Ordered = {
  readonly replaced: bigint | null;
  readonly exportsBefore: number | null;
  readonly reason: string | null;
  readonly language: Language;
  readonly salt: Buffer;
  readonly expiresAt: Date;
  readonly transactionId: string;
};

const download = changing({
  name: 'sheets.download',
  summary: 'Download the sealed sheets that you ordered, as a PDF; each download is recorded as an export',
  description: 'Sheets of a batch can be downloaded again within the 24 hours, a single card cannot.',
  path: '/sheets/:id/download',
  command: { none: '`scrip batch export` writes the file on the machine.' },
  input: { id: Id('sheets') },
  output: FileSchema,
  files: ['application/pdf'],
  // Support may order a card, and nobody downloads what others ordered.
  roles: CARE,
  approval: alone(
    'Two people agreed to the order, and only the person who ordered the sheets downloads them.',
  ),
  risk: 'step-up',
  audit: 'batch.export',
  // The reason is that of the order.
  takesReason: false,
  effect: 'outside',
  async run(caller, { id }) {
    const { service, actor, principal } = caller;
    const [row] = await service.db.query<Ordered>(sql`
select s.replaced, s.exports_before as "exportsBefore", s.reason, s.language, s.salt, s.expires_at as "expiresAt",
  b.transaction_id as "transactionId"
from batch_sheets s join batches b on b.id = s.batch_id
where s.id = ${toId(id)} and s.ordered_by = ${principal.userId}::int`);
    // For everybody else the sheets do not exist.
    if (!row) throw notFound(`sheets ${id}`);
    if (row.expiresAt <= service.clock())
      throw new Problem('conflict', 'sheets can be downloaded for 24 hours: order them again');
    const operator = { service, actor: { ...actor, reason: row.reason } };
    const { batch, product, name, exporting } =
      row.replaced === null
        ? await wholeBatch(caller, operator, row)
        : await oneCard(operator, row, row.replaced);
    const described = await describeCards(service, batch, product);
    const sealed = { language: row.language, passphrase: passphraseOf(service.keys, row.salt) };
    const content = drawSheets(service, described, sealed, exporting);
    return { name: `${name}-sealed.pdf`, mediaType: 'application/pdf', content };
  },
});

/** Returns a reference as the name of a file may have it. */
const inFileName = (reference: string) => reference.replace(/[^A-Za-z0-9._-]+/g, '-');

async function wholeBatch(caller: Caller, operator: Operator, { transactionId: id }: Ordered) {
  const batch = await requirePrintable(caller, id);
  const exporting = (write: Write) => exportBatch(operator, batch, 'pdf', write);
  return { batch, product: batch.product, name: `vouchers-${inFileName(batch.reference)}`, exporting };
}

/** One card leaves once. An export after the order, by any door, makes the order void. */
async function oneCard(operator: Operator, { exportsBefore }: Ordered, replaced: bigint) {
  const { serialNumber, batch, product } = await findReplacement(operator.service, replaced);
  const exporting = async (write: Write) => {
    const wanted = { replaced, serialNumber, format: 'pdf' as const, exportsBefore };
    const made = await exportReplacement(operator, batch, wanted, write);
    if (!made)
      throw new Problem('conflict', 'the card was downloaded already: if nobody has it, order it again');
  };
  return { batch, product, name: `voucher-${serialNumber}`, exporting };
}

export const OPERATIONS = tableOf(order, orderCard, list, listCards, download);
