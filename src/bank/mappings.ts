import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { Page } from '../page.ts';
import { MONEY, SEE } from '../principal.ts';
import { requireRow } from '../problem.ts';
import { Line, Nullable, Positional, Text, Titled, Word } from '../schema.ts';

/** Mappings: how the columns of a bank's CSV are read. */

export const MappingName = Line(100, 'The name of a mapping.', 'house');
const Column = (description: string, example: string) => Line(200, description, example);

const MappingSchema = Type.Object({
  date: Column('The column of the day on which the bank booked.', 'Date'),
  dateFormat: Word(['YYYY-MM-DD', 'DD.MM.YYYY', 'DD/MM/YYYY', 'MM/DD/YYYY'], {
    title: 'Days are written',
    description: 'How days are written; left out: YYYY-MM-DD.',
  }),
  amount: Column('The column of the amount, which is negative for payments.', 'Amount'),
  decimal: Word(['.', ','], {
    title: 'Before the decimals',
    description: 'The decimal sign, a point if it is left out. The other one may separate thousands.',
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
    description: 'The separator of the columns, a comma if it is left out.',
    names: { comma: ',', semicolon: ';', tab: '\t' },
  }),
  encoding: Word(['utf-8', 'windows-1252'], { description: 'Left out: utf-8.' }),
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

const list = reading({
  name: 'bank.mappings',
  summary: 'List the saved mappings',
  path: '/bank/mappings',
  input: {},
  output: Page(Named),
  columns: ['name', 'date', 'amount', 'texts'],
  roles: SEE,
  async run({ service }) {
    const rows = await service.readDb.query<{ name: string; mapping: Mapping }>(sql`
select name, mapping from bank_mappings order by name limit 1000`);
    return { items: rows.map(({ name, mapping }) => ({ name, ...mapping })), nextCursor: null };
  },
});

const { dateFormat, decimal, entryReference, delimiter, encoding, ...required } = MappingSchema.properties;

const save = changing({
  name: 'bank.mapping',
  title: 'CSV columns',
  summary: "Save how the columns of a bank's CSV are read",
  path: '/bank/mappings',
  input: {
    name: Positional(MappingName),
    ...required,
    dateFormat: Type.Optional(dateFormat),
    decimal: Type.Optional(decimal),
    entryReference: Type.Optional(entryReference),
    delimiter: Type.Optional(delimiter),
    encoding: Type.Optional(encoding),
  },
  output: Named,
  roles: MONEY,
  approval: alone('It moves no money: it says how the files of a bank are read.'),
  async run(caller, { name, date, amount, texts, ...given }) {
    const mapping: Mapping = {
      date,
      dateFormat: given.dateFormat ?? 'YYYY-MM-DD',
      amount,
      decimal: given.decimal ?? '.',
      texts,
      entryReference: given.entryReference ?? null,
      currency: given.currency ?? null,
      accountNumber: given.accountNumber ?? null,
      delimiter: given.delimiter ?? ',',
      encoding: given.encoding ?? 'utf-8',
    };
    await saveMapping(caller, name, mapping);
    return { name, ...mapping };
  },
});

export const BANK_MAPPINGS = tableOf(list, save);
