import { createHash } from 'node:crypto';
import { audit } from '../audit/audit.ts';
import type { Operator } from '../context.ts';
import type { Queries } from '../db/pool.ts';
import { toSum } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { DAY_MS, isoDay } from '../time.ts';
import {
  type AccountRow,
  findBankAccount,
  findFile,
  findMapping,
  insertEntries,
  insertFile,
  listKnownReferences,
  upsertBankAccount,
  upsertMapping,
} from './queries.ts';
import { type Mapping, readBankCsv, readCamt } from './read.ts';
import type { BankEntry, BankError, Statement } from './statement.ts';

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
  readonly closing: Statement['closing'];
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
  const account = await getBankAccount(db, file.account);
  const digest = createHash('sha256').update(file.bytes).digest();
  const [known] = await db.query<{ imported_at: Date }>(findFile(digest));
  if (known)
    throw new Refusal('94', {
      message: `this file was imported before, on ${known.imported_at.toISOString()}`,
    });
  const { entries, errors, closing } = await read(db, file, account);
  const references = entries.map(({ reference }) => reference);
  const before = await db.query<{ entry_reference: string }>(listKnownReferences(file.account, references));
  const taken = new Set(before.map(({ entry_reference }) => entry_reference));
  const twice = entries
    .filter(({ reference }) => taken.has(reference))
    .map(({ line }) => wrong(line, 'reference', 'imported', 'this entry was imported before'));
  const last = isoDay(service.clock().getTime() + AHEAD_DAYS_MAX * DAY_MS);
  const future = entries
    .filter(({ day }) => day > last)
    .map(({ line, day }) => wrong(line, 'date', 'maximum', `${day} is in the future`));
  // On a quiet day, a statement has only its balances.
  const empty =
    entries.length + errors.length === 0 && !closing
      ? [wrong(1, 'file', 'empty', 'the file contains no entry')]
      : [];
  const all = [...errors, ...twice, ...future, ...empty].sort((one, other) => one.line - other.line);
  const { currency, decimals } = account;
  const report = { currency, decimals, entries, errors: all, closing };
  if (all.length > 0) return { ...report, state: 'refused' };
  if (dryRun) return { ...report, state: 'checked' };
  await db.transaction(async (tx) => {
    const named = { digest, account: file.account, format: file.format, entries: entries.length };
    const end = { closingMinor: closing?.minor ?? null, closingOn: closing?.day ?? null };
    const [row] = await tx.query<{ id: number }>(
      insertFile({ ...named, ...end, by: actor.name, now: service.clock() }),
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
    const after = { file: row?.id ?? 0, entries: entries.length, digest: digest.toString('hex') };
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

/** Returns a bank account. @throws Refusal `60` */
async function getBankAccount(db: Queries, name: string): Promise<AccountRow> {
  const [account] = await db.query<AccountRow>(findBankAccount(name));
  if (!account)
    throw new Refusal('60', {
      message: 'Not found: there is no such bank account; make it first',
    });
  return account;
}

/**
 * Makes a bank account, or changes how much of its money is the operator's own.
 * @throws Refusal `94` for another currency
 */
export async function setBankAccount(
  operator: Operator,
  {
    name,
    currency,
    decimals,
    ownMinor,
  }: { name: string; currency: string; decimals: number; ownMinor: bigint },
): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    const [set] = await tx.query(upsertBankAccount(name, currency, decimals, ownMinor));
    if (!set) throw new Refusal('94', { message: 'the account is in another currency' });
    const after = { currency, own: toSum(currency, { minor: ownMinor, decimals }) };
    await audit(tx, operator, { action: 'bank.account', subject: `bank account ${name}`, after });
  });
}

/** Saves how the columns of a bank's CSV are read. */
export async function saveMapping(operator: Operator, name: string, mapping: Mapping): Promise<void> {
  await operator.service.db.transaction(async (tx) => {
    await tx.query(upsertMapping(name, JSON.stringify(mapping)));
    const columns = Object.entries(mapping).map(([field, column]) => `${field}: ${column}`);
    await audit(tx, operator, {
      action: 'bank.mapping',
      subject: `bank mapping ${name}`,
      after: { columns },
    });
  });
}
