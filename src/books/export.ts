import Type from 'typebox';
import type { Service } from '../context.ts';
import { type Cell, CSV_TYPE, type CsvStyle, csvText, valueText } from '../csv.ts';
import type { Database } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { textIn } from '../money.ts';
import { reading, tableOf } from '../operation.ts';
import { EXPORT } from '../principal.ts';
import { invalid, Problem } from '../problem.ts';
import { FileSchema, MerchantId, TransactionId, Word } from '../schema.ts';
import { addDays } from '../time.ts';
import { bookedBetween, checkInterval, INTERVAL } from './days.ts';
import {
  type Account,
  balancesAt,
  type ClosedDay,
  closedDays,
  type Movement,
  rowsOf,
  sumsOf,
} from './export.rows.ts';
import { beginCamt, beginStatement, endCamt, endStatement, entry } from './formats.ts';
import { findUnmapped, type GlLine, glLines, glSums, readGlMapping } from './gl.ts';
import { PlainText, type PlainTextFormat } from './plain-text.ts';
import { writeProof } from './proof.ts';
import { readNames } from './reports/report.ts';
import { European, merchantIdOf } from './reports/reports.ts';

export const EXPORT_FORMATS = ['beancount', 'hledger', 'camt053', 'gl', 'csv', 'ndjson', 'proof'] as const;
type Format = (typeof EXPORT_FORMATS)[number];

/** The formats that some options belong to: those of CSV, of some rows, and of sums or rows. */
const FORMATS_WITH = {
  european: ['gl', 'csv'],
  merchantId: ['camt053', 'proof'],
  transactionId: ['proof'],
  rows: ['beancount', 'hledger', 'gl'],
} as const satisfies Record<string, readonly Format[]>;

export type ExportWanted = {
  readonly format: Format;
  /** The first day, and the day after the last one, such as `2026-01-31`. */
  readonly from: string;
  readonly to: string;
  /** Only the accounts of this merchant. */
  readonly merchantId?: number | undefined;
  /** Only this row. */
  readonly transactionId?: string | undefined;
  /** Every row separately instead of the sums of each day. */
  readonly rowByRow?: boolean;
  readonly style?: CsvStyle;
};

/** The number of characters after which a piece is written. */
const PIECE = 65_536;

/**
 * Exports closed days, piece by piece. The same days give the same bytes.
 * @throws Problem `conflict`, before the first piece, for a day that is not closed, or an account without a
 *   number in `gl`; `not-found` for a transaction that is not of these days
 */
export async function* exportBooks({ readDb }: Service, wanted: ExportWanted): AsyncGenerator<string> {
  const days = await closedDays(readDb, wanted.from, wanted.to);
  await requireTransaction(readDb, days, wanted);
  let held = '';
  for await (const piece of piecesOf(readDb, wanted, days)) {
    held += piece;
    if (held.length < PIECE) continue;
    yield held;
    held = '';
  }
  if (held !== '') yield held;
}

/** A proof that shows no row would seem to prove one. */
async function requireTransaction(
  db: Database,
  days: readonly ClosedDay[],
  { transactionId, from, to }: ExportWanted,
): Promise<void> {
  const [first, last] = [days[0], days.at(-1)];
  if (transactionId === undefined || !first || !last) return;
  const rows = await db.query(
    sql`
select from book_rows where id = ${transactionId}::uuid and ${bookedBetween(first.startsAt, last.endsAt)}`,
  );
  if (rows.length === 0)
    throw new Problem('not-found', `transaction ${transactionId} is not of the days from ${from} to ${to}`);
}

function piecesOf(db: Database, wanted: ExportWanted, days: readonly ClosedDay[]): AsyncGenerator<string> {
  const { format, rowByRow = false, style = 'standard' } = wanted;
  if (format === 'camt053') return writeCamt(db, days, wanted.merchantId);
  if (format === 'gl') return writeGl(db, days, rowByRow, style);
  if (format === 'csv') return writeCsv(db, days, style);
  if (format === 'ndjson') return writeNdjson(db, days);
  if (format === 'proof') return writeProof(db, days, wanted);
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

async function* writeGl(
  db: Database,
  days: readonly ClosedDay[],
  rowByRow: boolean,
  style: CsvStyle,
): AsyncGenerator<string> {
  const mapping = await readGlMapping(db);
  for (const day of days) {
    const unmapped = findUnmapped(mapping, await sumsOf(db, day));
    if (unmapped) throw new Problem('conflict', unmapped.message);
  }
  const textOf = (lines: readonly GlLine[]) => csvText(lines.map(glCells), style);
  yield csvText([GL_HEADER], style);
  for (const day of days) {
    let ordinal = 0;
    if (!rowByRow) yield textOf(glSums(mapping, day, await sumsOf(db, day)));
    else
      for await (const movement of rowsOf(db, day)) {
        const text = [movement.kind, movement.id, movement.reference].filter(Boolean).join(' ');
        yield textOf(glLines(mapping, day, movement, ++ordinal, text));
      }
  }
}

const glCells = (line: GlLine): Cell[] =>
  GL_HEADER.map((name) => {
    const cell = line[name];
    return typeof cell === 'bigint' ? { amount: textIn(line.currency, cell) } : cell;
  });

type Exported = Movement & { readonly day: string; readonly productCode: string | null };

const ownerOf = ({ merchantId }: Account) => (merchantId > 0 ? String(merchantId) : null);

/** The columns of a row of the journal, which holds neither codes nor PINs. */
const COLUMNS = Object.entries<(row: Exported) => Cell>({
  day: ({ day }) => day,
  transactionId: ({ id }) => id,
  occurredAt: ({ occurredAt }) => occurredAt?.toISOString() ?? null,
  kind: ({ kind }) => kind,
  debit: ({ debit }) => debit.kind,
  debitMerchantId: ({ debit }) => ownerOf(debit),
  credit: ({ credit }) => credit.kind,
  creditMerchantId: ({ credit }) => ownerOf(credit),
  productCode: ({ productCode }) => productCode,
  amount: ({ currency, amountMinor }) => ({ amount: textIn(currency, amountMinor) }),
  currency: ({ currency }) => currency,
  serialNumber: ({ serialNumber }) => (serialNumber === null ? null : String(serialNumber)),
  reference: ({ reference }) => reference,
  originalId: ({ originalId }) => originalId,
});

/** Yields every row of the journal. */
async function* exportedOf(db: Database, days: readonly ClosedDay[]): AsyncGenerator<Exported> {
  const { products } = await namesAt(db, days);
  for (const day of days)
    for await (const movement of rowsOf(db, day)) {
      const product = products.get(movement.debit.productId || movement.credit.productId);
      yield { ...movement, day: day.day, productCode: product?.code ?? null };
    }
}

/** Writes every row of the journal as CSV. */
async function* writeCsv(db: Database, days: readonly ClosedDay[], style: CsvStyle): AsyncGenerator<string> {
  yield csvText([COLUMNS.map(([name]) => name)], style);
  for await (const row of exportedOf(db, days)) yield csvText([COLUMNS.map(([, of]) => of(row))], style);
}

/** Writes every row of the journal as one JSON object per line. */
async function* writeNdjson(db: Database, days: readonly ClosedDay[]): AsyncGenerator<string> {
  const plain = (cell: Cell) => (cell !== null && typeof cell === 'object' ? valueText(cell) : cell);
  for await (const row of exportedOf(db, days))
    yield `${JSON.stringify(Object.fromEntries(COLUMNS.map(([name, of]) => [name, plain(of(row))])))}\n`;
}

const isStated = ({ kind }: Account) => kind === 'FLOAT' || kind === 'SETTLEMENT';
const keyOf = ({ kind, merchantId, currency }: Account) =>
  `${currency} ${String(merchantId).padStart(10, '0')} ${kind}`;

async function* writeCamt(
  db: Database,
  days: readonly ClosedDay[],
  merchantId: number | undefined,
): AsyncGenerator<string> {
  const names = await namesAt(db, days);
  const isWanted = (account: Account) =>
    isStated(account) && (merchantId === undefined || account.merchantId === merchantId);
  const statedAt = async (day: string) => {
    const balances = (await balancesAt(db, day)).filter(isWanted);
    return new Map(balances.map((each) => [keyOf(each), each]));
  };
  yield beginCamt([days[0] as ClosedDay, days.at(-1) as ClosedDay]);
  let before = await statedAt(addDays(days[0]?.day ?? '', -1));
  for (const day of days) {
    const after = await statedAt(day.day);
    const accounts = new Map<string, Account>([...before, ...after]);
    for (const account of (await sumsOf(db, day)).flatMap(({ debit, credit }) => [debit, credit]))
      if (isWanted(account)) accounts.set(keyOf(account), account);
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
const statedSide = ({ debit, credit }: Movement) => (isStated(debit) ? debit : credit);

const TYPES: Readonly<Record<ExportWanted['format'], readonly [extension: string, mediaType: string]>> = {
  beancount: ['beancount', 'text/plain; charset=utf-8'],
  hledger: ['journal', 'text/plain; charset=utf-8'],
  camt053: ['xml', 'application/xml'],
  gl: ['csv', CSV_TYPE],
  csv: ['csv', CSV_TYPE],
  ndjson: ['ndjson', 'application/x-ndjson'],
  proof: ['txt', 'text/plain; charset=utf-8'],
};

export const exportDays = reading({
  name: 'books.export',
  summary: 'Export closed days for an accounting system',
  path: '/books/export',
  input: {
    format: Word(EXPORT_FORMATS, { description: 'The format of the file.', examples: ['csv'] }),
    ...INTERVAL,
    merchantId: Type.Optional(MerchantId),
    transactionId: Type.Optional({ ...TransactionId, description: 'proof: only this row.' }),
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
    const wanted: ExportWanted = {
      ...{ format, from, to, rowByRow: given.rows ?? false },
      merchantId: await merchantIdOf(caller, given.merchantId),
      transactionId: given.transactionId,
      style: given.european ? 'european' : 'standard',
    };
    const [extension, mediaType] = TYPES[format];
    const content = exportBooks(caller.service, wanted);
    return { name: `books-${from}-${to}.${extension}`, mediaType, content };
  },
});

export const OPERATIONS = tableOf(exportDays);
