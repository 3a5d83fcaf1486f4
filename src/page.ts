import Type, { type TSchema } from 'typebox';
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

/** Returns a list that is never long as its only page. */
export const onlyPage = <Item>(items: readonly Item[]) => ({ items: [...items], nextCursor: null });

/** The sort key of the last item of a page. */
export type Position = readonly (string | number)[];

/** Returns a cursor that continues after a position. It is signed where it leaves the service. */
export function writeCursor(position: Position): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url');
}

/** Reads a cursor whose signature was checked; without one, the position is empty: the first page. */
export function readCursor(cursor: string | undefined): Position {
  return cursor === undefined ? [] : JSON.parse(Buffer.from(cursor, 'base64url').toString());
}

/**
 * Cuts a page out of rows that were read with one row more than the limit.
 * @param position returns the sort key of an item
 * @param scannedTo the position of the last row that was read, if reading stopped before the end of the list
 */
export function pageOf<Item>(
  rows: readonly Item[],
  limit: number,
  position: (item: Item) => Position,
  scannedTo?: Position,
): { items: Item[]; nextCursor: string | null } {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const end = rows.length > limit && last !== undefined ? position(last) : scannedTo;
  return { items, nextCursor: end ? writeCursor(end) : null };
}
