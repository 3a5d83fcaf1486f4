import { hash } from 'node:crypto';
import Type, { type TSchema } from 'typebox';
import { invalid, type Problem } from './problem.ts';
import { NullableText } from './schema.ts';

/** Lists that are read page by page. */

/** The fields of every listing besides its filters. */
export const PAGE = {
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 500, description: 'The `nextCursor` of the page before.' }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 200,
      default: 50,
      description: 'The highest number of items on a page.',
    }),
  ),
};

/** A page of a list, and the cursor of the next page; null on the last page. */
export function Page<Item extends TSchema>(items: Item) {
  return Type.Object({ items: Type.Array(items), nextCursor: NullableText });
}

/** The sort key of the last item of a page. */
export type Position = readonly (string | number)[];

const DIGEST_LENGTH = 12;

/** Returns the digest of a list, its filters and a position. A cursor is valid only for the same digest. */
function digestOf(list: string, filters: object, position: readonly unknown[]): string {
  const text = JSON.stringify([list, Object.entries(filters).sort(), position]);
  return hash('sha256', text, 'base64url').slice(0, DIGEST_LENGTH);
}

/** Returns a cursor that continues after a position of a list. */
export function writeCursor(list: string, filters: object, position: Position): string {
  return Buffer.from(JSON.stringify([digestOf(list, filters, position), ...position])).toString('base64url');
}

/**
 * Reads a cursor.
 * @returns undefined without a cursor, for the first page
 * @throws Problem for a cursor that was edited, or is one of another list or other filters
 */
export function readCursor(list: string, filters: object, cursor: string | undefined): Position | undefined {
  if (cursor === undefined) return undefined;
  try {
    const [digest, ...position] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (digest === digestOf(list, filters, position)) return position as Position;
  } catch {
    // The text is not a cursor.
  }
  throw wrongCursor();
}

/** The refusal of a cursor that is none, or one of another list. */
export function wrongCursor(): Problem {
  return invalid(
    'cursor',
    'cursor',
    'is not a cursor of this list with these filters: begin with its first page',
  );
}

/**
 * Cuts a page out of rows that were read with one row more than the limit.
 * @param position returns the sort key of an item
 * @param scannedTo the position of the last row that was read, if reading stopped before the end of the list
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
