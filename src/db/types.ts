import pg from 'pg';

const INT8 = 20;
const TIMESTAMPTZ = 1184;

const parseAny = pg.types.getTypeParser(TIMESTAMPTZ, 'text') as (text: string) => Date | number | null;

/**
 * How PostgreSQL writes a time while its time zone is UTC; not a year beyond four digits, one before
 * Christ, or infinity.
 */
const UTC = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00$/;

let last = { text: '', ms: Number.NaN };

/**
 * A time. All rows that a statement booked have the same one, and the driver's parser takes 1.7 µs for
 * each of them.
 */
export function parseTimestamp(text: string): Date | number | null {
  if (text !== last.text) {
    if (!UTC.test(text)) return parseAny(text);
    last = { text, ms: Date.parse(`${text.replace(' ', 'T').slice(0, -3)}Z`) };
  }
  return new Date(last.ms);
}

/** How values that come from the database are read. */
export const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === INT8) return BigInt; // money and serial numbers stay exact
    return oid === TIMESTAMPTZ && format !== 'binary' ? parseTimestamp : pg.types.getTypeParser(oid, format);
  },
};
