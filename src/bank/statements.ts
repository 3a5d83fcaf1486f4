import Type from 'typebox';
import { type Sql, sql } from '../db/sql.ts';
import { none } from '../figure.ts';
import { listing } from '../listing.ts';
import { tableOf } from '../operation.ts';
import { SEE } from '../principal.ts';
import { columnsOf } from '../row.ts';
import { Count, Day, Id, Money, Nullable, Opening, Text, Time } from '../schema.ts';
import { BankName } from './accounts.ts';
import { STATED } from './statement.ts';

/** The statements that were imported, with what they lack. */

const StatementSchema = Type.Object({
  id: Id('statement'),
  account: Text,
  currency: Text,
  format: Text,
  entries: Opening([{ of: 'bank.entries', given: { statement: '{id}' } }], Count),
  opening: Nullable(Money(STATED), {
    title: 'Opening balance',
    description: 'The balance of the account before; null if the file does not state it.',
  }),
  openingOn: Nullable(Day),
  closing: Nullable(Money(STATED), { description: 'The balance after; null likewise.' }),
  closingOn: Nullable(Day),
  missing: Nullable(Money(none('The change of the stated balance, less the entries.')), {
    description: 'What the entries lack to the change of the balance: 0 if they are complete.',
  }),
  gap: Nullable(Money(none('The difference of two balances that the bank states.')), {
    title: 'Gap before',
    description:
      'The opening balance less the closing balance that was stated before: 0 if nothing is between.',
  }),
  importedBy: Text,
  importedAt: Time,
});

const COLUMNS = columnsOf(StatementSchema, 'f', {
  currency: sql`a.currency`,
  missing: sql`
(f.closing_minor - f.opening_minor
  - (select coalesce(sum(e.amount_minor), 0) from bank_entries e where e.file_id = f.id))::bigint`,
  gap: sql`
f.opening_minor - (
  select b.closing_minor from bank_files b
  where b.account = f.account and (b.closing_on, b.id) < (f.closing_on, f.id)
  order by b.closing_on desc, b.id desc limit 1
)`,
});

/** Selects statements `f`. */
export const statementsWhere = (condition: Sql): Sql => sql`
select ${COLUMNS}
from bank_files f join bank_accounts a on a.name = f.account
where ${condition}`;

export const listStatements = listing({
  name: 'bank.statements',
  summary: 'List the statements that were imported, newest first',
  path: '/bank/statements',
  filters: { account: Type.Optional(BankName) },
  item: StatementSchema,
  columns: [
    ...['id', 'account', 'format', 'entries', 'closing', 'closingOn', 'gap', 'missing'],
    ...['importedAt', 'importedBy'],
  ],
  roles: SEE,
  rows: ({ service }, { account = null }, [before = null], count) =>
    service.readDb.query(
      statementsWhere(sql`(${account}::text is null or f.account = ${account})
  and (${before}::integer is null or f.id < ${before}) order by f.id desc limit ${count}`),
    ),
});

export const OPERATIONS = tableOf(listStatements);
