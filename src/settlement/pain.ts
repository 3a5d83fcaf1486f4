import { cut, element, opening, text, type Xml } from '../books/formats.ts';
import { moneyIn, textIn, toText } from '../money.ts';
import { DAY_MS, isoDay } from '../time.ts';
import type { Settlement } from './settlements.ts';

/** Payment files as banks take them: pain.001.001.09 (ISO 20022). */

export type PayeeAccount = { readonly name: string; readonly iban: string; readonly bic: string | null };

export type Paid = { readonly settlement: Settlement; readonly account: PayeeAccount };

const NAME_MAX = 70;
const NAMESPACE = 'urn:iso:std:iso:20022:tech:xsd:pain.001.001.09';

/** The letters that do not decompose into a Latin letter and an accent. */
const LETTERS: Readonly<Record<string, string>> = {
  ...{ ß: 'ss', ẞ: 'SS', æ: 'ae', Æ: 'AE', œ: 'oe', Œ: 'OE', ø: 'o', Ø: 'O', đ: 'd', Đ: 'D', ð: 'd', Ð: 'D' },
  ...{ ł: 'l', Ł: 'L', þ: 'th', Þ: 'TH', ħ: 'h', Ħ: 'H', ı: 'i', '&': '+' },
};
const TAKEN = /^[A-Za-z0-9/?:().,'+ -]$/;

/**
 * Returns a text in the characters that every bank takes: Latin letters, digits and `/-?:().,'+`. Accents are
 * left out, other signs become a point.
 * @returns undefined if it has other letters
 */
export function latin(value: string): string | undefined {
  const plain = [...value.normalize('NFKD').replace(/\p{M}/gu, '')].map((each) => LETTERS[each] ?? each);
  if (plain.some((each) => /[\p{L}\p{N}]/u.test(each) && !/^[A-Za-z0-9]+$/.test(each))) return undefined;
  return plain.map((each) => (each.length > 1 || TAKEN.test(each) ? each : '.')).join('');
}

const nameOf = (name: string) => text('Nm', cut(latin(name) ?? '', NAME_MAX));

/** The countries of SEPA, by the first letters of their IBANs. */
const SEPA = new Set(
  (
    'AD AL AT BE BG CH CY CZ DE DK EE ES FI FR GB GI GR HR HU IE IS IT LI LT LU LV MC MD ME MK MT NL NO PL ' +
    'PT RO RS SE SI SK SM VA'
  ).split(' '),
);

const isSepa = ({ settlement, account }: Paid, payer: PayeeAccount) =>
  settlement.currency === 'EUR' && [account, payer].every(({ iban }) => SEPA.has(iban.slice(0, 2)));

/**
 * Writes a payment file. A bank refuses a second file of the same id.
 * @param day the present day, before which nothing can be paid
 */
export function writePain(
  paid: readonly Paid[],
  { fileId, payer, now, day }: { fileId: number; payer: PayeeAccount; now: Date; day: string },
): Xml {
  const stamp = now.toISOString();
  const id = `SCRIP-${day.replaceAll('-', '')}-${fileId}`;
  const dayOf = ({ settlement: { dueOn, currency } }: Paid) => bankDay(dueOn < day ? day : dueOn, currency);
  const groups = Map.groupBy(
    paid,
    (each) => `${each.settlement.currency} ${dayOf(each)} ${isSepa(each, payer)}`,
  );
  const blocks = [...groups.values()].map((group, index) => {
    const [first] = group as [Paid];
    const own = { id: `${id}-${index + 1}`, day: dayOf(first), isSepa: isSepa(first, payer) };
    return payments(group, { ...own, payer, fileId });
  });
  const header = element(
    'GrpHdr',
    text('MsgId', id),
    text('CreDtTm', stamp),
    text('NbOfTxs', String(paid.length)),
    text('CtrlSum', sumOf(paid)),
    element('InitgPty', nameOf(payer.name)),
  );
  return [
    '<?xml version="1.0" encoding="UTF-8"?>\n',
    opening('Document', { xmlns: NAMESPACE }),
    element('CstmrCdtTrfInitn', header, ...blocks),
    '</Document>\n',
  ].join('');
}

/** Returns the sum of amounts, whatever their currencies, as the format wants it. */
function sumOf(paid: readonly Paid[]): string {
  const amounts = paid.map(({ settlement: { currency, payable } }) => moneyIn(currency, payable));
  const decimals = Math.max(...amounts.map((each) => each.decimals));
  const minor = amounts.reduce((sum, each) => sum + each.minor * 10n ** BigInt(decimals - each.decimals), 0n);
  return toText({ minor, decimals });
}

type Block = { id: string; day: string; isSepa: boolean; payer: PayeeAccount; fileId: number };

/** Returns the payments of one currency and day. */
function payments(group: readonly Paid[], block: Block): Xml {
  const { id, day, payer } = block;
  return element(
    'PmtInf',
    text('PmtInfId', id),
    text('PmtMtd', 'TRF'),
    // Otherwise many banks debit the sum of a file as one entry, in which no payment is found.
    text('BtchBookg', 'false'),
    text('NbOfTxs', String(group.length)),
    text('CtrlSum', sumOf(group)),
    block.isSepa ? element('PmtTpInf', element('SvcLvl', text('Cd', 'SEPA'))) : undefined,
    element('ReqdExctnDt', text('Dt', day)),
    element('Dbtr', nameOf(payer.name)),
    element('DbtrAcct', element('Id', text('IBAN', payer.iban))),
    element('DbtrAgt', institution(payer.bic)),
    text('ChrgBr', block.isSepa ? 'SLEV' : 'SHAR'),
    ...group.map((each) => payment(each, block.fileId)),
  );
}

const institution = (bic: string | null) =>
  element('FinInstnId', bic === null ? element('Othr', text('Id', 'NOTPROVIDED')) : text('BICFI', bic));

/** Returns a payment. Its id has the number of the file too, so a second attempt has another id. */
function payment({ settlement, account }: Paid, fileId: number): Xml {
  const { number, payable, currency, firstDay, lastDay } = settlement;
  return element(
    'CdtTrfTxInf',
    element('PmtId', text('EndToEndId', `${number}-${fileId}`)),
    element('Amt', text('InstdAmt', textIn(currency, payable), { Ccy: currency })),
    account.bic === null ? undefined : element('CdtrAgt', institution(account.bic)),
    element('Cdtr', nameOf(account.name)),
    element('CdtrAcct', element('Id', text('IBAN', account.iban))),
    element('RmtInf', text('Ustrd', `Settlement ${number} ${firstDay} to ${lastDay}`)),
  );
}

/**
 * The days on which banks execute payments: no Saturday and no Sunday, and in euro none of the closing days
 * of TARGET, the system in which the banks of the euro settle.
 */

const FIXED_CLOSING_DAYS: readonly string[] = ['01-01', '05-01', '12-25', '12-26'];
/** Good Friday and Easter Monday, in days from Easter Sunday. */
const EASTER_CLOSING_DAYS: readonly number[] = [-2, 1];

/** Returns the first bank day from a day on, such as `2026-03-02`. */
export function bankDay(day: string, currency: string): string {
  let time = Date.parse(`${day}T00:00:00Z`);
  while (isClosed(new Date(time), currency)) time += DAY_MS;
  return isoDay(time);
}

function isClosed(date: Date, currency: string): boolean {
  if (date.getUTCDay() % 6 === 0) return true;
  if (currency !== 'EUR') return false;
  const day = isoDay(date.getTime());
  const easter = easterOf(date.getUTCFullYear());
  return (
    FIXED_CLOSING_DAYS.includes(day.slice(5)) ||
    EASTER_CLOSING_DAYS.some((days) => isoDay(easter + days * DAY_MS) === day)
  );
}

/** Returns the time of Easter Sunday, by the algorithm of Gauss for the years 1900 to 2099. */
function easterOf(year: number): number {
  const moon = (19 * (year % 19) + 24) % 30;
  const week = (2 * (year % 4) + 4 * (year % 7) + 6 * moon + 5) % 7;
  const days = 22 + moon + week;
  const isLate = (moon === 29 && week === 6) || (moon === 28 && week === 6 && year % 19 > 10);
  return Date.UTC(year, 2, isLate ? days - 7 : days);
}
