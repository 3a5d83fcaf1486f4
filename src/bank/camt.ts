import { parsePlainDecimal } from '../money.ts';
import { readDay } from './csv.ts';
import { accountNumber } from './iban.ts';
import {
  type Account,
  type Balance,
  type BankEntry,
  Collected,
  describe,
  referenceOf,
  type Statement,
} from './statement.ts';
import { decodeXml, type Element, readXml, XmlError } from './xml.ts';

/**
 * Statements of a bank in camt.053, of any version. Entries that are not booked are left out. `line` counts
 * the entries.
 */

/**
 * Reads the statements of an account. Those of other accounts are left out with a note, but a file without a
 * statement of the account is refused. If the number of the account is not known yet, all statements must be
 * of one account.
 */
export function readCamt(bytes: Buffer, account: Account): Statement {
  const collected = new Collected();
  let found: Element[];
  try {
    const decoded = decodeXml(bytes);
    const document = /^\s*</.test(decoded) ? readXml(decoded) : undefined;
    const report = document?.name === 'Document' ? child(document, 'BkToCstmrStmt') : undefined;
    if (!report)
      return collected.refused(1, 'camt053', 'this is not a statement in camt.053 (Document/BkToCstmrStmt)');
    found = list(report, 'Stmt');
  } catch (error) {
    if (!(error instanceof XmlError)) throw error;
    return collected.refused(error.line, 'xml', `cannot be read as XML: ${error.message}`);
  }
  const numbers = [...new Set(found.map(accountOf).filter((number) => number !== null))];
  if (account.number === null && numbers.length > 1)
    return collected.refused(
      1,
      'accounts',
      `has statements of several accounts, ${numbers.join(', ')}: give the bank account its number first`,
      { numbers: numbers.join(', ') },
    );
  const own = new Set(found.filter((statement) => isOf(statement, account)));
  if (own.size === 0 && found.length > 0)
    return collected.refused(1, 'account', `is of another account: ${found.map(nameOf).join(', ')}`, {
      number: found.map(nameOf).join(', '),
    });
  let line = 0;
  for (const statement of found) {
    if (!own.has(statement)) {
      const number = nameOf(statement);
      collected.note(line + 1, 'file', 'otherAccount', `left out: a statement of ${number}`, { number });
    }
    for (const [index, each] of list(statement, 'Ntry').entries()) {
      line++;
      if (!own.has(statement) || status(each) !== 'BOOK') continue;
      const entry = readEntry(each, line, account, collected);
      if (entry)
        collected.add({ ...entry, reference: entry.reference || placeOf(statement, each, index, entry) });
    }
  }
  return collected.statement({
    ...endsOf([...own], account),
    number: numbers.find((each) => isNumberOf(each, account)) ?? null,
  });
}

const isNumberOf = (number: string, account: Account) => account.number === null || number === account.number;

function isOf(statement: Element, account: Account): boolean {
  const currency = text(statement, 'Acct', 'Ccy');
  const number = accountOf(statement);
  return (
    (currency === undefined || currency === account.currency) &&
    (number === null || isNumberOf(number, account))
  );
}

/** Returns the IBAN or another number of the account of a statement. */
function accountOf(statement: Element): string | null {
  const number = text(statement, 'Acct', 'Id', 'IBAN') ?? text(statement, 'Acct', 'Id', 'Othr', 'Id');
  return number === undefined ? null : accountNumber(number);
}

const nameOf = (statement: Element) =>
  [accountOf(statement), text(statement, 'Acct', 'Ccy')].filter(Boolean).join(' in ') || 'no account';

/**
 * Returns a reference for an entry without one of its own: the place of the entry in its statement. Numbers
 * of entries begin again in each statement, and some banks begin those of statements again each year. Empty
 * if the statement has no number.
 */
function placeOf(statement: Element, each: Element, index: number, { day }: BankEntry): string {
  const id = text(statement, 'Id') ?? text(statement, 'ElctrncSeqNb') ?? text(statement, 'LglSeqNb');
  const place = referenceOf(text(each, 'NtryRef')) ?? `#${index + 1}`;
  return id === undefined ? '' : `${day} ${id} ${place}`;
}

/** Returns the first opening balance and the last closing balance. */
function endsOf(statements: readonly Element[], account: Account) {
  let opening: Balance | null = null;
  let closing: Balance | null = null;
  for (const statement of statements) {
    const start = balanceOf(statement, ['OPBD', 'PRCD'], account);
    if (start && (!opening || start.day < opening.day)) opening = start;
    const end = balanceOf(statement, ['CLBD'], account);
    if (end && (!closing || closing.day <= end.day)) closing = end;
  }
  return { opening, closing };
}

function balanceOf(statement: Element, codes: readonly string[], account: Account): Balance | undefined {
  const found = list(statement, 'Bal').find((each) =>
    codes.includes(text(each, 'Tp', 'CdOrPrtry', 'Cd') ?? ''),
  );
  const amount = found && signedAmount(found, account);
  const day = found && dayOf(child(found, 'Dt'));
  return amount === undefined || !day ? undefined : { day, amount };
}

function readEntry(
  each: Element,
  line: number,
  account: Account,
  collected: Collected,
): BankEntry | undefined {
  const amount = signedAmount(each, account);
  if (amount === undefined) {
    const what = `is not an amount in ${account.currency}, has a sign, or CdtDbtInd is missing`;
    collected.wrong(line, 'Amt', 'money', what);
    return undefined;
  }
  const day = dayOf(child(each, 'BookgDt'));
  if (!day) {
    collected.wrong(line, 'BookgDt', 'day', 'is missing, or no day');
    return undefined;
  }
  const details = list(each, 'NtryDtls').flatMap((some) => list(some, 'TxDtls'));
  const [only] = details.length === 1 ? details : [];
  const reference =
    referenceOf(text(each, 'AcctSvcrRef')) ?? referenceOf(only && text(only, 'Refs', 'AcctSvcrRef')) ?? '';
  const texts = details.flatMap((some) => [text(some, 'Refs', 'EndToEndId'), ...remittanceOf(some)]);
  const description = describe([...texts, text(each, 'AddtlNtryInf')]);
  return { line, day, reference, description, amount };
}

/** Returns the texts of a payment: structured references and free text. */
function remittanceOf(details: Element): (string | undefined)[] {
  const information = child(details, 'RmtInf');
  if (!information) return [];
  const structured = list(information, 'Strd').flatMap((each) => [
    text(each, 'CdtrRefInf', 'Ref'),
    ...list(each, 'RfrdDocInf').map((document) => text(document, 'Nb')),
    ...list(each, 'AddtlRmtInf').map((some) => some.text.trim()),
  ]);
  return [...structured, ...list(information, 'Ustrd').map((some) => some.text.trim())];
}

const child = ({ children }: Element, name: string) => children.find((each) => each.name === name);
const list = ({ children }: Element, name: string) => children.filter((each) => each.name === name);

/** Returns the text of an element at a path; undefined if it is absent or empty. */
function text(node: Element, ...path: readonly string[]): string | undefined {
  let found: Element | undefined = node;
  for (const name of path) found = found && child(found, name);
  return found?.text.trim() || undefined;
}

/** Earlier versions give the code as the text of the element. */
const status = (entry: Element) => text(entry, 'Sts', 'Cd') ?? text(entry, 'Sts');

const dayOf = (node: Element | undefined) => {
  const found = node && (text(node, 'Dt') ?? text(node, 'DtTm')?.slice(0, 10));
  return found && readDay(found, 'YYYY-MM-DD');
};

/** Returns an amount, negative for a debit. The amount itself has no sign. */
function signedAmount(node: Element, { currency, decimals }: Account): bigint | undefined {
  const amount = child(node, 'Amt');
  const side = text(node, 'CdtDbtInd');
  const written = amount?.text.trim() ?? '';
  const value = parsePlainDecimal(written);
  if (!value || amount?.attributes.get('Ccy') !== currency || value.scale > decimals) return undefined;
  const minor = value.digits * 10n ** BigInt(decimals - value.scale);
  return side === 'DBIT' ? -minor : side === 'CRDT' ? minor : undefined;
}
