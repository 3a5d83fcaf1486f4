import { isUtf8 } from 'node:buffer';
import type { Hash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { BrokenCsv, streamCsv } from '../csv.ts';
import type { Queries } from '../db/pool.ts';
import { DuplicateKey, readJson } from '../json.ts';
import { isReference } from '../ledger/claims.ts';
import { MINOR_MAX, parsePlainDecimal, toText } from '../money.ts';
import type { Product } from '../products/products.ts';
import { isDay } from '../time.ts';
import { type SpanOfDay, spanOfDay } from '../zone.ts';

/**
 * Reads a file of vouchers row by row: CSV (RFC 4180) or NDJSON, in UTF-8. Memory does not grow with the
 * file.
 */

const FIELDS = [
  ...(['code', 'pin', 'balance', 'expiry', 'product', 'reference'] as const),
  ...(['issuedAt', 'lastUsedAt'] as const),
];
type ImportField = (typeof FIELDS)[number];
type Refuse = (error: RowError) => void;

/** A row as it was written, without its empty fields. */
type RawRow = {
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

/** Decodes bytes as text. A file in another encoding is refused at its first line that is not UTF-8. */
async function* decode(bytes: AsyncIterable<Buffer>, digest: Hash | undefined): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let line = 1;
  let isFirst = true;
  for await (const part of bytes) {
    digest?.update(part);
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

/** Returns the number of lines before one that is not text. The first line may begin within a character. */
function linesBefore(part: Buffer): number {
  const isBroken = (line: string, index: number) => index > 0 && !isUtf8(Buffer.from(line, 'latin1'));
  return Math.max(0, linesOf(part).findIndex(isBroken));
}

const BROKEN: Readonly<Partial<Record<BrokenCsv['code'], string>>> = {
  CSV_MAX_RECORD_SIZE: `a row is longer than ${ROW_CHARACTERS_MAX} characters: is a quotation mark not closed?`,
  CSV_QUOTE_NOT_CLOSED: 'the file ends within quotation marks: one is missing before',
  CSV_INVALID_CLOSING_QUOTE: 'after a quotation mark that ends a field, a comma or a new line is missing',
  INVALID_OPENING_QUOTE:
    'a quotation mark stands within a field: write it twice, and the field in quotation marks',
};

async function* readTable(text: AsyncIterable<string>, refuse: Refuse): AsyncGenerator<RawRow> {
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
    throw new UnreadableFile(error.line, BROKEN[error.code] ?? `this is not CSV (${error.code})`);
  }
  if (!columns) throw new UnreadableFile(1, 'the file is empty');
}

function readHeader(record: readonly string[]): ImportField[] {
  const columns = record.map((name, index) => {
    const field = FIELDS.find((each) => each.toLowerCase() === name.trim().toLowerCase());
    if (field) return field;
    const rule = `the first line names the columns, separated by commas, out of ${FIELDS.join(', ')}`;
    throw new UnreadableFile(1, `column ${index + 1} has an unknown name: ${rule}`);
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

async function* readNdjson(text: AsyncIterable<string>, refuse: Refuse): AsyncGenerator<RawRow> {
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

function readObject(text: string, line: number, refuse: Refuse): RawRow | undefined {
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
    const field = FIELDS.find((each) => each === name);
    if (!field) return wrong('row', `a field has an unknown name: the fields are ${FIELDS.join(', ')}`);
    if (value === null || value === '') continue;
    if (typeof value === 'string') fields[field] = value.trim();
    else if (typeof value === 'number' && field === 'balance') fields[field] = String(value);
    // As a number, it would have lost its leading zeros.
    else return wrong(field, `is not a string${field === 'balance' ? ' or a number' : ''}`);
  }
  return { line, fields };
}

/** The rules by which the fields of a file become vouchers. */
export type ImportRules = {
  readonly format: 'csv' | 'ndjson';
  /**
   * `exact`: codes have 12 digits. `split`: 16 digits, the code and then the PIN. `prefix:…`: these digits
   * are added before shorter codes.
   */
  readonly codes: string;
  /** For a voucher without a PIN: `refuse` it, `draw` a random one, or give it these four digits. */
  readonly missingPin: string;
  /** The code of the product for rows without one. */
  readonly product: string;
  /** The expiry of vouchers without one, as in a row; null: each row must have one. */
  readonly expiry: string | null;
};

/** The voucher that a row describes. */
export type ImportRow = {
  readonly line: number;
  readonly code: string;
  /** Null: a PIN is drawn. */
  readonly pin: string | null;
  readonly balanceMinor: bigint;
  readonly expiresAt: Date;
  readonly product: Product;
  readonly reference: string | null;
  /** In the other system; null: not known. */
  readonly issuedAt: Date | null;
  readonly lastUsedAt: Date | null;
};

/** The number of rows in a transaction: commits cost little, and a crash loses little work. */
const CHUNK = 5_000;

/** What rows are checked against. */
export type Known = {
  readonly products: ReadonlyMap<string, Product>;
  /** The time of the import. */
  readonly now: Date;
  /** Returns the first and the last moment of a day in the zone of the books. */
  readonly spanOf: (day: string) => Promise<SpanOfDay>;
};

/** Returns a function that asks the database only once for each day: most rows name the same few. */
export function spansOf(db: Queries): Known['spanOf'] {
  const spans = new Map<string, Promise<SpanOfDay>>();
  return (day) => {
    const span = spans.get(day) ?? spanOfDay(db, day);
    spans.set(day, span);
    return span;
  };
}

/** What a reader notes; nothing where the file was checked before. */
type Noted = {
  /** Receives the bytes of the file as they are read. */
  readonly digest?: Hash;
  /** Called with each fault of a row. */
  readonly refuse?: Refuse;
  /** Called with the code of every row that has one, even if the row has other faults. */
  readonly onCode?: (code: string, line: number) => void;
};

/**
 * Yields the rows of a file that can become vouchers, in order, a chunk at a time. All others are refused.
 * @throws UnreadableFile for another encoding, a wrong header, or broken CSV
 */
export async function* readChunks(
  file: string,
  rules: ImportRules,
  known: Known,
  { digest, refuse = () => {}, onCode = () => {} }: Noted = {},
): AsyncGenerator<ImportRow[]> {
  const text = decode(createReadStream(file), digest);
  let chunk: ImportRow[] = [];
  for await (const raw of rules.format === 'csv' ? readTable(text, refuse) : readNdjson(text, refuse)) {
    const row = await toRow(raw, rules, known, refuse, onCode);
    if (row) chunk.push(row);
    if (chunk.length < CHUNK) continue;
    yield chunk;
    chunk = [];
  }
  if (chunk.length > 0) yield chunk;
}

async function toRow(
  { line, fields }: RawRow,
  rules: ImportRules,
  known: Known,
  refuse: Refuse,
  onCode: (code: string, line: number) => void,
): Promise<ImportRow | undefined> {
  const wrong: RowError[] = [];
  const note = (field: ImportField) => (message: string) => void wrong.push({ line, field, message });
  const notes = { code: note('code'), pin: note('pin') };
  const card = readCard(fields, rules, notes, (code) => onCode(code, line));
  const product = known.products.get(fields.product ?? rules.product);
  if (!product)
    note('product')(
      `there is no such product${fields.product ? '' : ': name one by the product column or --product'}`,
    );
  const balanceMinor = product && readBalance(fields.balance, product, note('balance'));
  const expiresAt = await readExpiry(fields, rules, known, note('expiry'));
  const issuedAt = await readPast(fields.issuedAt, known, note('issuedAt'));
  const lastUsedAt = await readPast(fields.lastUsedAt, known, note('lastUsedAt'));
  if (fields.lastUsedAt !== undefined && fields.issuedAt === undefined) note('lastUsedAt')('needs issuedAt');
  if (issuedAt && lastUsedAt && lastUsedAt < issuedAt) note('lastUsedAt')('is before issuedAt');
  const reference = fields.reference ?? null;
  if (reference !== null && !isReference(reference))
    note('reference')('takes up to 100 characters, none of them a control character');
  for (const error of wrong) refuse(error);
  if (wrong.length > 0 || !card || !product || balanceMinor === undefined || !expiresAt) return undefined;
  return { line, ...card, balanceMinor, expiresAt, product, reference, issuedAt, lastUsedAt };
}

type Note = (message: string) => void;

/** Reads code and PIN according to the rules. */
function readCard(
  { code: given, pin: givenPin }: RawRow['fields'],
  { codes, missingPin }: ImportRules,
  note: { readonly code: Note; readonly pin: Note },
  onCode: (code: string) => void,
): { code: string; pin: string | null } | undefined {
  const split = codes === 'split' ? /^(\d{12})(\d{4})$/.exec(given ?? '') : undefined;
  if (split === null) return void note.code('does not have 16 digits, the code and then the PIN');
  if (split && givenPin !== undefined) return void note.pin('the code contains the PIN already');
  const prefix = codes.startsWith('prefix:') ? codes.slice('prefix:'.length) : '';
  const code = split ? split[1] : prefix && given?.length !== 12 ? `${prefix}${given ?? ''}` : given;
  if (!code) return void note.code('is missing');
  if (!/^\d{12}$/.test(code))
    return void note.code(
      `does not have 12 digits${prefix ? ' with its prefix' : ''}${/\D/.test(code) ? ', or contains something else' : ''}`,
    );
  if (code.startsWith('0')) return void note.code('begins with 0');
  onCode(code);
  const pin = split ? split[2] : givenPin;
  if (pin !== undefined && !/^\d{4}$/.test(pin)) return void note.pin('does not have 4 digits');
  if (pin === undefined && missingPin === 'refuse')
    return void note.pin('is missing: --missing-pin says what such vouchers get');
  return { code, pin: pin ?? (missingPin === 'draw' ? null : missingPin) };
}

function readBalance(text: string | undefined, { currency, decimals, maxValue }: Product, note: Note) {
  if (text === undefined) return void note('is missing');
  if (text.includes(','))
    return void note(
      'contains a comma: amounts are written with a decimal point and nothing else, such as 1234.50',
    );
  const decimal = parsePlainDecimal(text);
  if (!decimal) return void note('is not an amount in plain digits, such as 1234.50');
  if (decimal.scale > decimals) return void note(`has more decimals than ${currency}, which has ${decimals}`);
  const minor = decimal.digits * 10n ** BigInt(decimals - decimal.scale);
  if (minor === 0n) return void note('is 0: leave out vouchers that are used up');
  if (minor > MINOR_MAX || minor > maxValue)
    return void note(`is above ${toText({ minor: maxValue, decimals })}, the maximum value of its product`);
  return minor;
}

/** Reads an expiry. Money of a voucher that expired before the import may be unclaimed, and is taken over. */
async function readExpiry(
  { expiry, issuedAt, product }: RawRow['fields'],
  rules: ImportRules,
  known: Known,
  note: Note,
): Promise<Date | undefined> {
  const text = expiry ?? rules.expiry;
  if (text === null) return void note('is missing, and --expiry is not given');
  const expiresAt = await readTime(text, 'endsAt', known);
  if (!expiresAt) return void note('is not a day such as 2030-01-31, or a time such as 2030-01-31T12:00:00Z');
  if (expiresAt > known.now) return expiresAt;
  if (known.products.get(product ?? rules.product)?.expiryPolicy !== 'unclaimed')
    return void note('has passed: leave out vouchers that have expired, unless their money is unclaimed');
  if (issuedAt === undefined) return void note('has passed: unclaimed money needs issuedAt');
  return expiresAt;
}

/** Ids of movements begin with their time, and the first of these is in 1970. */
const FIRST_ISSUE = new Date('1990-01-01T00:00:00Z');

async function readPast(text: string | undefined, known: Known, note: Note): Promise<Date | null> {
  if (text === undefined) return null;
  const at = await readTime(text, 'startsAt', known);
  if (!at) note('is not a day such as 2020-01-31, or a time such as 2020-01-31T12:00:00Z');
  else if (at > known.now) note('is in the future');
  else if (at < FIRST_ISSUE) note('is before 1990');
  else return at;
  return null;
}

const TIME = /^T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/;

/** Reads a day, which means its first or last moment in the zone of the books, or a time with its offset. */
async function readTime(text: string, side: keyof SpanOfDay, { spanOf }: Known): Promise<Date | undefined> {
  const day = text.slice(0, 10);
  if (!isDay(day)) return undefined;
  if (text === day) return (await spanOf(day))[side];
  const time = TIME.test(text.slice(day.length)) ? new Date(text) : undefined;
  return time && !Number.isNaN(time.getTime()) ? time : undefined;
}
