import { createHash } from 'node:crypto';
import { parse } from 'csv-parse/sync';
import { XMLParser } from 'fast-xml-parser';
import { parseDecimal } from '../money.ts';
import { type BankEntry, Collected, type Currency, describe, type Statement } from './statement.ts';

/**
 * Readers of bank statements: camt.053, or CSV by a saved mapping of its columns. Statements are small, so
 * they are read into memory as a whole.
 */

/** The mapping of the columns of a bank's CSV. */
export type Mapping = {
  readonly date: string;
  readonly dateFormat: 'YYYY-MM-DD' | 'DD.MM.YYYY' | 'DD/MM/YYYY' | 'MM/DD/YYYY';
  readonly amount: string;
  /** The decimal separator: point or comma. The other of the two may separate thousands. */
  readonly decimal: '.' | ',';
  /** The columns that are searched for references. */
  readonly texts: readonly string[];
  /** The column with the bank's reference of an entry; null if the reference is derived from the row. */
  readonly entryReference: string | null;
  readonly delimiter: ',' | ';' | '\t';
  readonly encoding: 'utf-8' | 'windows-1252';
};

/** Recognizes UTF-16 by its byte order mark, or by a NUL byte in the first character. */
const isUtf16 = (bytes: Buffer) =>
  ['fffe', 'feff'].includes(bytes.toString('hex', 0, 2)) || bytes.subarray(0, 2).includes(0);

const lineAt = (bytes: Buffer, at: number) => bytes.toString('latin1', 0, at).split('\n').length;

/** Reads a bank's CSV. @returns the entries that could be read, and the errors by line and column */
export function readBankCsv(bytes: Buffer, mapping: Mapping, currency: Currency): Statement {
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
  let lines: Line[];
  try {
    const options = { trim: true, info: true, skip_empty_lines: true, relax_column_count: true, bom: true };
    // The types of the library do not know what `info` changes.
    lines = parse(text, { ...options, delimiter: mapping.delimiter }) as unknown as Line[];
  } catch (error) {
    const line = Number((error as { lines?: number }).lines ?? 1);
    return collected.refused(line, 'csv', 'this is not CSV with this delimiter');
  }
  const header = lines.shift()?.record ?? [];
  const { date, amount, texts, entryReference } = mapping;
  for (const column of [date, amount, ...texts, ...(entryReference ? [entryReference] : [])]) {
    const count = header.filter((name) => name === column).length;
    if (count === 0) collected.wrong(1, column, 'column', 'there is no such column');
    if (count > 1) collected.wrong(1, column, 'columnTwice', `there are ${count} columns of this name`);
  }
  if (collected.errors.length === 0) readLines(lines, header, mapping, currency, collected);
  return { ...collected, closing: null };
}

type Line = { readonly record: readonly string[]; readonly info: { readonly lines: number } };

function readLines(
  lines: readonly Line[],
  header: readonly string[],
  mapping: Mapping,
  { currency, decimals }: Currency,
  collected: Collected,
): void {
  const repeated = new Map<string, number>();
  for (const { record, info } of lines) {
    const line = info.lines;
    // A delimiter within a text shifts the columns after it. Some banks end each line with a delimiter.
    if (record.length < header.length || record.slice(header.length).some((field) => field !== '')) {
      const counts = `has ${record.length} fields, and the header has ${header.length}`;
      collected.wrong(line, 'row', 'fields', `${counts}: put texts that contain the delimiter in quotes`);
      continue;
    }
    const field = (column: string) => record[header.indexOf(column)] ?? '';
    const day = readDay(field(mapping.date), mapping.dateFormat);
    if (!day) collected.wrong(line, mapping.date, 'day', `is not a day as ${mapping.dateFormat}`);
    const amountMinor = readAmount(field(mapping.amount), mapping.decimal, decimals);
    if (amountMinor === undefined)
      collected.wrong(
        line,
        mapping.amount,
        'money',
        `is not an amount in ${currency} with "${mapping.decimal}" before its decimals`,
      );
    if (!day || amountMinor === undefined || amountMinor === 0n) continue;
    const description = describe(mapping.texts.map(field));
    const own = mapping.entryReference && field(mapping.entryReference);
    collected.add({
      line,
      day,
      amountMinor,
      description,
      reference: own || referenceOf(day, amountMinor, description, repeated),
    });
  }
}

/** Derives a reference if the bank gives none. Equal rows of a day are distinguished by their order. */
function referenceOf(day: string, minor: bigint, description: string, repeated: Map<string, number>): string {
  const key = `${day} ${minor} ${description}`;
  const count = (repeated.get(key) ?? 0) + 1;
  repeated.set(key, count);
  return createHash('sha256').update(`${key} ${count}`).digest('hex').slice(0, 32);
}

const DATES = {
  'YYYY-MM-DD': [/^(\d{4})-(\d{2})-(\d{2})$/, [1, 2, 3]],
  'DD.MM.YYYY': [/^(\d{2})\.(\d{2})\.(\d{4})$/, [3, 2, 1]],
  'DD/MM/YYYY': [/^(\d{2})\/(\d{2})\/(\d{4})$/, [3, 2, 1]],
  'MM/DD/YYYY': [/^(\d{2})\/(\d{2})\/(\d{4})$/, [3, 1, 2]],
} as const;

function readDay(text: string, format: Mapping['dateFormat']): string | undefined {
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

type Node = Record<string, unknown>;

const LISTS = new Set(['Stmt', 'Ntry', 'Bal', 'NtryDtls', 'TxDtls', 'Ustrd']);
const PARSER = new XMLParser({
  ignoreAttributes: false,
  attributeNamePrefix: '@',
  parseTagValue: false,
  removeNSPrefix: true,
  isArray: (name) => LISTS.has(name),
});

/**
 * Reads a camt.053 statement of any version. Entries that are not booked are left out. `line` counts the
 * entries.
 */
export function readCamt(bytes: Buffer, { currency, decimals }: Currency): Statement {
  const collected = new Collected();
  let closing: Statement['closing'] = null;
  const statements = statementsOf(bytes);
  if (!statements)
    return collected.refused(1, 'camt053', 'this is not a statement in camt.053 (Document/BkToCstmrStmt)');
  let line = 0;
  for (const statement of statements) {
    for (const each of list(statement, 'Ntry')) {
      line++;
      if (status(each) !== 'BOOK') continue;
      const entry = readEntry(each, line, { currency, decimals }, collected);
      if (entry) collected.add(entry);
    }
    const end = list(statement, 'Bal').find((each) => text(each, 'Tp', 'CdOrPrtry', 'Cd') === 'CLBD');
    const minor = end && signedAmount(end, { currency, decimals });
    const day = end && dayOf(child(end, 'Dt'));
    if (minor !== undefined && day && (!closing || closing.day <= day)) closing = { minor, day };
  }
  return { ...collected, closing };
}

function statementsOf(bytes: Buffer): Node[] | undefined {
  try {
    const parsed = PARSER.parse(bytes) as Node;
    const report = child(child(parsed, 'Document'), 'BkToCstmrStmt');
    return report && list(report, 'Stmt');
  } catch {
    return undefined;
  }
}

function readEntry(
  each: Node,
  line: number,
  currency: Currency,
  collected: Collected,
): BankEntry | undefined {
  const amountMinor = signedAmount(each, currency);
  if (amountMinor === undefined) {
    collected.wrong(
      line,
      'Amt',
      'money',
      `is not an amount in ${currency.currency}, or CdtDbtInd is missing`,
    );
    return undefined;
  }
  const day = dayOf(child(each, 'BookgDt'));
  if (!day) {
    collected.wrong(line, 'BookgDt', 'day', 'is missing, or no day');
    return undefined;
  }
  const details = list(each, 'NtryDtls').flatMap((some) => list(some, 'TxDtls'));
  const texts = details.flatMap((some) => [
    text(some, 'Refs', 'EndToEndId'),
    ...strings(child(some, 'RmtInf'), 'Ustrd'),
  ]);
  const reference = text(each, 'AcctSvcrRef') ?? text(each, 'NtryRef');
  if (!reference) {
    collected.wrong(
      line,
      'AcctSvcrRef',
      'required',
      'is missing, and so is NtryRef: the entry has no reference',
    );
    return undefined;
  }
  return { line, day, amountMinor, reference, description: describe([...texts, text(each, 'AddtlNtryInf')]) };
}

function child(node: unknown, name: string): Node | undefined {
  const found = (node as Node | undefined)?.[name];
  return typeof found === 'object' && found !== null ? (found as Node) : undefined;
}

function list(node: Node, name: string): Node[] {
  const found = node[name];
  return Array.isArray(found) ? (found as Node[]) : [];
}

function strings(node: Node | undefined, name: string): string[] {
  const found = node?.[name];
  return Array.isArray(found) ? found.filter((each): each is string => typeof each === 'string') : [];
}

function text(node: Node, ...path: readonly string[]): string | undefined {
  let found: unknown = node;
  for (const name of path) found = (found as Node | undefined)?.[name];
  return typeof found === 'string' && found !== '' ? found : undefined;
}

/** Earlier versions give the code as the text of the element. */
const status = (entry: Node) => text(entry, 'Sts', 'Cd') ?? text(entry, 'Sts');

const dayOf = (node: Node | undefined) => {
  const found = node && (text(node, 'Dt') ?? text(node, 'DtTm')?.slice(0, 10));
  return found && readDay(found, 'YYYY-MM-DD');
};

function signedAmount(node: Node, { currency, decimals }: Currency): bigint | undefined {
  const amount = child(node, 'Amt');
  const side = text(node, 'CdtDbtInd');
  const value = parseDecimal(String(amount?.['#text'] ?? ''));
  if (!value || amount?.['@Ccy'] !== currency || value.scale > decimals || !side) return undefined;
  const minor = value.digits * 10n ** BigInt(decimals - value.scale);
  return side === 'DBIT' ? -minor : minor;
}
