import { createHash } from 'node:crypto';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { toSum } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { DAY_MS, isoDay } from '../time.ts';
import { type AccountRow, findMapping } from './account.queries.ts';
import { getBankAccount, rememberNumber } from './accounts.ts';
import { readCamt } from './camt.ts';
import { type Mapping, readBankCsv } from './csv.ts';
import { maskedAccount } from './iban.ts';
import { findClosingBefore, findFile, insertEntries, insertFile, listKnownReferences } from './queries.ts';
import type { Balance, BankEntry, BankError, BankNote, Statement } from './statement.ts';

export type BankFile = {
  readonly account: string;
  readonly bytes: Buffer;
  readonly format: 'camt053' | 'csv';
  /** The name of a saved mapping, for a CSV. */
  readonly mapping?: string | undefined;
};

export type BankReport = {
  /** `refused` means that nothing was imported. */
  readonly state: 'checked' | 'refused' | 'imported';
  readonly currency: string;
  readonly decimals: number;
  readonly entries: readonly BankEntry[];
  readonly errors: readonly BankError[];
  readonly notes: readonly BankNote[];
  readonly opening: Balance | null;
  readonly closing: Balance | null;
};

/** Banks date entries ahead over holidays. One further ahead was read with the wrong date format. */
const AHEAD_DAYS_MAX = 7;
/** The number of rows that one statement inserts. */
const INSERTED = 1_000;

/**
 * Imports a bank statement, completely or not at all. Any error refuses the file and is reported by line and
 * field: a field that cannot be read, an entry that appears twice, or an entry that was imported before.
 * @param dryRun only shows what would be imported
 * @throws Refusal `60` for an unknown account or mapping; `94` for a file that was imported before
 */
export async function importBank(operator: Operator, file: BankFile, dryRun: boolean): Promise<BankReport> {
  const { service, actor } = operator;
  const { db } = service;
  const account = await getBankAccount(operator, file.account);
  const digest = createHash('sha256').update(file.bytes).digest();
  const [known] = await db.query<{ imported_at: Date }>(findFile(digest));
  if (known)
    throw new Refusal('94', {
      message: `this file was imported before, on ${known.imported_at.toISOString()}`,
    });
  const statement = await read(db, file, account);
  const { entries, opening, closing, number } = statement;
  const errors = [...statement.errors, ...(await errorsOf(operator, file, statement))];
  errors.sort((one, other) => one.line - other.line);
  const notes = [...statement.notes, ...(await notesOf(db, account, statement))];
  const { currency, decimals } = account;
  const report = { currency, decimals, entries, errors, notes, opening, closing };
  if (errors.length > 0) return { ...report, state: 'refused' };
  if (dryRun) return { ...report, state: 'checked' };
  await db.transaction(async (tx) => {
    if (number !== null && account.number === null) await rememberNumber(tx, account.name, number);
    const named = { digest, account: file.account, format: file.format, entries: entries.length };
    const [row] = await tx.query<{ id: number }>(
      insertFile({ ...named, opening, closing, by: actor.name, now: service.clock() }),
    );
    for (let at = 0; at < entries.length; at += INSERTED) {
      const some = entries.slice(at, at + INSERTED);
      await tx.query(
        insertEntries(row?.id ?? 0, file.account, {
          references: some.map(({ reference }) => reference),
          days: some.map(({ day }) => day),
          amounts: some.map(({ amountMinor }) => String(amountMinor)),
          descriptions: some.map(({ description }) => description),
        }),
      );
    }
    const after = {
      file: row?.id ?? 0,
      entries: entries.length,
      digest: digest.toString('hex'),
      number: number && maskedAccount(number),
    };
    const touches = [`bank file ${after.file}`];
    await audit(tx, operator, {
      action: 'bank.import',
      subject: `bank account ${file.account}`,
      after,
      touches,
    });
  });
  return { ...report, state: 'imported' };
}

/** Returns the errors that the file alone does not show. */
async function errorsOf(
  { service: { db, clock } }: Operator,
  { account }: BankFile,
  { entries, errors, closing }: Statement,
): Promise<BankError[]> {
  const references = entries.map(({ reference }) => reference);
  const before = await db.query<{ entry_reference: string }>(listKnownReferences(account, references));
  const taken = new Set(before.map(({ entry_reference }) => entry_reference));
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
  { name, number: known, currency, decimals }: AccountRow,
  { entries, opening, closing, number }: Statement,
): Promise<BankNote[]> {
  const notes: BankNote[] = [];
  const note = (rule: BankNote['rule'], message: string, facts: BankNote['facts']) =>
    notes.push({ line: 1, field: 'file', rule, message, ...(facts && { facts }) });
  const text = (minor: bigint) => toSum(currency, { minor, decimals });
  if (number !== null && known === null) {
    const message = `the account is ${number}: statements of another one are refused from now on`;
    note('newNumber', message, { number });
  }
  if (!opening) return notes;
  const [before] = await db.query<Balance>(findClosingBefore(name, closing?.day ?? opening.day));
  if (before && before.minor !== opening.minor) {
    const facts = { opening: text(opening.minor), closing: text(before.minor), day: before.day };
    const message = `the opening balance is ${facts.opening}, and the last closing balance, of ${facts.day}, is ${facts.closing}`;
    note('gap', `${message}: a statement is missing between them`, facts);
  }
  if (!closing) return notes;
  const sum = entries.reduce((total, { amountMinor }) => total + amountMinor, 0n);
  const missing = closing.minor - opening.minor - sum;
  if (missing !== 0n) {
    const facts = {
      opening: text(opening.minor),
      entries: text(sum),
      closing: text(closing.minor),
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
  account: AccountRow,
): Promise<Statement> {
  if (format === 'camt053') return readCamt(bytes, account);
  const [row] = await db.query<{ mapping: Mapping }>(findMapping(mapping ?? ''));
  if (!row)
    throw new Refusal('60', {
      message: 'Not found: there is no such mapping; make it first',
    });
  return readBankCsv(bytes, row.mapping, account);
}
