import { createHash } from 'node:crypto';
import Type, { type Static } from 'typebox';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { moneyIn, toSum } from '../money.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { MONEY } from '../principal.ts';
import { invalid } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import { Base64, Nullable, Positional, Text, Word } from '../schema.ts';
import { DAY_MS, isoDay } from '../time.ts';
import { type BankAccount, BankName, getBankAccount, rememberNumber } from './accounts.ts';
import { readCamt } from './camt.ts';
import { getMapping, MappingName, readBankCsv } from './csv.ts';
import { maskedAccount } from './iban.ts';
import { Balance, type BankEntry, BankError, BankNote, ReadEntry, type Statement } from './statement.ts';

/** The import of a statement of the operator's bank, completely or not at all. */

export type BankFile = {
  readonly account: string;
  readonly bytes: Buffer;
  readonly format: 'camt053' | 'csv';
  /** The name of a saved mapping, for a CSV. */
  readonly mapping?: string | undefined;
};

const Stated = Nullable(Balance, { description: 'Null if the file does not state it.' });

const Report = Type.Object({
  ok: Type.Boolean({ description: 'False: nothing was imported, and `errors` says why.' }),
  state: Word(['checked', 'refused', 'imported']),
  currency: Text,
  entries: Type.Array(ReadEntry),
  opening: Stated,
  closing: Stated,
  errors: Type.Array(BankError),
  notes: Type.Array(BankNote, {
    description: 'What to look at, although the file can be imported.',
  }),
});

/** Banks date entries ahead over holidays. One further ahead was read with the wrong date format. */
const AHEAD_DAYS_MAX = 7;
/** The number of rows that one statement inserts. */
const INSERTED = 1_000;

/**
 * Imports a bank statement, completely or not at all. Any error refuses the file and is reported by line and
 * field: a field that cannot be read, an entry that appears twice, or an entry that was imported before.
 * @param dryRun only shows what would be imported
 * @throws Problem for an unknown account or mapping; Refusal `94` for a file that was imported before
 */
export async function importBank(
  operator: Operator,
  file: BankFile,
  dryRun: boolean,
): Promise<Static<typeof Report>> {
  const { service, actor } = operator;
  const { db } = service;
  const account = await getBankAccount(operator, file.account);
  const digest = createHash('sha256').update(file.bytes).digest();
  const [known] = await db.query<{ importedAt: Date }>(sql`
select imported_at as "importedAt" from bank_files where digest = ${digest}`);
  if (known)
    throw new Refusal('94', {
      message: `this file was imported before, on ${known.importedAt.toISOString()}`,
    });
  const statement = await read(db, file, account);
  const { entries, opening, closing, number } = statement;
  const errors = [...statement.errors, ...(await errorsOf(operator, file, statement))];
  errors.sort((one, other) => one.line - other.line);
  const notes = [...statement.notes, ...(await notesOf(db, account, statement))];
  const report = { currency: account.currency, entries: [...entries], opening, closing, errors, notes };
  if (errors.length > 0) return { ok: false, state: 'refused', ...report };
  if (dryRun) return { ok: true, state: 'checked', ...report };
  await db.transaction(async (tx) => {
    if (number !== null && account.iban === null) await rememberNumber(tx, account.name, number);
    const [made] = await tx.query<{ id: number }>(sql`
insert into bank_files (digest, account, format, entries, opening_minor, opening_on, closing_minor,
  closing_on, imported_by, imported_at)
values (${digest}, ${file.account}, ${file.format}, ${entries.length}, ${opening?.amount},
  ${opening?.day}::date, ${closing?.amount}, ${closing?.day}::date, ${actor.name}, ${service.clock()})
returning id`);
    const id = made?.id ?? 0;
    for (let at = 0; at < entries.length; at += INSERTED)
      await insertEntries(tx, id, file.account, entries.slice(at, at + INSERTED));
    const after = {
      file: id,
      entries: entries.length,
      digest: digest.toString('hex'),
      number: number && maskedAccount(number),
    };
    const subject = `bank account ${file.account}`;
    await audit(tx, operator, { action: 'bank.import', subject, after, touches: [`bank file ${id}`] });
  });
  return { ok: true, state: 'imported', ...report };
}

async function insertEntries(
  tx: Queries,
  fileId: number,
  account: string,
  entries: readonly BankEntry[],
): Promise<void> {
  const column = (name: keyof BankEntry) => entries.map((entry) => String(entry[name]));
  await tx.query(sql`
insert into bank_entries (file_id, account, entry_reference, booked_on, amount_minor, description)
select ${fileId}, ${account}, u.reference, u.day, u.amount, u.description
from unnest(${column('reference')}::text[], ${column('day')}::date[], ${column('amount')}::bigint[],
  ${column('description')}::text[]) as u (reference, day, amount, description)`);
}

/** Returns the errors that the file alone does not show. */
async function errorsOf(
  { service: { db, clock } }: Operator,
  { account }: BankFile,
  { entries, errors, closing }: Statement,
): Promise<BankError[]> {
  const references = entries.map(({ reference }) => reference);
  const before = await db.query<{ reference: string }>(sql`
select entry_reference as reference from bank_entries
where account = ${account} and entry_reference = any (${references}::text[])`);
  const taken = new Set(before.map(({ reference }) => reference));
  const twice = entries
    .filter(({ reference }) => taken.has(reference))
    .map(({ line }) => wrong(line, 'reference', 'imported', 'this entry was imported before'));
  const last = isoDay(clock().getTime() + AHEAD_DAYS_MAX * DAY_MS);
  const future = entries
    .filter(({ day }) => day > last)
    .map(({ line, day }) => wrong(line, 'date', 'maximum', `${day} is in the future`));
  // On a quiet day, a statement has only its balances.
  const isEmpty = entries.length + errors.length === 0 && !closing;
  return [...twice, ...future, ...(isEmpty ? [wrong(1, 'file', 'empty', 'the file contains no entry')] : [])];
}

/**
 * Returns notes on the balances: the opening balance should be the last closing balance, and the entries
 * should lead from one to the other. Otherwise entries or a whole statement are missing.
 */
async function notesOf(
  db: Queries,
  { name, iban: known, currency }: BankAccount,
  { entries, opening, closing, number }: Statement,
): Promise<BankNote[]> {
  const notes: BankNote[] = [];
  const note = (rule: BankNote['rule'], message: string, facts: BankNote['facts']) =>
    notes.push({ line: 1, field: 'file', rule, message, ...(facts && { facts }) });
  const text = (minor: bigint) => toSum(currency, minor);
  if (number !== null && known === null) {
    const message = `the account is ${number}: statements of another one are refused from now on`;
    note('newNumber', message, { number });
  }
  if (!opening) return notes;
  // The last closing balance that statements of the account have stated up to the day.
  const [before] = await db.query<Balance>(sql`
select closing_on::text as day, closing_minor as amount from bank_files
where account = ${name} and closing_on <= ${closing?.day ?? opening.day}::date
order by closing_on desc, id desc limit 1`);
  if (before && before.amount !== opening.amount) {
    const facts = { opening: text(opening.amount), closing: text(before.amount), day: before.day };
    const message = `the opening balance is ${facts.opening}, and the last closing balance, of ${facts.day}, is ${facts.closing}`;
    note('gap', `${message}: a statement is missing between them`, facts);
  }
  if (!closing) return notes;
  const sum = entries.reduce((total, { amount }) => total + amount, 0n);
  const missing = closing.amount - opening.amount - sum;
  if (missing !== 0n) {
    const facts = {
      opening: text(opening.amount),
      entries: text(sum),
      closing: text(closing.amount),
      missing: text(missing),
    };
    const message = `the opening balance ${facts.opening} and the entries ${facts.entries} do not give the closing balance`;
    note('missing', `${message} ${facts.closing}: ${facts.missing} are missing`, facts);
  }
  return notes;
}

const wrong = (line: number, field: string, rule: BankError['rule'], message: string): BankError => ({
  line,
  field,
  rule,
  message,
});

async function read(
  db: Queries,
  { format, bytes, mapping }: BankFile,
  { currency, iban }: BankAccount,
): Promise<Statement> {
  const account = { currency, decimals: moneyIn(currency, 0n).decimals, number: iban };
  if (format === 'camt053') return readCamt(bytes, account);
  return readBankCsv(bytes, await getMapping(db, mapping ?? ''), account);
}

/** The largest body of the operator API. The command line reads larger files. */
const BODY_MAX_BYTES = 3 * 1024 * 1024;
/** 64 MB as base64. */
const FILE_MAX = 90_000_000;

export const importStatement = changing({
  name: 'bank.import',
  title: 'Import a statement',
  summary: 'Import a statement of the bank, as a whole or not at all',
  description: 'A file with errors is refused as a whole: `ok` is false, and `errors` names line and field.',
  path: '/bank/import',
  input: {
    account: BankName,
    format: Word(['camt053', 'csv']),
    mapping: Type.Optional(MappingName),
    file: Positional(Base64(FILE_MAX, 'The file.', 'RGF0ZTtUZXh0O0Ftb3VudAo=')),
    dryRun: Type.Optional(Type.Boolean({ description: 'Only show what would be imported.' })),
  },
  output: Report,
  outcome: 'ok',
  roles: MONEY,
  approval: alone('It moves no money: it stores what the bank says.'),
  bodyMaxBytes: BODY_MAX_BYTES,
  run(caller, { account, format, mapping, file, dryRun = false }) {
    if ((format === 'csv') !== (mapping !== undefined))
      throw invalid('mapping', 'dependent', 'belongs to the format csv, which needs it');
    const bytes = Buffer.from(file, 'base64');
    return importBank(caller, { account, bytes, format, mapping }, dryRun);
  },
});

export const OPERATIONS = tableOf(importStatement);
