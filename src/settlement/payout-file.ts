import { createHash } from 'node:crypto';
import { parse } from 'csv-parse/sync';
import { audit } from '../audit/audit.ts';
import { accountNumber, isIban } from '../bank/iban.ts';
import { type Cell, csvText } from '../books/formats.ts';
import type { Operator, Service } from '../context.ts';
import { sameHash } from '../credentials.ts';
import type { Queries } from '../db/pool.ts';
import { today } from '../ledger/zone.ts';
import { toText } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { latin, type Paid, writePain } from './pain.ts';
import {
  insertFileSettlements,
  insertPayoutFile,
  listPayoutFiles,
  type NewPayoutFile,
  type PayoutFileRow,
  takeFileId,
} from './payout-file.queries.ts';
import { lockSettlements } from './queries.ts';
import { getSettlement, numberText, type Settlement } from './settlements.ts';
import { digestOfIban, termsOn } from './terms.ts';

/**
 * Payout files for the operator's bank: pain.001.001.09 or CSV. The account numbers come from a file of the
 * operator and are not stored: each must be the account of the merchant's present terms. Each file is
 * recorded with its digest, and a settlement is not paid by two files.
 */

export type PayeeAccount = { readonly name: string; readonly iban: string; readonly bic: string | null };

/**
 * Reads the bank accounts of merchants from a CSV with the columns merchantId, name, iban, bic.
 * @throws Refusal `30` that names the line and the field, but never an account number
 */
export function readAccounts(csv: string): Map<number, PayeeAccount> {
  const wrong = (line: number, message: string) =>
    new Refusal('30', { message: `line ${line} of the accounts: ${message}` });
  let records: { record: Record<string, string>; info: { lines: number } }[];
  try {
    records = parse(csv, { bom: true, columns: true, trim: true, skip_empty_lines: true, info: true });
  } catch (error) {
    throw wrong(
      Number((error as { lines?: number }).lines ?? 1),
      'this is not CSV with a row of names and as many fields in each row',
    );
  }
  const accounts = new Map<number, PayeeAccount>();
  for (const { record, info } of records) {
    const { merchantId = '', name = '', iban: spaced = '', bic = '' } = record;
    const iban = accountNumber(spaced);
    if (!/^[1-9]\d{0,9}$/.test(merchantId)) throw wrong(info.lines, 'merchantId is not the id of a merchant');
    if (accounts.has(Number(merchantId))) throw wrong(info.lines, 'the merchant is named twice');
    if (name === '') throw wrong(info.lines, 'name is missing');
    if (latin(name) === undefined)
      throw wrong(info.lines, 'name has letters that banks do not take: write it in Latin letters');
    if (!isIban(iban))
      throw wrong(info.lines, 'iban is not an IBAN: its check digits are wrong, or its form');
    if (bic !== '' && !/^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$/.test(bic))
      throw wrong(info.lines, 'bic is not a BIC');
    accounts.set(Number(merchantId), { name, iban, bic: bic === '' ? null : bic });
  }
  return accounts;
}

type Wanted = {
  readonly ids: readonly number[];
  readonly format: 'pain001' | 'csv';
  readonly accounts: ReadonlyMap<number, PayeeAccount>;
  readonly payer: PayeeAccount;
  /** Why settlements are paid by a second file; null: they are refused. */
  readonly againBecause?: string | null;
};

export type MadeFile = { readonly id: number; readonly content: string };

/**
 * Makes a file that pays settlements: approved ones, and those whose payment was returned. It books nothing.
 * The operator books a payout with `pay` once the bank has paid.
 * @throws Refusal `60`; `30` if a settlement cannot be paid, or if its merchant has no account or another one
 *   than that of its terms; `58` if an earlier file pays it
 */
export async function makePayoutFile(operator: Operator, wanted: Wanted): Promise<MadeFile> {
  const { service, actor } = operator;
  const { ids, format, payer, againBecause = null } = wanted;
  const now = service.clock();
  // A payment goes to the account of the present terms: that of the period may be closed.
  const day = await today(service);
  return service.db.transaction(async (tx) => {
    await tx.query(lockSettlements(ids));
    const paid: Paid[] = [];
    for (const id of ids)
      paid.push(await payable(tx, service, await getSettlement(tx, id), { ...wanted, day }));
    if (paid.length === 0)
      throw new Refusal('30', {
        message:
          'no settlement is to be paid, or only those of earlier files, which are named to be paid again',
      });
    const [taken] = await tx.query<{ id: number }>(takeFileId);
    if (!taken) throw new Error('no id for a payout file');
    const { id } = taken;
    const content = format === 'csv' ? writeCsv(paid) : writePain(paid, { fileId: id, payer, now, day });
    const digest = createHash('sha256').update(content).digest();
    const file: NewPayoutFile = { id, format, digest, againBecause, by: actor.name, now, settlementIds: ids };
    await tx.query(insertPayoutFile(file));
    await tx.query(insertFileSettlements(file));
    const numbers = paid.map(({ settlement }) => settlement.number);
    await audit(tx, operator, {
      action: 'settlement.file',
      subject: `payout file ${id}`,
      after: { format, numbers, sha256: digest.toString('hex') },
      touches: ids.map((each) => `settlement ${each}`),
    });
    return { id, content };
  });
}

/** Returns a settlement with the account that is paid. @throws Refusal as `makePayoutFile` does */
async function payable(
  tx: Queries,
  service: Service,
  settlement: Settlement,
  { accounts, againBecause, day }: Wanted & { readonly day: string },
): Promise<Paid> {
  const { id, merchantId, state, fileId } = settlement;
  const wrong = (why: string) => new Refusal('30', { message: `settlement ${id} ${why}` });
  if (state !== 'APPROVED' && state !== 'RETURNED')
    throw wrong(`is ${state}: only APPROVED and RETURNED ones are to be paid`);
  if (settlement.payable.minor === 0n) throw wrong('is carried over: nothing is to be paid');
  if (fileId !== null && !againBecause)
    throw new Refusal('58', {
      message:
        `settlement ${id} is in payout file ${fileId}: a second file pays it twice, unless the bank never ` +
        'executed the first one; then ask again, with the reason',
    });
  const account = accounts.get(merchantId);
  if (!account) throw wrong(`belongs to merchant ${merchantId}, which the accounts do not name`);
  const digest = (await termsOn(tx, merchantId, day))?.payeeDigest;
  if (!digest) throw wrong(`belongs to merchant ${merchantId}, whose terms name no account`);
  if (!sameHash(digest, digestOfIban(service, account.iban)))
    throw wrong(`belongs to merchant ${merchantId}, whose terms name another account`);
  return { settlement, account };
}

const CSV_HEADER = ['settlement', 'merchantId', 'name', 'iban', 'bic', 'amount', 'currency', 'dueOn'];

function writeCsv(paid: readonly Paid[]): string {
  const rows = paid.map(({ settlement, account }): Cell[] => {
    const { number, merchantId, payable, currency, dueOn } = settlement;
    const { name, iban, bic } = account;
    return [number, merchantId, name, iban, bic, { amount: toText(payable) }, currency, dueOn];
  });
  return csvText([CSV_HEADER, ...rows], 'standard');
}

export type PayoutFile = Omit<PayoutFileRow, 'settlements'> & {
  /** The numbers of the settlements that it pays. */
  readonly settlements: readonly string[];
};

/**
 * Returns a page of payout files, newest first.
 * @param before the page begins before this id; null: the first page
 */
export async function pageOfFiles(db: Queries, before: number | null, count: number): Promise<PayoutFile[]> {
  return (await db.query<PayoutFileRow>(listPayoutFiles(before, count))).map((row) => ({
    ...row,
    settlements: row.settlements.map(({ merchantId, year, number }) => numberText(merchantId, year, number)),
  }));
}
