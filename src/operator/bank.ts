import Type, { type Static } from 'typebox';
import { type AccountRow, listBankAccounts, listMappings } from '../bank/account.queries.ts';
import { saveMapping, setBankAccount } from '../bank/accounts.ts';
import type { Mapping } from '../bank/csv.ts';
import { accountNumber, isIban, maskedAccount } from '../bank/iban.ts';
import { type BankReport, importBank } from '../bank/import.ts';
import { listStatements, type StatementRow } from '../bank/list.queries.ts';
import { BANK_NOTES, BANK_RULES, type Balance } from '../bank/statement.ts';
import { today } from '../ledger/zone.ts';
import { toNumber } from '../money.ts';
import { alone, changing, reading, tableOf } from '../operation.ts';
import { PAGE, Page, pageOf, readCursor } from '../page.ts';
import { MONEY, SEE } from '../principal.ts';
import { invalid } from '../problem.ts';
import {
  Count,
  Currency,
  checkDay,
  Day,
  Id,
  Input,
  Line,
  minorOf,
  Nullable,
  Reason,
  requireDecimals,
  Text,
  Time,
  Word,
} from '../schema.ts';

/** Statements of the operator's bank: the accounts, the mapping of their files, and the imported entries. */

export const BankName = Line(100, 'The bank account, as you name it.', 'House bank');
const MappingName = Line(100, 'The name of a mapping.', 'house');
const Column = Line(200, 'The name of a column.', 'Date');
const Own = Type.Number({
  minimum: 0,
  maximum: 999_999_999_999_999,
  description: 'Your own money in it, which is not in the books.',
});

const AccountSchema = Type.Object({
  name: Text,
  currency: Text,
  iban: Nullable(Text, { description: 'Its ends; null: not known until a statement names it.' }),
  own: Type.Number({ format: 'money' }),
  from: Nullable(Day, { description: 'The first day of this own money; null: the beginning.' }),
});
export type BankAccount = Static<typeof AccountSchema>;

const accountJson = ({
  name,
  currency,
  decimals,
  number: iban,
  own_minor: minor,
  own_from: from,
}: AccountRow) => ({
  name,
  currency,
  iban: iban === null ? null : maskedAccount(iban),
  own: toNumber({ minor, decimals }),
  from,
});

const listAccounts = reading({
  name: 'bank.accounts',
  summary: 'List your bank accounts',
  method: 'GET',
  path: '/bank/accounts',
  command: 'bank accounts',
  input: Input({}),
  output: Page(AccountSchema),
  roles: SEE,
  async run({ service }) {
    const rows = await service.readDb.query<AccountRow>(listBankAccounts(await today(service)));
    return { items: rows.map(accountJson), nextCursor: null };
  },
});

const Iban = Type.String({
  pattern: '^ *[A-Za-z0-9./-]( *[A-Za-z0-9./-]){0,33} *$',
  maxLength: 50,
  description:
    'Its IBAN, or another number, as the statements state it; left out: that of the first statement.',
  examples: ['DE89370400440532013000'],
});

const setAccount = changing({
  name: 'bank.account',
  summary: 'Name one of your bank accounts, or change its number or the amount of your own money in it',
  description:
    'Statements of another account are refused. The own money of a new account counts from the beginning, a ' +
    'change of it from a day that is not closed.',
  method: 'POST',
  path: '/bank/accounts',
  command: 'bank account',
  input: Input({
    name: BankName,
    currency: Currency,
    iban: Type.Optional(Iban),
    own: Type.Optional(Own),
    from: Type.Optional(
      Type.String({ ...Day, description: 'The first day of the own money; left out: today.' }),
    ),
    reason: Reason,
  }),
  output: AccountSchema,
  roles: MONEY,
  approval: alone('It moves no money: it names the accounts of the operator whose statements are imported.'),
  async run(caller, { name, currency, iban, own, from }) {
    checkDay(from, 'from');
    if (from !== undefined && own === undefined)
      throw invalid('from', 'dependent', 'is the first day of `own`, which is missing');
    const number = iban === undefined ? undefined : accountNumber(iban);
    if (number !== undefined && /^[A-Z]{2}\d{2}[A-Z0-9]{11,30}$/.test(number) && !isIban(number))
      throw invalid('iban', 'iban', 'is not an IBAN: its check digits are wrong');
    const decimals = requireDecimals(currency);
    const ownMinor = own === undefined ? undefined : own === 0 ? 0n : minorOf(own, currency, 'own');
    return accountJson(await setBankAccount(caller, { name, currency, decimals, number, ownMinor, from }));
  },
});

const FORMATS = ['YYYY-MM-DD', 'DD.MM.YYYY', 'DD/MM/YYYY', 'MM/DD/YYYY'] as const;

const MappingSchema = Type.Object({
  date: Column,
  dateFormat: Word(FORMATS, { description: 'How days are written.' }),
  amount: Column,
  decimal: Word(['.', ','], { description: 'The decimal sign.' }),
  texts: Type.Array(Column, {
    minItems: 1,
    maxItems: 20,
    description: 'Columns that contain references.',
    examples: [['Text']],
  }),
  entryReference: Nullable(Column, { description: "The bank's own reference of an entry; null: none." }),
  currency: Type.Optional(
    Nullable(Column, { description: 'The currency of an entry, which must be that of the account.' }),
  ),
  accountNumber: Type.Optional(
    Nullable(Column, { description: 'The IBAN of the account, which must be that of the account.' }),
  ),
  delimiter: Word([',', ';', '\t'], { description: 'The separator of the columns.' }),
  encoding: Word(['utf-8', 'windows-1252']),
});
const Named = Type.Object({ name: Text, ...MappingSchema.properties });
export type BankMapping = Static<typeof Named>;

const listAllMappings = reading({
  name: 'bank.mappings',
  summary: 'List the saved mappings',
  method: 'GET',
  path: '/bank/mappings',
  command: 'bank mappings',
  input: Input({}),
  output: Page(Named),
  roles: SEE,
  async run({ service }) {
    const rows = await service.readDb.query<{ name: string; mapping: Mapping }>(listMappings);
    const items = rows.map(({ name, mapping }) => ({ name, ...mapping, texts: [...mapping.texts] }));
    return { items, nextCursor: null };
  },
});

const setMapping = changing({
  name: 'bank.mapping',
  summary: "Save how the columns of a bank's CSV are read",
  method: 'POST',
  path: '/bank/mappings',
  command: 'bank mapping',
  input: Input({ name: MappingName, ...MappingSchema.properties, reason: Reason }),
  output: Named,
  roles: MONEY,
  approval: alone('It moves no money: it says how the files of a bank are read.'),
  async run(caller, { name, reason: _reason, ...mapping }) {
    await saveMapping(caller, name, mapping);
    return { name, ...mapping };
  },
});

/** The largest body of the operator API. The command line reads larger files. */
const BODY_MAX_BYTES = 3 * 1024 * 1024;
/** 64 MB as base64. */
const FILE_MAX = 90_000_000;

const Finding = <Rule extends string>(rules: readonly Rule[]) =>
  Type.Object({
    line: Type.Integer(),
    field: Text,
    rule: Word(rules),
    message: Text,
    facts: Type.Optional(Type.Unsafe<Readonly<Record<string, unknown>>>({ type: 'object' })),
  });

const BalanceSchema = Nullable(Type.Object({ day: Day, amount: Type.Number() }), {
  description: 'Null if the file does not state it.',
});

const ImportedEntry = Type.Object({
  line: Type.Integer(),
  reference: Text,
  day: Day,
  amount: Type.Number(),
  description: Text,
});

const Report = Type.Object({
  ok: Type.Boolean({ description: 'False: nothing was imported, and `errors` says why.' }),
  state: Word(['checked', 'refused', 'imported']),
  currency: Text,
  entries: Type.Array(ImportedEntry),
  opening: BalanceSchema,
  closing: BalanceSchema,
  errors: Type.Array(Finding(BANK_RULES)),
  notes: Type.Array(Finding(BANK_NOTES), {
    description: 'What to look at, although the file can be imported.',
  }),
});
export type ImportReport = Static<typeof Report>;

function reportJson({ state, currency, decimals, entries, ...report }: BankReport): ImportReport {
  const balance = (each: Balance | null) =>
    each && { day: each.day, amount: toNumber({ minor: each.minor, decimals }) };
  return {
    ok: state !== 'refused',
    state,
    currency,
    entries: entries.map(({ amountMinor: minor, ...each }) => ({
      ...each,
      amount: toNumber({ minor, decimals }),
    })),
    opening: balance(report.opening),
    closing: balance(report.closing),
    errors: report.errors.map((each) => ({ ...each })),
    notes: report.notes.map((each) => ({ ...each })),
  };
}

const importFile = changing({
  name: 'bank.import',
  summary: 'Import a statement of the bank, as a whole or not at all',
  description: 'A file with errors is refused as a whole: `ok` is false, and `errors` names line and field.',
  method: 'POST',
  path: '/bank/import',
  command: 'bank import',
  input: Input({
    account: BankName,
    format: Word(['camt053', 'csv']),
    mapping: Type.Optional(MappingName),
    file: Type.String({
      minLength: 1,
      maxLength: FILE_MAX,
      pattern: '^[A-Za-z0-9+/]+={0,2}$',
      description: 'The file, in base64.',
      examples: ['RGF0ZTtUZXh0O0Ftb3VudAo='],
    }),
    dryRun: Type.Optional(Type.Boolean({ description: 'Only show what would be imported.' })),
    reason: Reason,
  }),
  output: Report,
  roles: MONEY,
  approval: alone('It moves no money: it stores what the bank says.'),
  bodyMaxBytes: BODY_MAX_BYTES,
  async run(caller, { account, format, mapping, file, dryRun = false }) {
    if ((format === 'csv') !== (mapping !== undefined))
      throw invalid('mapping', 'dependent', 'belongs to the format csv, which needs it');
    const bytes = Buffer.from(file, 'base64');
    return reportJson(await importBank(caller, { account, bytes, format, mapping }, dryRun));
  },
});

const StatementSchema = Type.Object({
  id: Id('statement'),
  account: Text,
  currency: Text,
  format: Text,
  entries: Count,
  opening: Nullable(Type.Number({ format: 'money' }), {
    description: 'The balance of the account before; null if the file does not state it.',
  }),
  openingOn: Nullable(Day),
  closing: Nullable(Type.Number({ format: 'money' }), { description: 'The balance after; null likewise.' }),
  closingOn: Nullable(Day),
  missing: Nullable(Type.Number({ format: 'money' }), {
    description: 'What the entries lack to the change of the balance: 0 if they are complete.',
  }),
  gap: Nullable(Type.Number({ format: 'money' }), {
    description:
      'The opening balance less the closing balance that was stated before: 0 if nothing is between.',
  }),
  importedBy: Text,
  importedAt: Time,
});
export type BankStatement = Static<typeof StatementSchema>;

const statements = reading({
  name: 'bank.statements',
  summary: 'List the statements that were imported, newest first',
  method: 'GET',
  path: '/bank/statements',
  command: 'bank statements',
  input: Input({ ...PAGE, account: Type.Optional(BankName) }),
  output: Page(StatementSchema),
  roles: SEE,
  async run({ service }, { cursor, limit = 50, account }) {
    const filters = { account };
    const [before] = readCursor('bank statements', filters, cursor) ?? [];
    const last = before === undefined ? null : Number(before);
    const rows = await service.readDb.query<StatementRow>(listStatements(account ?? null, last, limit + 1));
    const items = rows.map((row) => {
      const money = (minor: bigint | null) =>
        minor === null ? null : toNumber({ minor, decimals: row.decimals });
      return {
        id: String(row.id),
        account: row.account,
        currency: row.currency,
        format: row.format,
        entries: row.entries,
        opening: money(row.opening_minor),
        openingOn: row.opening_on,
        closing: money(row.closing_minor),
        closingOn: row.closing_on,
        missing: money(row.missing_minor),
        gap: money(row.gap_minor),
        importedBy: row.imported_by,
        importedAt: row.imported_at,
      };
    });
    return pageOf('bank statements', filters, items, limit, ({ id }) => [Number(id)]);
  },
});

export const bank = {
  accounts: listAccounts,
  account: setAccount,
  mappings: listAllMappings,
  mapping: setMapping,
  import: importFile,
  statements,
};

export const BANK = tableOf(...Object.values(bank));
