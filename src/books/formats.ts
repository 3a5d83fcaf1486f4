import { movementOf } from '../ledger/kinds.ts';
import { textIn } from '../money.ts';
import type { Account, ClosedDay, Movement } from './export.rows.ts';
import type { Names } from './reports/report.ts';

/**
 * XML as text: elements with text or children, one line each. Texts are escaped, so none can end its element.
 */

export type Xml = string;

/** Characters that XML cannot contain, not even escaped. */
const FORBIDDEN = /[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;

function escaped(text: string): string {
  return text
    .replace(FORBIDDEN, ' ')
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;');
}

/** Returns an element that contains text. */
export function text(name: string, value: string, attributes: Readonly<Record<string, string>> = {}): Xml {
  return `<${name}${attributesOf(attributes)}>${escaped(value)}</${name}>`;
}

/** Returns an element with child elements. Undefined children are left out. */
export function element(name: string, ...children: readonly (Xml | undefined)[]): Xml {
  return `<${name}>${children.filter((child) => child !== undefined).join('')}</${name}>`;
}

/** Returns the start tag of an element whose end tag is written later. */
export function opening(name: string, attributes: Readonly<Record<string, string>> = {}): Xml {
  return `<${name}${attributesOf(attributes)}>`;
}

function attributesOf(attributes: Readonly<Record<string, string>>): string {
  return Object.entries(attributes)
    .map(([name, value]) => ` ${name}="${escaped(value)}"`)
    .join('');
}

/** Cuts a text to the number of characters that ISO 20022 allows. */
export function cut(value: string, charactersMax: number): string {
  return [...value].slice(0, charactersMax).join('');
}

/**
 * Statements of floats and settlement accounts in the form that banks use (ISO 20022, camt.053.001.08): one
 * for each account and closed day, numbered by day without gaps. A credit increases the merchant's money.
 */

const NAMESPACE = 'urn:iso:std:iso:20022:tech:xsd:camt.053.001.08';
/** The longest text that most fields allow. */
const TEXT_MAX = 35;
const REMITTANCE_MAX = 140;

export function beginCamt([first, last]: readonly [ClosedDay, ClosedDay]): Xml {
  const id = `SCRIP-${compact(first.day)}-${compact(last.day)}`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>\n',
    opening('Document', { xmlns: NAMESPACE }),
    opening('BkToCstmrStmt'),
    element('GrpHdr', text('MsgId', id), text('CreDtTm', last.closedAt.toISOString())),
    '\n',
  ].join('');
}

export const endCamt: Xml = '</BkToCstmrStmt></Document>\n';

/** Returns the start of a statement. `entry` and `endStatement` add the rest. */
export function beginStatement(
  { day, startsAt, endsAt, closedAt, number }: ClosedDay,
  account: Account,
  { openingMinor, closingMinor }: { openingMinor: bigint; closingMinor: bigint },
  names: Names,
): Xml {
  const id = accountId(account);
  return [
    opening('Stmt'),
    text('Id', statementNumber(day, day, account)),
    text('ElctrncSeqNb', String(number)),
    text('CreDtTm', closedAt.toISOString()),
    element('FrToDt', text('FrDtTm', startsAt.toISOString()), text('ToDtTm', endsAt.toISOString())),
    element(
      'Acct',
      element('Id', element('Othr', text('Id', id))),
      text('Ccy', account.currency),
      text('Nm', cut(names.merchants.get(account.merchantId) ?? id, 70)),
    ),
    balance('OPBD', openingMinor, account.currency, day),
    balance('CLBD', closingMinor, account.currency, day),
    '\n',
  ].join('');
}

export const endStatement: Xml = '</Stmt>\n';

/** Returns the number of a statement, such as `20260101-20260131-FLOAT-5-USD`, or `20260101-FLOAT-5-USD`. */
export function statementNumber(firstDay: string, lastDay: string, account: Owned): string {
  const days = [...new Set([firstDay, lastDay])].map(compact);
  return [...days, accountId(account)].join('-');
}

type Owned = Pick<Account, 'kind' | 'merchantId' | 'currency'>;

/** Returns an account id such as `FLOAT-5-USD`. */
function accountId({ kind, merchantId, currency }: Owned): string {
  return `${kind}-${merchantId}-${currency}`;
}

const compact = (day: string) => day.replaceAll('-', '');

function balance(type: string, minor: bigint, currency: string, day: string): Xml {
  return element(
    'Bal',
    element('Tp', element('CdOrPrtry', text('Cd', type))),
    amount(minor, currency),
    direction(minor),
    element('Dt', text('Dt', day)),
  );
}

function amount(minor: bigint, currency: string): Xml {
  return text('Amt', textIn(currency, minor < 0n ? -minor : minor), { Ccy: currency });
}

const direction = (minor: bigint) => text('CdtDbtInd', minor < 0n ? 'DBIT' : 'CRDT');

/** Returns a movement as an entry on the statement of one of its two accounts. */
export function entry(day: string, account: Account, movement: Movement): Xml {
  const { id, kind, amountMinor, currency, bookedAt, reference } = movement;
  const isCredit = movement.credit.kind === account.kind && movement.credit.merchantId === account.merchantId;
  const minor = isCredit ? amountMinor : -amountMinor;
  // A UUID has 32 characters without dashes. With dashes it would be one too long for the field.
  const own = (id ?? '').replaceAll('-', '');
  const isShort = reference !== null && [...reference].length <= TEXT_MAX;
  return `${element(
    'Ntry',
    amount(minor, currency),
    direction(minor),
    movementOf(kind).reverses ? text('RvslInd', 'true') : undefined,
    element('Sts', text('Cd', 'BOOK')),
    element('BookgDt', text('DtTm', (bookedAt as Date).toISOString())),
    element('ValDt', text('Dt', day)),
    text('AcctSvcrRef', own),
    element('BkTxCd', element('Prtry', text('Cd', kind))),
    element(
      'NtryDtls',
      element(
        'TxDtls',
        element(
          'Refs',
          text('AcctSvcrRef', own),
          text('EndToEndId', isShort ? (reference as string) : 'NOTPROVIDED'),
        ),
        reference !== null && !isShort
          ? element('RmtInf', text('Ustrd', cut(reference, REMITTANCE_MAX)))
          : undefined,
      ),
    ),
  )}\n`;
}
