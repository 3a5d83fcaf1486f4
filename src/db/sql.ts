import pg from 'pg';

/** A statement and its parameters. */
export type Sql = { readonly text: string; readonly values: readonly unknown[] };

/** What `sql` returns, so that no other object is taken for a part of a statement. */
const STATEMENTS = new WeakSet<object>();

/**
 * Builds a statement from a template. Interpolated values become parameters, never text; an interpolated
 * statement becomes a part of this one, with its own parameters.
 */
export function sql(strings: TemplateStringsArray, ...inserts: readonly unknown[]): Sql {
  let text = strings[0] ?? '';
  const values: unknown[] = [];
  for (const [index, insert] of inserts.entries()) {
    if (typeof insert === 'object' && insert !== null && STATEMENTS.has(insert)) {
      const part = insert as Sql;
      const before = values.length;
      text += part.text.replace(/\$(\d+)/g, (_, number: string) => `$${Number(number) + before}`);
      values.push(...part.values);
    } else text += `$${values.push(insert)}`;
    text += strings[index + 1] ?? '';
  }
  const statement = { text, values };
  STATEMENTS.add(statement);
  return statement;
}

/** Makes a statement, or a part of one, of text that the program puts together itself. Never pass input. */
export function raw(text: string): Sql {
  const statement = { text, values: [] };
  STATEMENTS.add(statement);
  return statement;
}

/** Returns a list of expressions for `select`, each under its name. */
export function named(expressions: Readonly<Record<string, Sql>>): Sql {
  const parts = Object.entries(expressions).map(([name, of]) => sql`${of} as ${raw(`"${name}"`)}`);
  return listOf(parts);
}

const listOf = (parts: readonly Sql[]) => parts.reduce((list, part) => sql`${list}, ${part}`);

/** Returns the beginning of an insert of one row. @param row the values by the names of their columns */
export function insertInto(table: string, row: Readonly<Record<string, unknown>>): Sql {
  const values = listOf(Object.values(row).map((value) => sql`${value}`));
  return sql`insert into ${raw(`${table} (${Object.keys(row).join(', ')})`)} values (${values})`;
}

/** Returns what `update … set` takes. @param row the values by the names of their columns */
export function assign(row: Readonly<Record<string, unknown>>): Sql {
  return listOf(Object.entries(row).map(([column, value]) => sql`${raw(column)} = ${value}`));
}

/**
 * A statement of the hot path: prepared once for each connection, with arrays as parameters. `background`: no
 * till waits for it. Background work waits for tills, but not for other background work. `isSlow`: it waits
 * for other servers, or for a row that many use, so it has connections of its own.
 */
export type HotStatement = {
  readonly name: string;
  readonly text: string;
  readonly background?: true;
  readonly isSlow?: true;
};

/**
 * Returns an array parameter of numbers, bigints or uuids. They need no quoting, which makes the driver's own
 * writer slow.
 */
export function plainArray(values: readonly (string | number | bigint | null)[]): string {
  let text = '{';
  for (let index = 0; index < values.length; index++) {
    if (index > 0) text += ',';
    text += values[index] ?? 'NULL';
  }
  return `${text}}`;
}

/** Returns an array parameter of texts, quoted. */
export function textArray(values: readonly (string | null)[]): string {
  let text = '{';
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (index > 0) text += ',';
    text += value === null || value === undefined ? 'NULL' : `"${value.replace(/["\\]/g, '\\$&')}"`;
  }
  return `${text}}`;
}

/** Returns an array parameter of byte strings. */
export function bytesArray(values: readonly Buffer[]): string {
  return `{${values.map((value) => `"\\\\x${value.toString('hex')}"`).join(',')}}`;
}

const INT8 = 20;
const TIMESTAMPTZ = 1184;

const parseAny = pg.types.getTypeParser(TIMESTAMPTZ, 'text') as (text: string) => Date | number | null;

/**
 * Matches a time in UTC as PostgreSQL writes it, except years with more than four digits, years before
 * Christ, and infinity.
 */
const UTC = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d+)?\+00$/;

let last = { text: '', ms: Number.NaN };

/** Reads a time. All rows of a booking have the same one, and the driver's parser takes 1.7 µs for each. */
export function parseTimestamp(text: string): Date | number | null {
  if (text !== last.text) {
    if (!UTC.test(text)) return parseAny(text);
    last = { text, ms: Date.parse(`${text.replace(' ', 'T').slice(0, -3)}Z`) };
  }
  return new Date(last.ms);
}

/** The parsers of values from the database. */
export const types = {
  getTypeParser(oid: number, format?: 'text' | 'binary') {
    if (oid === INT8) return BigInt; // money and serial numbers stay exact
    return oid === TIMESTAMPTZ && format !== 'binary' ? parseTimestamp : pg.types.getTypeParser(oid, format);
  },
};

/**
 * Matches text that may contain a semicolon without ending a statement: a comment, a quoted text or name, a
 * body between dollar signs.
 */
const WHOLE = /--[^\n]*|'(?:[^']|'')*'|"[^"]*"|(\$\w*\$)[\s\S]*?\1|;|[^;'"$-]+|./g;

/** Splits an SQL file into its statements, without empty ones. */
export function splitStatements(text: string): string[] {
  const statements: string[] = [];
  let current = '';
  for (const [part] of text.matchAll(WHOLE)) {
    if (part !== ';') {
      if (!part.startsWith('--')) current += part;
      continue;
    }
    statements.push(current.trim());
    current = '';
  }
  return [...statements, current.trim()].filter((statement) => statement !== '');
}
