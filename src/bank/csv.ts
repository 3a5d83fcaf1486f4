import { isUtf8 } from 'node:buffer';
import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import { type BrokenCsv, type CsvRow, readCsv } from '../csv.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { listingAll } from '../listing.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { MONEY, SEE } from '../principal.ts';
import { requireRow } from '../problem.ts';
import { inSection, Line, Nullable, Positional, Text, Titled, Word, withDefaults } from '../schema.ts';
import { accountNumber as asNumber } from './iban.ts';
import { type Account, Collected, describe, type Statement } from './statement.ts';

/** Statements of a bank in CSV, and the saved mappings by which their columns are read. */

export const MappingName = Line(100, 'The name of a mapping.', 'house');
const Column = (description: string, example: string) => Line(200, description, example);

const MappingSchema = Type.Object({
  date: Column('The column of the day on which the bank booked.', 'Date'),
  dateFormat: Word(['YYYY-MM-DD', 'DD.MM.YYYY', 'DD/MM/YYYY', 'MM/DD/YYYY'], {
    title: 'Days are written',
    description: 'How days are written.',
  }),
  amount: Column('The column of the amount, which is negative for payments.', 'Amount'),
  decimal: Word(['.', ','], {
    title: 'Before the decimals',
    description: 'The decimal sign. The other one may separate thousands.',
    names: { point: '.', comma: ',' },
  }),
  texts: Type.Array(Column('The name of a column.', 'Text'), {
    title: 'Columns of references',
    minItems: 1,
    maxItems: 20,
    description: 'Columns that contain references.',
    examples: [['Text']],
  }),
  entryReference: Titled(
    'Column of the bank reference',
    Nullable(
      Column("The column of the bank's own reference; null: it is derived from the row.", 'Reference'),
    ),
  ),
  currency: Type.Optional(
    Nullable(Column('The column of the currency, which must be that of the account.', 'Currency')),
  ),
  accountNumber: Type.Optional(
    Nullable(Column('The column of the IBAN, which must be that of the account.', 'IBAN'), {
      title: 'Column with the IBAN',
      option: 'account-number',
    }),
  ),
  delimiter: Word([',', ';', '\t'], {
    title: 'Separator',
    description: 'The separator of the columns.',
    names: { comma: ',', semicolon: ';', tab: '\t' },
  }),
  encoding: Word(['utf-8', 'windows-1252'], { description: 'The encoding of the files.' }),
});

export type Mapping = Static<typeof MappingSchema>;

/** Returns a mapping. @throws Problem if there is no such mapping */
export async function getMapping(db: Queries, name: string): Promise<Mapping> {
  const found = sql`select mapping from bank_mappings where name = ${name}`;
  return (await requireRow<{ mapping: Mapping }>(db, found, 'such mapping; make it first')).mapping;
}

export async function saveMapping(operator: Operator, name: string, mapping: Mapping): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    await tx.query(sql`
insert into bank_mappings (name, mapping) values (${name}, ${JSON.stringify(mapping)}::json)
on conflict (name) do update set mapping = excluded.mapping`);
    const columns = Object.entries(mapping).map(([field, column]) => `${field}: ${column}`);
    const after = { columns };
    await audit(tx, operator, { action: 'bank.mapping', subject: `bank mapping ${name}`, after });
  });
}

const Named = Type.Object({ name: Text, ...MappingSchema.properties });

const list = listingAll({
  name: 'bank.mappings',
  summary: 'List the saved mappings',
  path: '/bank/mappings',
  item: Named,
  columns: ['name', 'date', 'amount', 'texts'],
  roles: SEE,
  async rows({ service }) {
    const rows = await service.readDb.query<{ name: string; mapping: Mapping }>(sql`
select name, mapping from bank_mappings order by name limit 1000`);
    return rows.map(({ name, mapping }) => ({ name, ...mapping }));
  },
});

const { dateFormat, decimal, entryReference, delimiter, encoding, ...required } = MappingSchema.properties;
const DEFAULTS = { delimiter: ',', encoding: 'utf-8', decimal: '.', dateFormat: 'YYYY-MM-DD' } as const;

const save = changing({
  name: 'bank.mapping',
  title: 'Set CSV columns',
  summary: "Save how the columns of a bank's CSV are read",
  path: '/bank/mappings',
  input: {
    ...inSection('file', {
      name: Positional(MappingName),
      ...withDefaults({ delimiter, encoding, decimal, dateFormat }, DEFAULTS),
    }),
    ...inSection('columns', { ...required, entryReference: Type.Optional(entryReference) }),
  },
  output: Named,
  roles: MONEY,
  approval: alone('It moves no money: it says how the files of a bank are read.'),
  async run(caller, { name, date, amount, texts, ...given }) {
    const mapping: Mapping = {
      date,
      dateFormat: given.dateFormat ?? DEFAULTS.dateFormat,
      amount,
      decimal: given.decimal ?? DEFAULTS.decimal,
      texts,
      entryReference: given.entryReference ?? null,
      currency: given.currency ?? null,
      accountNumber: given.accountNumber ?? null,
      delimiter: given.delimiter ?? DEFAULTS.delimiter,
      encoding: given.encoding ?? DEFAULTS.encoding,
    };
    await saveMapping(caller, name, mapping);
    return { name, ...mapping };
  },
});

export const mappings = { list, save };

/** Recognizes UTF-16 by its byte order mark, or by a NUL byte in the first character. */
const isUtf16 = (bytes: Buffer) =>
  ['fffe', 'feff'].includes(bytes.toString('hex', 0, 2)) || bytes.subarray(0, 2).includes(0);

const lineAt = (bytes: Buffer, at: number) => bytes.toString('latin1', 0, at).split('\n').length;

/** Reads a bank's CSV. @returns the entries that could be read, and the errors by line and column */
export function readBankCsv(bytes: Buffer, mapping: Mapping, account: Account): Statement {
  const collected = new Collected();
  // Windows-1252 has a character for every byte, so it would read any file.
  const nul = bytes.indexOf(0);
  if (isUtf16(bytes))
    return collected.refused(1, 'encoding', `the file is in UTF-16: save it in ${mapping.encoding}`);
  if (nul !== -1)
    return collected.refused(lineAt(bytes, nul), 'csv', 'there is a NUL byte: this is no CSV file');
  let text: string;
  try {
    text = new TextDecoder(mapping.encoding, { fatal: true }).decode(bytes);
  } catch {
    const another = 'choose another --encoding in the mapping';
    const rows = bytes.toString('latin1').split('\n');
    const line = rows.findIndex((row) => !isUtf8(Buffer.from(row, 'latin1'))) + 1;
    return collected.refused(line || 1, 'encoding', `the file is not in ${mapping.encoding}: ${another}`);
  }
  let lines: CsvRow[];
  try {
    lines = readCsv(text, mapping.delimiter);
  } catch (error) {
    return collected.refused((error as BrokenCsv).line, 'csv', 'this is not CSV with this delimiter');
  }
  const header = lines.shift()?.record ?? [];
  const { date, amount, texts, entryReference, currency, accountNumber } = mapping;
  for (const column of [date, amount, ...texts, entryReference, currency, accountNumber]) {
    if (column == null) continue;
    const count = header.filter((name) => name === column).length;
    if (count === 0) collected.wrong(1, column, 'column', 'there is no such column');
    if (count > 1) collected.wrong(1, column, 'columnTwice', `there are ${count} columns of this name`);
  }
  if (collected.errors.length === 0) readLines(lines, header, mapping, account, collected);
  return collected.statement({ opening: null, closing: null, number: null });
}

function readLines(
  lines: readonly CsvRow[],
  header: readonly string[],
  mapping: Mapping,
  account: Account,
  collected: Collected,
): void {
  const { currency, decimals } = account;
  for (const { record, info } of lines) {
    const line = info.lines;
    // A delimiter within a text shifts the columns after it. Some banks end each line with a delimiter.
    if (record.length < header.length || record.slice(header.length).some((field) => field !== '')) {
      const counts = `has ${record.length} fields, and the header has ${header.length}`;
      collected.wrong(line, 'row', 'fields', `${counts}: put texts that contain the delimiter in quotes`);
      continue;
    }
    const field = (column: string) => record[header.indexOf(column)] ?? '';
    if (!isOfAccount(line, field, mapping, account, collected)) continue;
    const day = readDay(field(mapping.date), mapping.dateFormat);
    if (!day) collected.wrong(line, mapping.date, 'day', `is not a day as ${mapping.dateFormat}`);
    const amount = readAmount(field(mapping.amount), mapping.decimal, decimals);
    if (amount === undefined)
      collected.wrong(
        line,
        mapping.amount,
        'money',
        `is not an amount in ${currency} with "${mapping.decimal}" before its decimals`,
      );
    if (!day || amount === undefined) continue;
    const description = describe(mapping.texts.map(field));
    const reference = mapping.entryReference ? field(mapping.entryReference) : '';
    collected.add({ line, day, description, reference, amount });
  }
}

/** Returns whether a row is of this account; otherwise reports it. */
function isOfAccount(
  line: number,
  field: (column: string) => string,
  { currency, accountNumber }: Mapping,
  account: Account,
  collected: Collected,
): boolean {
  const found = currency ? field(currency).toUpperCase() : account.currency;
  if (currency && found !== account.currency) {
    const facts = { currency: account.currency, found };
    collected.wrong(line, currency, 'currency', `is ${found}: the account is in ${account.currency}`, facts);
    return false;
  }
  const number = accountNumber ? asNumber(field(accountNumber)) : null;
  if (accountNumber && account.number !== null && number !== account.number) {
    const facts = { number: account.number, found: number ?? '' };
    collected.wrong(line, accountNumber, 'account', `is ${number}: the account is ${account.number}`, facts);
    return false;
  }
  return true;
}

const DATES = {
  'YYYY-MM-DD': [/^(\d{4})-(\d{2})-(\d{2})$/, [1, 2, 3]],
  'DD.MM.YYYY': [/^(\d{2})\.(\d{2})\.(\d{4})$/, [3, 2, 1]],
  'DD/MM/YYYY': [/^(\d{2})\/(\d{2})\/(\d{4})$/, [3, 2, 1]],
  'MM/DD/YYYY': [/^(\d{2})\/(\d{2})\/(\d{4})$/, [3, 1, 2]],
} as const;

export function readDay(text: string, format: Mapping['dateFormat']): string | undefined {
  const [pattern, order] = DATES[format];
  const found = pattern.exec(text);
  const day = found ? order.map((at) => found[at]).join('-') : '';
  return new Date(`${day}T00:00:00Z`).toJSON()?.slice(0, 10) === day ? day : undefined;
}

function readAmount(text: string, decimal: '.' | ',', decimals: number): bigint | undefined {
  const [point, group] = decimal === '.' ? ['\\.', ','] : [',', '\\.'];
  const form = new RegExp(
    `^([+-]?)(\\d{1,3}(?:${group}\\d{3})+|\\d{1,15})(?:${point}(\\d{1,${Math.max(decimals, 1)}}))?$`,
  );
  const [all, sign = '', whole = '', fraction = ''] = form.exec(text.replace(/\s/g, '')) ?? [];
  if (all === undefined || fraction.length > decimals) return undefined;
  const minor = BigInt(whole.replace(/\D/g, '') + fraction.padEnd(decimals, '0'));
  return sign === '-' ? -minor : minor;
}

export const OPERATIONS = tableOf(...Object.values(mappings));
