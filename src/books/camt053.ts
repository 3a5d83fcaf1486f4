import { type Account, amountText, type ClosedDay, type Movement } from './export.rows.ts';
import type { Names } from './reports/names.ts';
import { cut, element, opening, text, type Xml } from './xml.ts';

/**
 * Statements of floats and settlement accounts as a bank would send them (ISO 20022, camt.053.001.08):
 * one for each account and closed day, numbered by the day without a gap. A credit is what the merchant
 * has more.
 */

const NAMESPACE = 'urn:iso:std:iso:20022:tech:xsd:camt.053.001.08';
/** The longest text of most fields. */
const TEXT_MAX = 35;
const REMITTANCE_MAX = 140;

/** What corrects an earlier movement. */
const REVERSALS = new Set([
  'REDEMPTION_REVERSAL',
  'HOLD_RELEASE',
  'RELEASE',
  'REINSTATEMENT',
  'CANCELLATION',
  'FLOAT_CORRECTION',
  'FEE_REVERSAL',
  'FEE_VAT_REVERSAL',
  'PAYOUT_RETURN',
]);

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

/** The start of a statement, which `entry` and `endStatement` go on with. */
export function beginStatement(
  { day, startsAt, endsAt, closedAt, number }: ClosedDay,
  account: Account,
  { openingMinor, closingMinor }: { openingMinor: bigint; closingMinor: bigint },
  names: Names,
): Xml {
  const id = accountId(account);
  return [
    opening('Stmt'),
    text('Id', `${compact(day)}-${id}`),
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

/** `FLOAT-5-USD`. */
function accountId({ kind, merchantId, currency }: Account): string {
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
  return text('Amt', amountText(minor < 0n ? -minor : minor, currency), { Ccy: currency });
}

const direction = (minor: bigint) => text('CdtDbtInd', minor < 0n ? 'DBIT' : 'CRDT');

/** A movement as the statement of one of its two accounts shows it. */
export function entry(day: string, account: Account, movement: Movement): Xml {
  const { id, kind, amountMinor, currency, occurredAt, reference } = movement;
  const isCredit = movement.credit.kind === account.kind && movement.credit.merchantId === account.merchantId;
  const minor = isCredit ? amountMinor : -amountMinor;
  // A UUID without its dashes has 32 characters; with them, one too many.
  const own = (id ?? '').replaceAll('-', '');
  const isShort = reference !== null && [...reference].length <= TEXT_MAX;
  return `${element(
    'Ntry',
    amount(minor, currency),
    direction(minor),
    REVERSALS.has(kind) ? text('RvslInd', 'true') : undefined,
    element('Sts', text('Cd', 'BOOK')),
    element('BookgDt', text('DtTm', (occurredAt as Date).toISOString())),
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
