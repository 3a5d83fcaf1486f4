import type * as print from '@scrip/print';
import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Context, Operator, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { type Sql, sql } from '../db/sql.ts';
import type { CodeAndPin } from '../keyring/ring.ts';
import { checkLookupReference } from '../ledger/claims.ts';
import { declined } from '../ledger/journal.ts';
import { permit } from '../merchants/merchants.ts';
import { toText } from '../money.ts';
import { Problem } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { Count, NullableText, NullableTime, Text, Time, Word } from '../schema.ts';
import { lockVoucher } from '../vouchers/operate.ts';
import { showVoucher } from '../vouchers/show.ts';
import { zoneOfBooks } from '../zone.ts';
import { type Batch, type BatchWithVouchers, findBatchBy, findBatchOf, requireBatch } from './batch.ts';

/** The record of an export of a batch's codes and PINs. */
export const ExportSchema = Type.Object({
  id: Text,
  /** The only voucher that is exported; null: the whole batch. */
  serialNumber: NullableText,
  format: Word(['csv', 'pdf'] as const),
  by: Text,
  madeBy: Word(['merchant', 'operator'] as const, { description: 'Whether `by` is of the merchant.' }),
  reason: NullableText,
  /** The number of vouchers in the export; without a recorded end, the planned number. */
  vouchers: Count,
  begunAt: Time,
  endedAt: NullableTime,
  /** `begun`: it is running, or was cut off. `aborted`: some of its codes may have been handed out. */
  state: Word(['begun', 'complete', 'aborted'] as const, { 'x-labels': { begun: 'Running' } }),
});

export type BatchExport = Static<typeof ExportSchema>;
type Format = BatchExport['format'];

/** Lists a page of a batch's vouchers, after a serial number. */
export function listVouchers(batchId: number, after: bigint, count: number): Sql {
  return sql`
select serial_number as "serialNumber", sealed from vouchers
where batch_id = ${batchId} and serial_number > ${after} and closed is null
order by serial_number limit ${count}`;
}

type SealedRow = { readonly serialNumber: bigint; readonly sealed: Buffer };

/**
 * The number of vouchers in a page. A page is opened and written before the next one is read, so a download
 * holds no more vouchers in memory. Opening a page takes a millisecond, during which the calls of tills wait.
 */
const PAGE = 250;

/**
 * Finds the merchant's batch with a reference. Its vouchers show codes and PINs, so this requires a
 * permission.
 * @throws Refusal `18`, `03`, `60`
 */
export async function findBatch(context: Context, reference: string): Promise<Batch> {
  checkLookupReference(reference);
  permit(context, 'download', 'generate');
  const { service, merchant } = context;
  const found = sql`merchant_id = ${merchant.id} and reference = ${reference}`;
  const batch = await findBatchBy(service.db, found);
  if (!batch) throw new Refusal('60');
  return batch;
}

/**
 * Yields the vouchers of a completed batch in the order of their serial numbers, a page at a time, read on
 * demand. Between pages it holds no transaction and no connection.
 */
export async function* readVouchers(
  { db, keys }: Service,
  batch: Batch,
): AsyncGenerator<({ readonly serialNumber: bigint } & CodeAndPin)[]> {
  let after = 0n;
  for (;;) {
    const rows = await db.query<SealedRow>(listVouchers(batch.id, after, PAGE));
    if (rows.length > 0)
      yield rows.map(({ serialNumber, sealed }) => ({ serialNumber, ...keys.open(serialNumber, sealed) }));
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.serialNumber ?? after;
  }
}

/**
 * Returns all vouchers of a completed batch, in order; undefined if it has more than `most`, or does not
 * exist.
 */
export async function readVouchersOf(service: Service, transactionId: string, most: number) {
  const batch = await findBatchOf(service.db, transactionId);
  if (batch?.status !== 'COMPLETED' || batch.quantity > most) return undefined;
  const vouchers = [];
  for await (const page of readVouchers(service, batch)) vouchers.push(...page);
  return vouchers;
}

/**
 * The largest batch that is printed as sheets, which takes a core half a minute. Larger batches are for a
 * printer, who lays out the CSV.
 */
export const SHEETS_MAX = 10_000;

/** Returns a batch that can be exported. @throws Problem */
export async function requireExportable(
  { readDb }: Service,
  transactionId: string,
): Promise<BatchWithVouchers> {
  const batch = await requireBatch(readDb, transactionId);
  const refused = (why: string) => new Problem('conflict', `batch ${transactionId} ${why}`);
  if (batch.status === 'PROCESSING') throw refused('is PROCESSING: it can be exported once it is COMPLETED');
  if (batch.status === 'CANCELED') throw refused('is CANCELED: none of its vouchers can be used');
  if (batch.open === 0) throw refused('has no vouchers left');
  return batch;
}

/** Finds the voucher that replaced another, with its batch. @throws Problem `conflict`; Refusal `14` */
export async function findReplacement(service: Service, replaced: bigint) {
  const { replacedBy, batch: transactionId, product } = await showVoucher(service, replaced);
  if (replacedBy === null)
    throw new Problem('conflict', `voucher ${replaced} was not replaced: name the one that was replaced`);
  const { replacedBy: later, balance, state } = await showVoucher(service, BigInt(replacedBy));
  if (later !== null)
    throw new Problem(
      'conflict',
      `voucher ${replacedBy}, which replaced it, was replaced too: name voucher ${replacedBy}`,
    );
  const batch = (await findBatchOf(service.db, transactionId)) as Batch;
  return { serialNumber: BigInt(replacedBy), batch, product, balance, state };
}

/** The most exports of a batch in a list, more than anybody reads. */
const LISTED_MAX = 1_000;

/** Writes vouchers, page by page. `count` is the planned number. */
export type Write = (vouchers: AsyncIterable<print.Voucher[]>, count: number) => Promise<void>;

type Exported = { readonly id: number; readonly vouchers: number };

/**
 * Exports a completed batch: passes its vouchers to `write`, page by page. The export is recorded, also in
 * the audit, before the first voucher is read. Its end is recorded too, even if `write` throws.
 * @param merchant set if a person or a token of the merchant asks: the codes leave once, unless it asks for
 *   them again. `agree` is called in the transaction of the record, so a refused export uses nothing up
 * @returns the record
 * @throws Problem `conflict` if a merchant has to ask for them again
 */
export async function exportBatch(
  operator: Operator,
  batch: Batch,
  format: Format,
  write: Write,
  merchant?: { readonly again: boolean; agree(tx: Queries): Promise<void> },
): Promise<Exported> {
  if (batch.status !== 'COMPLETED') throw new Error('only a completed batch can be exported');
  const { service } = operator;
  const begun = await service.db.transaction(async (tx) => {
    if (merchant && !merchant.again) await requireFirst(tx, batch);
    await merchant?.agree(tx);
    const row = await begin(tx, operator, { batch, format, isOfMerchant: merchant !== undefined });
    const after = { export: row.id, format, vouchers: row.vouchers };
    await audit(tx, operator, { action: 'batch.export', subject: `batch ${batch.transactionId}`, after });
    return row;
  });
  return writeRecorded(operator, begun, readPrinted(service, batch, readVouchers(service, batch)), write);
}

/**
 * Exports the one voucher that replaced another, with the same records. Its code is handed out once. An
 * export counts even if it failed, since its code may have been handed out.
 * @param wanted.exportsBefore the number of earlier exports that the operator knows of; null: any number
 * @returns the record; undefined, without reading the voucher, if it was exported more often
 * @throws Refusal `44` if the voucher is closed
 */
export async function exportReplacement(
  operator: Operator,
  batch: Batch,
  wanted: {
    readonly replaced: bigint;
    readonly serialNumber: bigint;
    readonly format: Format;
    readonly exportsBefore: number | null;
  },
  write: Write,
): Promise<Exported | undefined> {
  const { service } = operator;
  const { replaced, serialNumber, format, exportsBefore } = wanted;
  const begun = await service.db.transaction(async (tx) => {
    // Of two exports at once, the second one waits here, and then finds the first.
    const bucket = service.buckets.ofSerial(serialNumber);
    const { closed } = await lockVoucher(tx, bucket, serialNumber);
    if (closed) throw declined('44');
    const exports = await countReplacementExports(tx, batch, serialNumber);
    if (exports !== (exportsBefore ?? exports)) return undefined;
    const row = await begin(tx, operator, { batch, format, serialNumber });
    const after = { export: row.id, format, replaced, again: exports > 0 };
    await audit(tx, operator, { action: 'voucher.export', subject: `voucher ${serialNumber}`, after });
    return row;
  });
  if (!begun) return undefined;
  const pages = readPrinted(service, batch, readVoucher(service, batch, serialNumber));
  return writeRecorded(operator, begun, pages, write);
}

/** Refuses to hand out the codes of a batch a second time. @throws Problem `conflict` */
async function requireFirst(tx: Queries, { id, transactionId }: Batch): Promise<void> {
  // Of two downloads at once, the second one waits here, and then finds the first.
  await tx.query(sql`select id from batches where id = ${id} for no key update`);
  const last = (await listExports(tx, id)).find(({ serialNumber }) => serialNumber === null);
  if (!last) return;
  const by = last.madeBy === 'merchant' ? last.by : 'the operator';
  throw new Problem(
    'conflict',
    `batch ${transactionId} was downloaded by ${by} at ${last.begunAt.toISOString()} (${last.format}): ` +
      'if that file is lost, ask for it again, with a reason',
  );
}

/** Returns how often a single voucher was exported, even without success. */
export async function countReplacementExports(
  db: Queries,
  batch: Batch,
  serialNumber: bigint,
): Promise<number> {
  const [row] = await db.query<{ exports: number }>(sql`
select count(*)::int as exports from batch_exports
where batch_id = ${batch.id} and serial_number = ${serialNumber}`);
  return row?.exports ?? 0;
}

type Beginning = {
  readonly batch: Batch;
  readonly format: Format;
  /** The only voucher; by default the whole batch. */
  readonly serialNumber?: bigint;
  readonly isOfMerchant?: boolean;
};

async function begin(
  tx: Queries,
  { service, actor }: Operator,
  { batch, format, serialNumber, isOfMerchant = false }: Beginning,
): Promise<Exported> {
  const [row] = (await tx.query<Exported>(sql`
insert into batch_exports
  (batch_id, serial_number, format, exported_by, reason, vouchers, begun_at, is_of_merchant)
values (${batch.id}, ${serialNumber ?? null}, ${format}, ${actor.name}, ${actor.reason},
  ${serialNumber === undefined ? batch.quantity : 1}, ${service.clock()}, ${isOfMerchant})
returning id, vouchers`)) as [Exported];
  return row;
}

/** Passes the vouchers of a recorded export to `write`, and records its end. */
async function writeRecorded(
  { service: { db, clock } }: Operator,
  begun: Exported,
  pages: AsyncIterable<print.Voucher[]>,
  write: Write,
): Promise<Exported> {
  const end = (complete: boolean) =>
    db.query(sql`
insert into batch_export_ends (export_id, complete, vouchers, ended_at)
values (${begun.id}, ${complete}, ${vouchers}, ${clock()})`);
  let vouchers = 0;
  const counted = async function* () {
    for await (const page of pages) {
      vouchers += page.length;
      yield page;
    }
  };
  try {
    await write(counted(), begun.vouchers);
  } catch (error) {
    // The first error is reported. Without a recorded end, the export counts as cut off.
    await end(false).catch(() => {});
    throw error;
  }
  await end(true);
  return { id: begun.id, vouchers };
}

/** What is printed next to the code and the PIN of a voucher. */
type Face = {
  readonly serialNumber: bigint;
  readonly expiresAt: Date;
  readonly lastDay: string;
  readonly value: bigint | null;
};

/**
 * Yields the vouchers of a batch for print. Each has its current expiry and value, since both may have
 * changed: a partly spent voucher is worth its remaining balance.
 */
async function* readPrinted(
  service: Service,
  batch: Batch,
  pages: ReturnType<typeof readVouchers>,
): AsyncGenerator<print.Voucher[]> {
  const zone = await zoneOfBooks(service.db);
  for await (const page of pages) {
    const first = page[0]?.serialNumber ?? 0n;
    const last = page.at(-1)?.serialNumber ?? 0n;
    // The data that is printed next to the codes of a page of vouchers. An inactive voucher has the
    // value of its batch. A voucher that expires at midnight is valid until the day before.
    const rows = await service.db.query<Face>(sql`
select v.serial_number as "serialNumber", v.expires_at as "expiresAt",
  ((v.expires_at - interval '1 millisecond') at time zone ${zone})::date::text as "lastDay",
  case when v.activated_at is null then b.value_minor else v.balance_minor end as value
from vouchers v join batches b on b.id = v.batch_id
where v.batch_id = ${batch.id} and v.serial_number between ${first} and ${last} and v.closed is null`);
    const faces = new Map(rows.map((row) => [row.serialNumber, row]));
    yield page.flatMap((voucher) => {
      const face = faces.get(voucher.serialNumber);
      // It was replaced between the two statements. Its replacement has a higher serial number and follows
      // later.
      if (!face) return [];
      const value = face.value === null ? null : toText({ minor: face.value, decimals: batch.decimals });
      return [{ ...voucher, ...face, value, currency: batch.currency }];
    });
  }
}

/** Yields one voucher of a batch, as a page. @throws Refusal `44` if it was closed meanwhile */
async function* readVoucher({ db, keys }: Service, batch: Batch, serialNumber: bigint) {
  const [row] = await db.query<SealedRow>(listVouchers(batch.id, serialNumber - 1n, 1));
  if (row?.serialNumber !== serialNumber) throw declined('44');
  yield [{ serialNumber, ...keys.open(serialNumber, row.sealed) }];
}

export async function listExports(db: Queries, batchId: number): Promise<BatchExport[]> {
  return db.query<BatchExport>(sql`
select e.id::text, e.serial_number::text as "serialNumber", e.format, e.exported_by as by,
  case when e.is_of_merchant then 'merchant' else 'operator' end as "madeBy", e.reason,
  coalesce(n.vouchers, e.vouchers) as vouchers, e.begun_at as "begunAt", n.ended_at as "endedAt",
  case when n.complete then 'complete' when n.complete is null then 'begun' else 'aborted' end as state
from batch_exports e left join batch_export_ends n on n.export_id = e.id
where e.batch_id = ${batchId} order by e.id desc limit ${LISTED_MAX}`);
}

type Counts = { readonly exports: number; readonly lastExport: Date | null };

/** Returns how often a whole batch was exported, and the time of the last export. */
export async function countExports(db: Queries, batchId: number): Promise<Counts> {
  const [counts] = (await db.query<Counts>(sql`
select count(*)::int as exports, max(begun_at) as "lastExport" from batch_exports
where batch_id = ${batchId} and serial_number is null`)) as [Counts];
  return counts;
}
