import { parse } from 'csv-parse/sync';
import { audit } from '../audit/audit.ts';
import { isIban } from '../bank/iban.ts';
import { type Cell, csvText, cut, element, opening, text, type Xml } from '../books/formats.ts';
import type { Operator } from '../context.ts';
import { today } from '../ledger/zone.ts';
import { toText } from '../money.ts';
import { Refusal } from '../refusal.ts';
import type { Settlement } from './settlements.ts';
import { termsOn } from './terms.ts';

/**
 * Payout files for the operator's bank: pain.001.001.09 or CSV. The account numbers come from a file of the
 * operator and are not stored. The last four characters must match the merchant's present terms.
 */

export type PayeeAccount = { readonly name: string; readonly iban: string; readonly bic: string | null };
export type Payer = PayeeAccount;

const NAME_MAX = 70;

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
    const iban = spaced.replaceAll(' ', '').toUpperCase();
    if (!/^[1-9]\d{0,9}$/.test(merchantId)) throw wrong(info.lines, 'merchantId is not the id of a merchant');
    if (accounts.has(Number(merchantId))) throw wrong(info.lines, 'the merchant is named twice');
    if (name === '') throw wrong(info.lines, 'name is missing');
    if (!isIban(iban))
      throw wrong(info.lines, 'iban is not an IBAN: its check digits are wrong, or its form');
    if (bic !== '' && !/^[A-Z0-9]{4}[A-Z]{2}[A-Z0-9]{2}([A-Z0-9]{3})?$/.test(bic))
      throw wrong(info.lines, 'bic is not a BIC');
    accounts.set(Number(merchantId), { name, iban, bic: bic === '' ? null : bic });
  }
  return accounts;
}

type Paid = { readonly settlement: Settlement; readonly account: PayeeAccount };

/**
 * Makes a file that pays settlements: approved ones, and those whose payment was returned. It books nothing.
 * The operator books a payout with `pay` once the bank has paid.
 * @throws Refusal `30` if a settlement cannot be paid, or if its merchant has no account or a different one
 *   than its terms say
 */
export async function makePayoutFile(
  operator: Operator,
  settlements: readonly Settlement[],
  {
    format,
    accounts,
    payer,
  }: { format: 'pain001' | 'csv'; accounts: ReadonlyMap<number, PayeeAccount>; payer: Payer },
): Promise<string> {
  const { service } = operator;
  const now = service.clock();
  // A payment goes to the account of the present terms: that of the period may be closed.
  const day = await today(service);
  const paid: Paid[] = [];
  for (const settlement of settlements) {
    const { id, merchantId, state, payable } = settlement;
    const wrong = (why: string) => new Refusal('30', { message: `settlement ${id} ${why}` });
    if (state !== 'APPROVED' && state !== 'RETURNED')
      throw wrong(`is ${state}: only APPROVED and RETURNED ones are to be paid`);
    if (payable.minor === 0n) throw wrong('is carried over: nothing is to be paid');
    const account = accounts.get(merchantId);
    if (!account) throw wrong(`belongs to merchant ${merchantId}, which the accounts do not name`);
    const terms = await termsOn(service.db, merchantId, day);
    if (terms?.payeeLast4 && !account.iban.endsWith(terms.payeeLast4))
      throw wrong(
        `belongs to merchant ${merchantId}, whose account ends with other characters than its terms say`,
      );
    paid.push({ settlement, account });
  }
  if (paid.length === 0) throw new Refusal('30', { message: 'no settlement is to be paid' });
  const numbers = paid.map(({ settlement }) => settlement.number);
  await service.db.transaction((tx) =>
    audit(tx, operator, { action: 'settlement.file', subject: 'settlements', after: { format, numbers } }),
  );
  return format === 'csv' ? writeCsv(paid) : writePain(paid, payer, now, day);
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

const NAMESPACE = 'urn:iso:std:iso:20022:tech:xsd:pain.001.001.09';

/** @param day the present day, before which nothing can be paid */
function writePain(paid: readonly Paid[], payer: Payer, now: Date, day: string): Xml {
  const stamp = now.toISOString();
  const id = `SCRIP-${stamp.replace(/\D/g, '')}`;
  const groups = new Map<string, Paid[]>();
  for (const each of paid) {
    const key = `${each.settlement.currency} ${each.settlement.dueOn}`;
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  const blocks = [...groups.values()].map((group, index) =>
    payments(group, payer, `${id}-${index + 1}`, day),
  );
  const header = element(
    'GrpHdr',
    text('MsgId', id),
    text('CreDtTm', stamp),
    text('NbOfTxs', String(paid.length)),
    element('InitgPty', text('Nm', cut(payer.name, NAME_MAX))),
  );
  return [
    '<?xml version="1.0" encoding="UTF-8"?>\n',
    opening('Document', { xmlns: NAMESPACE }),
    element('CstmrCdtTrfInitn', header, ...blocks),
    '</Document>\n',
  ].join('');
}

/** Returns the payments of one currency and day. A day in the past is replaced by today. */
function payments(group: readonly Paid[], payer: Payer, id: string, day: string): Xml {
  const [{ settlement: first }] = group as [Paid];
  const sum = group.reduce((total, { settlement }) => total + settlement.payable.minor, 0n);
  return element(
    'PmtInf',
    text('PmtInfId', id),
    text('PmtMtd', 'TRF'),
    text('NbOfTxs', String(group.length)),
    text('CtrlSum', toText({ minor: sum, decimals: first.payable.decimals })),
    element('ReqdExctnDt', text('Dt', first.dueOn < day ? day : first.dueOn)),
    element('Dbtr', text('Nm', cut(payer.name, NAME_MAX))),
    element('DbtrAcct', element('Id', text('IBAN', payer.iban))),
    element('DbtrAgt', institution(payer.bic)),
    ...group.map(payment),
  );
}

const institution = (bic: string | null) =>
  element('FinInstnId', bic === null ? element('Othr', text('Id', 'NOTPROVIDED')) : text('BICFI', bic));

function payment({ settlement, account }: Paid): Xml {
  const { number, payable, currency, firstDay, lastDay } = settlement;
  return element(
    'CdtTrfTxInf',
    element('PmtId', text('EndToEndId', number ?? '')),
    element('Amt', text('InstdAmt', toText(payable), { Ccy: currency })),
    account.bic === null ? undefined : element('CdtrAgt', institution(account.bic)),
    element('Cdtr', text('Nm', cut(account.name, NAME_MAX))),
    element('CdtrAcct', element('Id', text('IBAN', account.iban))),
    element('RmtInf', text('Ustrd', `Settlement ${number} ${firstDay} to ${lastDay}`)),
  );
}
