import { isUtf8 } from 'node:buffer';
import { createHash, type Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { BrokenCsv, streamCsv } from '../csv.ts';
import { DuplicateKey, readJson } from '../json.ts';

/**
 * Reads a file of vouchers row by row: CSV (RFC 4180) or NDJSON, in UTF-8. Memory does not grow with the
 * file.
 */

const IMPORT_FIELDS = [
  'code',
  'pin',
  'balance',
  'expiry',
  'product',
  'reference',
  'issuedAt',
  'lastUsedAt',
] as const;
export type ImportField = (typeof IMPORT_FIELDS)[number];
export type ImportFormat = 'csv' | 'ndjson';

/** A row as it was written, without its empty fields. */
export type RawRow = {
  /** The line of the row; for a CSV row of several lines, the last one. */
  readonly line: number;
  readonly fields: Readonly<Partial<Record<ImportField, string>>>;
};

/** The fault of one field of a row. It never repeats the value, which may be a code. */
export type RowError = { readonly line: number; readonly field: string; readonly message: string };

/** The file cannot be read any further. */
export class UnreadableFile extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(`line ${line}: ${message}`);
    this.line = line;
  }
}

const REQUIRED: readonly ImportField[] = ['code', 'balance'];
/** The longest row: no row of eight short fields is longer. */
const ROW_CHARACTERS_MAX = 10_000;

/**
 * Yields the rows of a file, in order.
 * @param digest receives the bytes of the file as they are read
 * @param refuse is called with the fault of a row that cannot be parsed; the row is then skipped
 * @throws UnreadableFile for another encoding, a wrong header, or broken CSV
 */
export function readRows(
  file: string,
  format: ImportFormat,
  digest: Hash,
  refuse: (error: RowError) => void,
): AsyncGenerator<RawRow> {
  const text = decode(createReadStream(file), digest);
  return format === 'csv' ? readTable(text, refuse) : readNdjson(text, refuse);
}

/** Decodes bytes as text. A file in another encoding is refused at its first line that is not UTF-8. */
async function* decode(bytes: AsyncIterable<Buffer>, digest: Hash): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let line = 1;
  let isFirst = true;
  for await (const part of bytes) {
    digest.update(part);
    if (isFirst && /^(\xff\xfe|\xfe\xff)/.test(part.toString('latin1', 0, 2)))
      throw new UnreadableFile(1, 'the file is in UTF-16: save it as UTF-8');
    isFirst = false;
    try {
      yield decoder.decode(part, { stream: true });
    } catch {
      throw new UnreadableFile(line + linesBefore(part), 'the file is not in UTF-8: save it as UTF-8');
    }
    line += linesOf(part).length - 1;
  }
  try {
    decoder.decode();
  } catch {
    throw new UnreadableFile(line, 'the file ends within a character: it was cut off, or is not in UTF-8');
  }
}

const linesOf = (part: Buffer) => part.toString('latin1').split('\n');

/** Returns the number of lines before the first one that is not text. The first may begin within a character. */
function linesBefore(part: Buffer): number {
  const isBroken = (line: string, index: number) => index > 0 && !isUtf8(Buffer.from(line, 'latin1'));
  return Math.max(0, linesOf(part).findIndex(isBroken));
}

async function* readTable(
  text: AsyncIterable<string>,
  refuse: (error: RowError) => void,
): AsyncGenerator<RawRow> {
  let columns: readonly ImportField[] | undefined;
  try {
    for await (const { record, info } of streamCsv(text, ROW_CHARACTERS_MAX)) {
      const { lines: line } = info;
      if (!columns) columns = readHeader(record);
      else if (record.length === columns.length) yield { line, fields: fieldsOf(columns, record) };
      else {
        // A decimal comma outside quotation marks splits an amount in two.
        const message = `has ${record.length} fields, and the header has ${columns.length}`;
        refuse({ line, field: 'row', message });
      }
    }
  } catch (error) {
    if (!(error instanceof BrokenCsv)) throw error;
    throw new UnreadableFile(error.line, `this is not CSV as RFC 4180 describes it (${error.code})`);
  }
  if (!columns) throw new UnreadableFile(1, 'the file is empty');
}

function readHeader(record: readonly string[]): ImportField[] {
  const columns = record.map((name, index) => {
    const field = IMPORT_FIELDS.find((each) => each.toLowerCase() === name.trim().toLowerCase());
    if (field) return field;
    throw new UnreadableFile(
      1,
      `column ${index + 1} has an unknown name: the first line names the columns, separated by commas, out of ${IMPORT_FIELDS.join(', ')}`,
    );
  });
  const twice = columns.find((field, index) => columns.indexOf(field) < index);
  if (twice) throw new UnreadableFile(1, `the column ${twice} appears twice`);
  const missing = REQUIRED.find((field) => !columns.includes(field));
  if (missing) throw new UnreadableFile(1, `the column ${missing} is missing`);
  return columns;
}

function fieldsOf(columns: readonly ImportField[], record: readonly string[]): RawRow['fields'] {
  const entries = columns.map((field, index) => [field, (record[index] ?? '').trim()] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== ''));
}

async function* readNdjson(
  text: AsyncIterable<string>,
  refuse: (error: RowError) => void,
): AsyncGenerator<RawRow> {
  let number = 0;
  for await (const line of splitLines(text)) {
    number++;
    if (line.trim() === '') continue;
    const row = readObject(line, number, refuse);
    if (row) yield row;
  }
  if (number === 0) throw new UnreadableFile(1, 'the file is empty');
}

async function* splitLines(text: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  let number = 1;
  for await (const part of text) {
    const lines = (rest + part).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > ROW_CHARACTERS_MAX)
      throw new UnreadableFile(
        number + lines.length,
        `the line is longer than ${ROW_CHARACTERS_MAX} characters`,
      );
    number += lines.length;
    yield* lines;
  }
  if (rest !== '') yield rest;
}

function readObject(text: string, line: number, refuse: (error: RowError) => void): RawRow | undefined {
  const wrong = (field: string, message: string) => {
    refuse({ line, field, message });
    return undefined;
  };
  let parsed: unknown;
  try {
    parsed = readJson(text.replace(/^\ufeff/, ''));
  } catch (error) {
    return wrong(
      'row',
      error instanceof DuplicateKey ? 'contains a key twice' : 'the line is not a JSON object',
    );
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    return wrong('row', 'the line is not a JSON object');
  const fields: Partial<Record<ImportField, string>> = {};
  for (const [name, value] of Object.entries(parsed)) {
    const field = IMPORT_FIELDS.find((each) => each === name);
    if (!field)
      return wrong('row', `a field has an unknown name: the fields are ${IMPORT_FIELDS.join(', ')}`);
    if (value === null || value === '') continue;
    if (typeof value === 'string') fields[field] = value.trim();
    else if (typeof value === 'number' && field === 'balance') fields[field] = String(value);
    // As a number, it would have lost its leading zeros.
    else return wrong(field, `is not a string${field === 'balance' ? ' or a number' : ''}`);
  }
  return { line, fields };
}

/**
 * Returns a digest that begins with the rules for reading the file: with other rules it is another import.
 */
export function newDigest(rules: object): Hash {
  return createHash('sha256').update(`${JSON.stringify(rules)}\n`);
}
