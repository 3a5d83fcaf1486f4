import type { Hash } from 'node:crypto';
import type { Service } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { plainArray } from '../db/sql.ts';
import type { KeyRing } from '../keyring/ring.ts';
import { isReference } from '../ledger/claims.ts';
import { type SpanOfDay, spanOfDay } from '../ledger/zone.ts';
import { MINOR_MAX, parseDecimal, toText } from '../money.ts';
import type { Product } from '../products/products.ts';
import { isDay } from '../time.ts';
import { findCodeKeys } from './fill.ts';
import { type ImportField, type ImportFormat, type RawRow, type RowError, readRows } from './import.read.ts';

/** The rules by which the fields of a file become vouchers. */
export type ImportRules = {
  readonly format: ImportFormat;
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

/** The callbacks of a reader. */
type Noted = {
  readonly digest: Hash;
  readonly refuse: (error: RowError) => void;
  /** Called with the code of every row that has one, whatever other faults the row has. */
  readonly onCode?: (code: string, line: number) => void;
};

/** Yields the rows of a file that can become vouchers, a chunk at a time. Calls `refuse` for all others. */
export async function* readChunks(
  file: string,
  rules: ImportRules,
  known: Known,
  noted: Noted,
): AsyncGenerator<ImportRow[]> {
  let chunk: ImportRow[] = [];
  for await (const raw of readRows(file, rules.format, noted.digest, noted.refuse)) {
    const row = await toRow(raw, rules, known, noted);
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
  { refuse, onCode }: Noted,
): Promise<ImportRow | undefined> {
  const wrong: RowError[] = [];
  const note = (field: ImportField) => (message: string) => void wrong.push({ line, field, message });
  const notes = { code: note('code'), pin: note('pin') };
  const card = readCard(fields, rules, notes, (code) => onCode?.(code, line));
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

const PLAIN_DECIMAL = /^\d{1,20}(\.\d{1,20})?$/;

function readBalance(text: string | undefined, { currency, decimals, maxValue }: Product, note: Note) {
  if (text === undefined) return void note('is missing');
  if (text.includes(','))
    return void note(
      'contains a comma: amounts are written with a decimal point and nothing else, such as 1234.50',
    );
  const decimal = PLAIN_DECIMAL.test(text) ? parseDecimal(text) : undefined;
  if (!decimal) return void note('is not an amount in plain digits, such as 1234.50');
  if (decimal.scale > decimals) return void note(`has more decimals than ${currency}, which has ${decimals}`);
  const minor = decimal.digits * 10n ** BigInt(decimals - decimal.scale);
  if (minor === 0n) return void note('is 0: leave out vouchers that are used up');
  if (minor > MINOR_MAX || minor > maxValue)
    return void note(`is above ${toText({ minor: maxValue, decimals })}, the greatest value of its product`);
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

/** Returns the values by which vouchers with these codes could be found, under every key in use. */
function codeKeysOf(keys: KeyRing, rows: readonly ImportRow[]): Map<string, ImportRow> {
  return new Map(
    rows.flatMap((row) =>
      [keys.codeKey(row.code), ...keys.olderCodeKeys(row.code)].map((key) => [key, row] as const),
    ),
  );
}

/** Returns the rows whose codes already belong to vouchers in the database. */
export async function findTaken(
  db: Queries,
  { keys }: Service,
  rows: readonly ImportRow[],
): Promise<ImportRow[]> {
  const byKey = codeKeysOf(keys, rows);
  const taken = await db.query<{ code_key: string }>(findCodeKeys(plainArray([...byKey.keys()])));
  return taken.flatMap(({ code_key }) => byKey.get(code_key.replaceAll('-', '')) ?? []);
}
