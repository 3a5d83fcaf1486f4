import { PassThrough } from 'node:stream';
import Type from 'typebox';
import type { Service } from '../context.ts';
import { type Cell, CSV_TYPE, type CsvStyle, csvText } from '../csv.ts';
import type { Database } from '../db/pool.ts';
import { reading } from '../operation.ts';
import { EXPORT } from '../principal.ts';
import { invalid, Problem } from '../problem.ts';
import { Day, FileSchema, MerchantId, Word } from '../schema.ts';
import { addDays } from '../time.ts';
import { checkInterval } from './days.ts';
import {
  type Account,
  amountText,
  balancesAt,
  type ClosedDay,
  closedDays,
  DayNotClosed,
  type Movement,
  rowsOf,
  sealsOf,
  sumsOf,
} from './export.rows.ts';
import { beginCamt, beginStatement, endCamt, endStatement, entry } from './formats.ts';
import { checkMapped, GlDay, type GlLine, readGlMapping, Unmapped } from './gl.ts';
import { PlainText, type PlainTextFormat } from './plain-text.ts';
import { type Names, readNames } from './reports/report.ts';
import { European, merchantIdOf } from './reports/reports.ts';
import { type ClosingRow, listClosings, textOfClosing } from './seal.ts';

export const EXPORT_FORMATS = ['beancount', 'hledger', 'camt053', 'gl', 'csv', 'ndjson', 'sealed'] as const;
type Format = (typeof EXPORT_FORMATS)[number];

/** The formats that only some options concern: those of CSV, of one merchant, and of sums or rows. */
const FORMATS_WITH = {
  european: ['gl', 'csv'],
  merchantId: ['camt053'],
  rows: ['beancount', 'hledger', 'gl'],
} as const satisfies Record<string, readonly Format[]>;

export type ExportWanted = {
  readonly format: Format;
  /** The first day, and the day after the last one, such as `2026-01-31`. */
  readonly from: string;
  readonly to: string;
  /** Only the accounts of this merchant. */
  readonly merchantId?: number | undefined;
  /** Every row separately instead of the sums of each day. */
  readonly rowByRow?: boolean;
  readonly style?: CsvStyle;
};

/** The number of characters after which a piece is written. */
const PIECE = 65_536;

/**
 * Exports closed days. The same days give the same bytes.
 * @param write receives the text piece by piece; the next piece is made after its promise is fulfilled
 * @throws DayNotClosed; Unmapped for `gl`. Nothing has been written then.
 */
export async function exportBooks(
  { readDb }: Service,
  wanted: ExportWanted,
  write: (piece: string) => Promise<void>,
): Promise<void> {
  const days = await closedDays(readDb, wanted.from, wanted.to);
  let held = '';
  for await (const piece of piecesOf(readDb, wanted, days)) {
    held += piece;
    if (held.length < PIECE) continue;
    await write(held);
    held = '';
  }
  if (held !== '') await write(held);
}

function piecesOf(db: Database, wanted: ExportWanted, days: readonly ClosedDay[]): AsyncGenerator<string> {
  const { format, rowByRow = false, style = 'standard' } = wanted;
  if (format === 'camt053') return writeCamt(db, days, wanted.merchantId);
  if (format === 'gl') return writeGl(db, days, rowByRow, style);
  if (format === 'csv') return writeCsv(db, days, style);
  if (format === 'ndjson') return writeNdjson(db, days);
  if (format === 'sealed') return writeSealed(db, days);
  return writePlainText(db, days, format, rowByRow);
}

const movementsOf = (db: Database, day: ClosedDay, rowByRow: boolean) =>
  rowByRow ? rowsOf(db, day) : sumsOf(db, day);

async function* writePlainText(
  db: Database,
  days: readonly ClosedDay[],
  format: PlainTextFormat,
  rowByRow: boolean,
): AsyncGenerator<string> {
  const journal = new PlainText(format, await namesAt(db, days));
  yield journal.begin(days, await balancesAt(db, addDays(days[0]?.day ?? '', -1)));
  for (const day of days) {
    for await (const movement of await movementsOf(db, day, rowByRow))
      yield journal.movement(day.day, movement);
    yield journal.end(day.day, await balancesAt(db, day.day), day === days.at(-1));
  }
}

/** Returns the names as they were at the end of the last day. */
const namesAt = (db: Database, days: readonly ClosedDay[]) =>
  readNames(db, days.at(-1)?.endsAt ?? new Date(0));

const GL_HEADER = [
  'date',
  'voucherNumber',
  'account',
  'counterAccount',
  'debit',
  'credit',
  'currency',
  'taxCode',
  'text',
  'kind',
  'closingHash',
] as const;

/** Writes the general ledger. @throws Unmapped before anything is written */
async function* writeGl(
  db: Database,
  days: readonly ClosedDay[],
  rowByRow: boolean,
  style: CsvStyle,
): AsyncGenerator<string> {
  const mapping = await readGlMapping(db);
  for (const day of days) checkMapped(mapping, await sumsOf(db, day));
  yield csvText([GL_HEADER], style);
  for (const day of days) {
    const lines = new GlDay(mapping, day);
    if (!rowByRow) yield csvText(lines.sums(await sumsOf(db, day)).map(glCells), style);
    else
      for await (const movement of rowsOf(db, day)) {
        const text = [movement.kind, movement.id, movement.reference].filter(Boolean).join(' ');
        yield csvText(lines.lines(movement, text).map(glCells), style);
      }
  }
}

const glCells = (line: GlLine): Cell[] =>
  GL_HEADER.map((name) => {
    const cell = line[name];
    return typeof cell === 'bigint' ? { amount: amountText(cell, line.currency) } : cell;
  });

const CSV_HEADER = [
  'day',
  'transactionId',
  'occurredAt',
  'kind',
  'debit',
  'debitMerchantId',
  'credit',
  'creditMerchantId',
  'productCode',
  'amount',
  'currency',
  'serialNumber',
  'reference',
  'originalId',
];

/** Writes every row of the journal as CSV. The journal holds neither codes nor PINs. */
async function* writeCsv(db: Database, days: readonly ClosedDay[], style: CsvStyle): AsyncGenerator<string> {
  const names = await namesAt(db, days);
  yield csvText([CSV_HEADER], style);
  for (const day of days)
    for await (const movement of rowsOf(db, day)) yield csvText([csvCells(day.day, movement, names)], style);
}

/** Writes every row of the journal as one JSON object per line. */
async function* writeNdjson(db: Database, days: readonly ClosedDay[]): AsyncGenerator<string> {
  const names = await namesAt(db, days);
  const plain = (cell: Cell) => (cell !== null && typeof cell === 'object' ? cell.amount : cell);
  for (const day of days)
    for await (const movement of rowsOf(db, day)) {
      const cells = csvCells(day.day, movement, names);
      const fields = CSV_HEADER.map((name, at) => [name, plain(cells[at] ?? null)]);
      yield `${JSON.stringify(Object.fromEntries(fields))}\n`;
    }
}

/** Writes what closings are computed from (docs/reference/seals.md), as one JSON object per line. */
async function* writeSealed(db: Database, days: readonly ClosedDay[]): AsyncGenerator<string> {
  const line = (object: object) => `${JSON.stringify(object)}\n`;
  for (const day of days) {
    for await (const each of sealsOf(db, day))
      if (Array.isArray(each)) for (const row of each) yield line({ row });
      else yield line({ slice: each.starts_at, rows: Number(each.rows), hash: each.hash.toString('hex') });
    const [closing] = await db.query<ClosingRow & { hash: Buffer }>(
      listClosings(day.day, addDays(day.day, 1)),
    );
    if (!closing) throw new DayNotClosed(day.day);
    const [previousHash, hash] = [closing.previousHash, closing.hash].map((each) => each.toString('hex'));
    yield line({ closing: textOfClosing(closing), previousHash, hash });
  }
}

function csvCells(day: string, movement: Movement, { products }: Names): Cell[] {
  const { id, occurredAt, kind, debit, credit, amountMinor, currency, serialNumber, reference, originalId } =
    movement;
  const owner = ({ merchantId }: Account) => (merchantId > 0 ? String(merchantId) : null);
  const product = products.get(debit.productId || credit.productId)?.code ?? null;
  const at = occurredAt?.toISOString() ?? null;
  const sides = [debit.kind, owner(debit), credit.kind, owner(credit)];
  const serial = serialNumber === null ? null : String(serialNumber);
  const amount = { amount: amountText(amountMinor, currency) };
  return [day, id, at, kind, ...sides, product, amount, currency, serial, reference, originalId];
}

const STATED = new Set(['FLOAT', 'SETTLEMENT']);
const keyOf = ({ kind, merchantId, currency }: Account) =>
  `${currency} ${String(merchantId).padStart(10, '0')} ${kind}`;

async function* writeCamt(
  db: Database,
  days: readonly ClosedDay[],
  merchantId: number | undefined,
): AsyncGenerator<string> {
  const names = await namesAt(db, days);
  const isStated = (account: Account) =>
    STATED.has(account.kind) && (merchantId === undefined || account.merchantId === merchantId);
  const statedAt = async (day: string) =>
    new Map(
      (await balancesAt(db, day))
        .filter(({ account }) => isStated(account))
        .map((each) => [keyOf(each.account), each]),
    );
  yield beginCamt([days[0] as ClosedDay, days.at(-1) as ClosedDay]);
  let before = await statedAt(addDays(days[0]?.day ?? '', -1));
  for (const day of days) {
    const after = await statedAt(day.day);
    const accounts = new Map([...before, ...after].map(([key, { account }]) => [key, account]));
    for (const { debit, credit } of await sumsOf(db, day))
      for (const account of [debit, credit]) if (isStated(account)) accounts.set(keyOf(account), account);
    const due = [...accounts].sort(([one], [other]) => (one < other ? -1 : 1));
    const rows = rowsOf(db, day, { merchantId, byAccount: true });
    let next = await rows.next();
    for (const [key, account] of due) {
      const openingMinor = before.get(key)?.balanceMinor ?? 0n;
      const closingMinor = after.get(key)?.balanceMinor ?? 0n;
      yield beginStatement(day, account, { openingMinor, closingMinor }, names);
      for (; !next.done && keyOf(statedSide(next.value)) === key; next = await rows.next())
        yield entry(day.day, account, next.value);
      yield endStatement;
    }
    if (!next.done) throw new Error(`a row of ${day.day} belongs to no statement`);
    before = after;
  }
  yield endCamt;
}

/** Returns the side of a movement that has a statement. No movement goes between two such accounts. */
function statedSide({ debit, credit }: Movement): Account {
  return STATED.has(debit.kind) ? debit : credit;
}

const TYPES: Readonly<Record<ExportWanted['format'], readonly [extension: string, mediaType: string]>> = {
  beancount: ['beancount', 'text/plain; charset=utf-8'],
  hledger: ['journal', 'text/plain; charset=utf-8'],
  camt053: ['xml', 'application/xml'],
  gl: ['csv', CSV_TYPE],
  csv: ['csv', CSV_TYPE],
  ndjson: ['ndjson', 'application/x-ndjson'],
  sealed: ['ndjson', 'application/x-ndjson'],
};

export const exportDays = reading({
  name: 'books.export',
  summary: 'Export closed days for an accounting system',
  path: '/books/export',
  input: {
    format: Word(EXPORT_FORMATS, { examples: ['csv'] }),
    from: Day,
    to: Day,
    merchantId: Type.Optional(MerchantId),
    rows: Type.Optional(
      Type.Boolean({
        description: 'beancount, hledger, gl: each row separately; left out: the sums of each day.',
      }),
    ),
    european: European,
  },
  output: FileSchema,
  files: ['text/plain', 'application/xml', 'text/csv', 'application/x-ndjson'],
  roles: EXPORT,
  async run(caller, { format, from, to, ...given }) {
    checkInterval({ from, to });
    for (const [option, formats] of Object.entries(FORMATS_WITH))
      if (given[option as keyof typeof FORMATS_WITH] && !formats.some((each) => each === format))
        throw invalid(option, 'dependent', `belongs to ${formats.join(' and ')}`);
    const { merchantId, rows = false, european } = given;
    const [extension, mediaType] = TYPES[format];
    const wanted: ExportWanted = {
      format,
      from,
      to,
      merchantId: await merchantIdOf(caller, merchantId),
      style: european ? 'european' : 'standard',
      rowByRow: rows,
    };
    const content = exported(caller.service, wanted);
    return { name: `books-${from}-${to}.${extension}`, mediaType, content };
  },
});

/** Returns an export in pieces, as fast as its reader takes them. @throws Problem `conflict` */
async function* exported(service: Service, wanted: ExportWanted): AsyncGenerator<string> {
  const out = new PassThrough({ encoding: 'utf8' });
  const write = (piece: string) =>
    new Promise<void>((resolve, reject) => {
      if (out.destroyed) reject(new Error('the output was closed'));
      else out.write(piece, (error) => (error ? reject(error) : resolve()));
    });
  exportBooks(service, wanted, write).then(
    () => out.end(),
    (error: Error) => out.destroy(error),
  );
  try {
    yield* out as AsyncIterable<string>;
  } catch (error) {
    if (error instanceof DayNotClosed || error instanceof Unmapped)
      throw new Problem('conflict', error.message);
    throw error;
  }
}
