import { hash } from 'node:crypto';
import type { ClosingRow } from './close.queries.ts';

/** How closings are computed. A later version that computes anything differently has another number. */
export const VERSION = 1;

/** The hash before the first closing. */
export const GENESIS = Buffer.alloc(32);

/**
 * The hash of a closing: SHA-256 over the hash before it and the columns as JSON
 * (docs/explanation/books.md).
 */
export function hashOfClosing(row: ClosingRow): Buffer {
  const columns = [
    row.day,
    row.starts_at.toISOString(),
    row.ends_at.toISOString(),
    row.zone,
    String(row.rows),
    row.first_id,
    row.last_id,
    row.rows_hash.toString('hex'),
    row.totals,
    row.version,
    row.closed_at.toISOString(),
  ];
  const text = JSON.stringify(['scrip closing', ...columns]);
  return hash('sha256', Buffer.concat([row.previous_hash, Buffer.from(text)]), 'buffer');
}
