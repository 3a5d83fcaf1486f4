import { hash } from 'node:crypto';
import { invalid } from './problem.ts';

/** The end of a page: the sort key of its last item. */
export type Position = readonly (string | number)[];

const DIGEST_LENGTH = 12;

/** What a cursor belongs to: the list and its filters. */
function digestOf(list: string, filters: object): string {
  return hash('sha256', JSON.stringify([list, Object.entries(filters).sort()]), 'base64url').slice(
    0,
    DIGEST_LENGTH,
  );
}

/** The cursor behind a position of a list. */
export function writeCursor(list: string, filters: object, position: Position): string {
  return Buffer.from(JSON.stringify([digestOf(list, filters), ...position])).toString('base64url');
}

/**
 * Reads a cursor.
 * @returns undefined where there is none: the first page
 * @throws Problem for a cursor of another list, of other filters, or of nothing
 */
export function readCursor(list: string, filters: object, cursor: string | undefined): Position | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [digest, ...position] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (
      digest === digestOf(list, filters) &&
      position.every((each) => typeof each === 'string' || typeof each === 'number')
    )
      return position as Position;
  } catch {
    // It is no cursor at all.
  }
  throw invalid(
    'cursor',
    'cursor',
    'is not a cursor of this list with these filters: begin with its first page',
  );
}

/**
 * Cuts a page out of rows that were read with one row more than its limit.
 * @param position the sort key of an item
 * @param scannedTo where the rows end before the list does: the position of the last row that was looked at
 */
export function pageOf<Item>(
  list: string,
  filters: object,
  rows: readonly Item[],
  limit: number,
  position: (item: Item) => Position,
  scannedTo?: Position,
): { items: Item[]; nextCursor: string | null } {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const end = rows.length > limit && last !== undefined ? position(last) : scannedTo;
  return { items, nextCursor: end ? writeCursor(list, filters, end) : null };
}
