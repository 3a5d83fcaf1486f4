import { type BrokenCsv, type CsvRow, readCsv } from '../csv.ts';
import { accountNumber as asNumber } from './iban.ts';
import type { Mapping } from './mappings.ts';
import { type Account, Collected, describe, type Statement } from './statement.ts';

/** Statements of a bank in CSV, by a saved mapping of its columns. */

/** Recognizes UTF-16 by its byte order mark, or by a NUL byte in the first character. */
const isUtf16 = (bytes: Buffer) =>
  ['fffe', 'feff'].includes(bytes.toString('hex', 0, 2)) || bytes.subarray(0, 2).includes(0);

const lineAt = (bytes: Buffer, at: number) => bytes.toString('latin1', 0, at).split('\n').length;

/** Reads a bank's CSV. @returns the entries that could be read, and the errors by line and column */
export function readBankCsv(bytes: Buffer, mapping: Mapping, account: Account): Statement {
  const collected = new Collected();
  // Windows-1252 has a character for every byte, so it would read any file.
  const nul = bytes.indexOf(0);
  if (isUtf16(bytes))
    return collected.refused(1, 'encoding', `the file is in UTF-16: save it in ${mapping.encoding}`);
  if (nul !== -1)
    return collected.refused(lineAt(bytes, nul), 'csv', 'there is a NUL byte: this is no CSV file');
  let text: string;
  try {
    text = new TextDecoder(mapping.encoding, { fatal: true }).decode(bytes);
  } catch {
    const another = 'choose another --encoding in the mapping';
    return collected.refused(1, 'encoding', `the file is not in ${mapping.encoding}: ${another}`);
  }
  let lines: CsvRow[];
  try {
    lines = readCsv(text, mapping.delimiter);
  } catch (error) {
    return collected.refused((error as BrokenCsv).line, 'csv', 'this is not CSV with this delimiter');
  }
  const header = lines.shift()?.record ?? [];
  const { date, amount, texts, entryReference, currency, accountNumber } = mapping;
  for (const column of [date, amount, ...texts, entryReference, currency, accountNumber]) {
    if (column == null) continue;
    const count = header.filter((name) => name === column).length;
    if (count === 0) collected.wrong(1, column, 'column', 'there is no such column');
    if (count > 1) collected.wrong(1, column, 'columnTwice', `there are ${count} columns of this name`);
  }
  if (collected.errors.length === 0) readLines(lines, header, mapping, account, collected);
  return collected.statement({ opening: null, closing: null, number: null });
}

function readLines(
  lines: readonly CsvRow[],
  header: readonly string[],
  mapping: Mapping,
  account: Account,
  collected: Collected,
): void {
  const { currency, decimals } = account;
  for (const { record, info } of lines) {
    const line = info.lines;
    // A delimiter within a text shifts the columns after it. Some banks end each line with a delimiter.
    if (record.length < header.length || record.slice(header.length).some((field) => field !== '')) {
      const counts = `has ${record.length} fields, and the header has ${header.length}`;
      collected.wrong(line, 'row', 'fields', `${counts}: put texts that contain the delimiter in quotes`);
      continue;
    }
    const field = (column: string) => record[header.indexOf(column)] ?? '';
    if (!isOfAccount(line, field, mapping, account, collected)) continue;
    const day = readDay(field(mapping.date), mapping.dateFormat);
    if (!day) collected.wrong(line, mapping.date, 'day', `is not a day as ${mapping.dateFormat}`);
    const amount = readAmount(field(mapping.amount), mapping.decimal, decimals);
    if (amount === undefined)
      collected.wrong(
        line,
        mapping.amount,
        'money',
        `is not an amount in ${currency} with "${mapping.decimal}" before its decimals`,
      );
    if (!day || amount === undefined) continue;
    const description = describe(mapping.texts.map(field));
    const reference = mapping.entryReference ? field(mapping.entryReference) : '';
    collected.add({ line, day, description, reference, amount });
  }
}

/** Returns whether a row is of this account; otherwise reports it. */
function isOfAccount(
  line: number,
  field: (column: string) => string,
  { currency, accountNumber }: Mapping,
  account: Account,
  collected: Collected,
): boolean {
  const found = currency ? field(currency).toUpperCase() : account.currency;
  if (currency && found !== account.currency) {
    const facts = { currency: account.currency, found };
    collected.wrong(line, currency, 'currency', `is ${found}: the account is in ${account.currency}`, facts);
    return false;
  }
  const number = accountNumber ? asNumber(field(accountNumber)) : null;
  if (accountNumber && account.number !== null && number !== account.number) {
    const facts = { number: account.number, found: number ?? '' };
    collected.wrong(line, accountNumber, 'account', `is ${number}: the account is ${account.number}`, facts);
    return false;
  }
  return true;
}

const DATES = {
  'YYYY-MM-DD': [/^(\d{4})-(\d{2})-(\d{2})$/, [1, 2, 3]],
  'DD.MM.YYYY': [/^(\d{2})\.(\d{2})\.(\d{4})$/, [3, 2, 1]],
  'DD/MM/YYYY': [/^(\d{2})\/(\d{2})\/(\d{4})$/, [3, 2, 1]],
  'MM/DD/YYYY': [/^(\d{2})\/(\d{2})\/(\d{4})$/, [3, 1, 2]],
} as const;

export function readDay(text: string, format: Mapping['dateFormat']): string | undefined {
  const [pattern, order] = DATES[format];
  const found = pattern.exec(text);
  const day = found ? order.map((at) => found[at]).join('-') : '';
  return new Date(`${day}T00:00:00Z`).toJSON()?.slice(0, 10) === day ? day : undefined;
}

function readAmount(text: string, decimal: '.' | ',', decimals: number): bigint | undefined {
  const [point, group] = decimal === '.' ? ['\\.', ','] : [',', '\\.'];
  const form = new RegExp(
    `^([+-]?)(\\d{1,3}(?:${group}\\d{3})+|\\d{1,15})(?:${point}(\\d{1,${Math.max(decimals, 1)}}))?$`,
  );
  const [all, sign = '', whole = '', fraction = ''] = form.exec(text.replace(/\s/g, '')) ?? [];
  if (all === undefined || fraction.length > decimals) return undefined;
  const minor = BigInt(whole.replace(/\D/g, '') + fraction.padEnd(decimals, '0'));
  return sign === '-' ? -minor : minor;
}
