import { audit } from '../audit/audit.ts';
import type { Operator, Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import type { CodeAndPin } from '../keyring/ring.ts';
import type { Money } from '../money.ts';
import type { Batch } from './batch.ts';
import { readVouchers } from './download.ts';
import {
  findLastExport,
  insertExport,
  insertExportEnd,
  listExportRows,
  listFaces,
  type NewExport,
} from './queries.ts';

/** A voucher with everything that is printed on its card. */
export type PrintedVoucher = CodeAndPin & {
  readonly serialNumber: bigint;
  /** Null if it is given at activation. */
  readonly value: Money | null;
  readonly currency: string;
  readonly expiresAt: Date;
};

/** More exports of one batch than anybody reads. */
const LISTED_MAX = 1_000;

/** The record of an export of a batch's codes and PINs. */
export type ExportInfo = NewExport & {
  readonly id: number;
  /** How many it holds; of an export without an end, how many it was to hold. */
  readonly vouchers: number;
  readonly begunAt: Date;
  readonly endedAt: Date | null;
  /** `begun`: it is running, or was cut off. `aborted`: some of its codes may have left. */
  readonly state: 'begun' | 'complete' | 'aborted';
};

type ExportRow = {
  id: number;
  format: NewExport['format'];
  exported_by: string;
  reason: string | null;
  vouchers: number;
  begun_at: Date;
  ended_at: Date | null;
  complete: boolean | null;
};

/**
 * Exports a completed batch: passes its vouchers to `write`, page by page. The export is recorded,
 * there and in the audit, before the first voucher is read. How it ended is recorded too, also if
 * `write` throws.
 * @returns the record
 */
export async function exportBatch(
  operator: Operator,
  batch: Batch,
  format: NewExport['format'],
  write: (vouchers: AsyncIterable<PrintedVoucher[]>, count: number) => Promise<void>,
): Promise<{ id: number; vouchers: number }> {
  if (batch.status !== 'COMPLETED') throw new Error('only a completed batch can be exported');
  const { service, actor } = operator;
  const { db, clock } = service;
  const begun = await db.transaction(async (tx) => {
    const wanted = { format, by: actor.name, reason: actor.reason };
    const [row] = await tx.query<{ id: number; vouchers: number }>(insertExport(batch.id, wanted, clock()));
    if (!row) throw new Error('an export was inserted, and no row came back');
    const after = { export: row.id, format, vouchers: row.vouchers };
    await audit(tx, operator, { action: 'batch.export', subject: `batch ${batch.transactionId}`, after });
    return row;
  });
  const end = (complete: boolean) => db.query(insertExportEnd(begun.id, complete, vouchers, clock()));
  let vouchers = 0;
  const counted = async function* () {
    for await (const page of readPrinted(service, batch)) {
      vouchers += page.length;
      yield page;
    }
  };
  try {
    await write(counted(), begun.vouchers);
  } catch (error) {
    // The first error is reported. Without a recorded end the export counts as cut off.
    await end(false).catch(() => {});
    throw error;
  }
  await end(true);
  return { id: begun.id, vouchers };
}

type FaceRow = { serial_number: bigint; expires_at: Date; value_minor: bigint | null; decimals: number };

/**
 * The vouchers of a batch for print. Each has its own expiry and value, since both may have changed: a
 * partly spent voucher is worth what is left.
 */
async function* readPrinted(service: Service, batch: Batch): AsyncGenerator<PrintedVoucher[]> {
  for await (const page of readVouchers(service, batch)) {
    const first = page[0]?.serialNumber ?? 0n;
    const last = page.at(-1)?.serialNumber ?? 0n;
    const rows = await service.db.query<FaceRow>(listFaces(batch.id, first, last));
    const faces = new Map(rows.map((row) => [row.serial_number, row]));
    yield page.flatMap(({ serialNumber, code, pin }) => {
      const face = faces.get(serialNumber);
      // Replaced between the two statements. Its successor has a higher serial number and is still to
      // come.
      if (!face) return [];
      const value = face.value_minor === null ? null : { minor: face.value_minor, decimals: face.decimals };
      return [{ serialNumber, code, pin, value, currency: batch.currency, expiresAt: face.expires_at }];
    });
  }
}

/** The exports of a batch, newest first. */
export async function listExports(db: Queries, batchId: number): Promise<ExportInfo[]> {
  const rows = await db.query<ExportRow>(listExportRows(batchId, LISTED_MAX));
  return rows.map((row) => ({
    id: row.id,
    format: row.format,
    by: row.exported_by,
    reason: row.reason,
    vouchers: row.vouchers,
    begunAt: row.begun_at,
    endedAt: row.ended_at,
    state: row.complete === null ? 'begun' : row.complete ? 'complete' : 'aborted',
  }));
}

/** How often a batch was exported, and when last. */
export async function countExports(
  db: Queries,
  batchId: number,
): Promise<{ exports: number; lastExport: Date | null }> {
  const [row] = await db.query<{ exports: number; last: Date | null }>(findLastExport(batchId));
  return { exports: row?.exports ?? 0, lastExport: row?.last ?? null };
}
