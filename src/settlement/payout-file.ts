import { createHash } from 'node:crypto';
import Type from 'typebox';
import { audit } from '../audit/audit.ts';
import { accountNumber, isIban, requireIban } from '../bank/iban.ts';
import type { Operator, Service } from '../context.ts';
import { sameHash } from '../credentials.ts';
import { type BrokenCsv, type Cell, CSV_TYPE, type CsvRow, csvText, readCsv } from '../csv.ts';
import type { Queries } from '../db/pool.ts';
import { sql } from '../db/sql.ts';
import { listing } from '../listing.ts';
import { textIn } from '../money.ts';
import { alone, changing, tableOf } from '../operation.ts';
import { MONEY, SEE } from '../principal.ts';
import { invalid } from '../problem.ts';
import { Refusal } from '../refusal.ts';
import {
  checkDay,
  Day,
  FileSchema,
  inSection,
  Line,
  NullableText,
  Text,
  Time,
  Titled,
  toId,
  Word,
} from '../schema.ts';
import { today } from '../zone.ts';
import { latin, type Paid, type PayeeAccount, writePain } from './pain.ts';
import { dueSettlements, getSettlement, type Settlement, SettlementId } from './settlements.ts';
import { digestOfIban, termsOn } from './terms.ts';

/**
 * Payout files for the operator's bank: pain.001.001.09 or CSV. The account numbers come from a file of the
 * operator and are not stored: each must be the account of the merchant's present terms. Each file is
 * recorded with its digest, and a settlement is not paid by two files.
 */

const BIC = /^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$/;

const COLUMNS = ['merchantId', 'name', 'iban', 'bic'];

/**
 * Reads the bank accounts of merchants from a CSV with the columns merchantId, name, iban, bic.
 * @throws Refusal `30` that names the line and the field, but never an account number
 */
export function readAccounts(csv: string): Map<string, PayeeAccount> {
  const wrong = (line: number, message: string) =>
    new Refusal('30', { message: `line ${line} of the accounts: ${message}` });
  const noTable = 'this is not CSV with a row of names and as many fields in each row';
  // What another encoding becomes when it is read as UTF-8.
  if (/[\0\ufffd]/.test(csv)) throw wrong(1, 'the file is not in UTF-8: save it in UTF-8');
  let rows: CsvRow[];
  try {
    rows = readCsv(csv);
  } catch (error) {
    throw wrong((error as BrokenCsv).line, noTable);
  }
  const header = rows.shift()?.record ?? [];
  const twice = COLUMNS.find((name) => header.lastIndexOf(name) > header.indexOf(name));
  if (twice) throw wrong(1, `the column ${twice} appears twice`);
  const accounts = new Map<string, PayeeAccount>();
  for (const { record, info } of rows) {
    if (record.length !== header.length) throw wrong(info.lines, noTable);
    const {
      merchantId = '',
      name = '',
      iban: spaced = '',
      bic = '',
    } = Object.fromEntries(header.map((column, at) => [column, record[at]]));
    const iban = accountNumber(spaced);
    if (!/^[1-9]\d{0,9}$/.test(merchantId)) throw wrong(info.lines, 'merchantId is not the id of a merchant');
    if (accounts.has(merchantId)) throw wrong(info.lines, 'the merchant is named twice');
    if (name === '') throw wrong(info.lines, 'name is missing');
    if (latin(name) === undefined)
      throw wrong(info.lines, 'name has letters that banks do not take: write it in Latin letters');
    if (!isIban(iban))
      throw wrong(info.lines, 'iban is not an IBAN: its check digits are wrong, or its form');
    if (bic !== '' && !BIC.test(bic)) throw wrong(info.lines, 'bic is not a BIC');
    accounts.set(merchantId, { name, iban, bic: bic === '' ? null : bic });
  }
  return accounts;
}

type Wanted = {
  readonly ids: readonly string[];
  readonly format: 'pain001' | 'csv';
  /** By the id of the merchant. */
  readonly accounts: ReadonlyMap<string, PayeeAccount>;
  readonly payer: PayeeAccount;
  /** Why settlements are paid by a second file; null: they are refused. */
  readonly againBecause?: string | null;
};

/**
 * Makes a file that pays settlements: approved ones, and those whose payment was returned. It books nothing.
 * The operator books a payout with `pay` once the bank has paid.
 * @throws Problem; Refusal `30` if a settlement cannot be paid, or if its merchant has no account or another
 *   one than that of its terms; `58` if an earlier file pays it
 */
export async function makePayoutFile(
  operator: Operator,
  wanted: Wanted,
): Promise<{ readonly id: number; readonly content: string }> {
  const { service, actor } = operator;
  const { ids, format, payer, againBecause = null } = wanted;
  const now = service.clock();
  // A payment goes to the account of the present terms: that of the period may be closed.
  const day = await today(service);
  return service.db.transaction(async (tx) => {
    await tx.query(sql`
select id from settlements where id = any (${ids}::int[]) order by id for update`);
    const paid: Paid[] = [];
    for (const id of ids)
      paid.push(await payable(tx, service, await getSettlement(tx, id), { ...wanted, day }));
    if (paid.length === 0)
      throw new Refusal('30', {
        message:
          'no settlement is to be paid, or only those of earlier files, which are named to be paid again',
      });
    const [taken] = await tx.query<{ id: number }>(sql`
select nextval(pg_get_serial_sequence('payout_files', 'id'))::integer as id`);
    if (!taken) throw new Error('no id for a payout file');
    const { id } = taken;
    const content = format === 'csv' ? writeCsv(paid) : writePain(paid, { fileId: id, payer, now, day });
    const digest = createHash('sha256').update(content).digest();
    await tx.query(sql`
insert into payout_files (id, format, digest, again_because, made_by, made_at) overriding system value
values (${id}, ${format}, ${digest}, ${againBecause}, ${actor.name}, ${now})`);
    // It pays them from now on.
    await tx.query(sql`
with named as (
  update settlements set file_id = ${id} where id = any (${ids}::int[]) returning id
)
insert into payout_file_settlements (file_id, settlement_id) select ${id}, n.id from named n`);
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
  if (settlement.payable === 0n) throw wrong('is carried over: nothing is to be paid');
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
    return [number, merchantId, name, iban, bic, { amount: textIn(currency, payable) }, currency, dueOn];
  });
  return csvText([CSV_HEADER, ...rows]);
}

const Format = Word(['pain001', 'csv'], { 'x-labels': { pain001: 'pain.001 (XML)' } });
const MEDIA_TYPES = { pain001: 'application/xml', csv: CSV_TYPE } as const;
const ENDINGS = { pain001: 'xml', csv: 'csv' } as const;
const IBAN_MAX = 50;
const ACCOUNTS_MAX = 1_000_000;
const SETTLEMENTS_MAX = 1_000;
/** Large enough for the accounts and the JSON around them. */
const BODY_MAX_BYTES = 2 * 1024 * 1024;

export const payoutFile = changing({
  name: 'settlement.file',
  title: 'Make a payout file',
  summary: 'Make a file that pays settlements, for your bank; it books nothing',
  description:
    'Account numbers are not stored: they are sent with each request, as CSV with the columns `merchantId`, ' +
    '`name`, `iban`, `bic`, and must be those of the terms. The file is recorded with its SHA-256. A settlement ' +
    'that is in an earlier file is refused, unless it is named with `again` and a reason.',
  path: '/settlements/file',
  input: {
    ...inSection('settlements', {
      settlements: Type.Optional(
        Type.Array(SettlementId, {
          minItems: 1,
          maxItems: SETTLEMENTS_MAX,
          uniqueItems: true,
          description: 'The settlements to pay; left out: all that are due and in no file.',
        }),
      ),
      due: Type.Optional(
        Type.String({
          title: 'Due by',
          ...Day,
          description: 'All that are due by this day; left out: today.',
        }),
      ),
      again: Type.Optional(
        Type.Boolean({
          title: 'Do it again',
          description: 'Pay settlements of an earlier file, which the bank did not execute.',
        }),
      ),
    }),
    ...inSection('file', {
      format: Format,
      accounts: Type.String({
        title: 'Accounts of the merchants',
        minLength: 1,
        maxLength: ACCOUNTS_MAX,
        description:
          'The accounts of the merchants, as CSV with the columns merchantId, name, iban, bic. It is not stored.',
        file: 'utf8',
        examples: ['merchantId,name,iban,bic\n5,Kiosk,DE89370400440532013000,\n'],
      }),
    }),
    ...inSection('payer', {
      payerName: Titled('Payer', Line(70, 'The owner of your account.', 'Operator Ltd')),
      payerIban: Titled('Your IBAN', Line(IBAN_MAX, 'Your account.', 'DE89370400440532013000')),
      payerBic: Type.Optional(
        Type.String({ title: 'Your BIC', pattern: BIC.source, description: 'Its bank.' }),
      ),
    }),
  },
  output: FileSchema,
  files: ['application/xml', 'text/csv'],
  bodyMaxBytes: BODY_MAX_BYTES,
  roles: MONEY,
  approval: alone(
    'It pays only approved settlements, each once, to the accounts of terms that two people approved.',
  ),
  risk: 'step-up',
  async run(caller, { format, accounts: csv, payerName: name, settlements, due, again = false, ...given }) {
    const { db } = caller.service;
    const iban = requireIban(given.payerIban, 'payerIban');
    if (latin(name) === undefined) throw invalid('payerName', 'latin', 'has other letters than Latin ones');
    if (settlements !== undefined && due !== undefined)
      throw invalid('due', 'dependent', 'belongs to a request that names no settlements');
    checkDay(due, 'due');
    const { reason } = caller.actor;
    if (again && settlements === undefined)
      throw invalid('again', 'dependent', 'belongs to a request that names settlements');
    if (again && reason === null) throw invalid('reason', 'required', 'is required with `again`');
    const accounts = readAccounts(csv);
    const ids =
      settlements?.map((id) => String(toId(id, 'settlements'))) ??
      (await dueSettlements(db, due ?? (await today(caller.service))));
    const payer = { name, iban, bic: given.payerBic ?? null };
    const againBecause = again ? reason : null;
    const { id, content } = await makePayoutFile(caller, { ids, format, accounts, payer, againBecause });
    return { name: `payouts-${id}.${ENDINGS[format]}`, mediaType: MEDIA_TYPES[format], content };
  },
});

export const payoutFiles = listing({
  name: 'settlement.files',
  summary: 'List the payout files that were made, newest first',
  description:
    'The files themselves are not stored. The SHA-256 shows whether a file is the one that was made.',
  path: '/payout-files',
  item: Type.Object({
    id: Text,
    madeAt: Time,
    madeBy: Text,
    format: Format,
    settlements: Type.Array(Text, { description: 'The numbers of the settlements that it pays.' }),
    again: NullableText,
    sha256: Titled('SHA-256', Text),
  }),
  columns: ['id', 'madeAt', 'madeBy', 'format', 'settlements', 'sha256'],
  roles: SEE,
  rows: ({ service }, _filters, [before = null], count) =>
    service.readDb.query(sql`
select f.id::text, f.made_at as "madeAt", f.made_by as "madeBy", f.format, array(
    select settlement_number(s.merchant_id, s.year, s.number)
    from payout_file_settlements p join settlements s on s.id = p.settlement_id
    where p.file_id = f.id order by s.id
  ) as settlements, f.again_because as again, encode(f.digest, 'hex') as sha256
from payout_files f where (${before}::integer is null or f.id < ${before})
order by f.id desc limit ${count}`),
});

export const OPERATIONS = tableOf(payoutFile, payoutFiles);
