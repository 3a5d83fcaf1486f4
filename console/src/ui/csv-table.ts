import { type Language, readNumber } from './number.ts';

/** The rows of CSV files that people choose, whose form is guessed. */

/** Whether a file is a workbook, which is a ZIP archive. */
export const isWorkbook = ([first, second]: Uint8Array): boolean => first === 0x50 && second === 0x4b;

/**
 * The text of a file: UTF-8, UTF-16 with its mark, or what older tills on Windows write.
 * @returns undefined for what is no text, such as a workbook
 */
export function decode(bytes: Uint8Array): string | undefined {
  const [first, second] = bytes;
  if (isWorkbook(bytes)) return undefined;
  if (first === 0xff && second === 0xfe) return new TextDecoder('utf-16le').decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder('utf-16be').decode(bytes);
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder('windows-1252').decode(bytes);
  }
}

/** Reads a CSV file: quoted fields, and the separator that its first line uses most. */
export function readCsv(text: string): {
  readonly separator: string;
  readonly columns: readonly string[];
  /** `line` counts the rows of the file, as a spreadsheet does. */
  readonly rows: readonly { readonly line: number; readonly of: Readonly<Record<string, string>> }[];
} {
  const clean = text.replace(/^\uFEFF/, '');
  const first = clean.slice(0, clean.search(/\r?\n|$/));
  const separator = [',', ';', '\t'].reduce((best, each) =>
    first.split(each).length > first.split(best).length ? each : best,
  );
  const lines: string[][] = [[]];
  let field = '';
  let isQuoted = false;
  for (let at = 0; at < clean.length; at++) {
    const letter = clean[at];
    if (isQuoted) {
      if (letter !== '"') field += letter;
      else if (clean[at + 1] === '"') field += clean[++at];
      else isQuoted = false;
    } else if (letter === '"') isQuoted = true;
    else if (letter === separator || letter === '\n') {
      lines.at(-1)?.push(field.replace(/\r$/, ''));
      field = '';
      if (letter === '\n') lines.push([]);
    } else field += letter;
  }
  lines.at(-1)?.push(field);
  const [head, ...rest] = lines
    .map((fields, at) => ({ fields, line: at + 1 }))
    .filter(({ fields }) => fields.some((each) => each !== ''));
  const columns = toDistinct(head?.fields ?? []);
  const rows = rest.map(({ fields, line }) => ({
    line,
    of: Object.fromEntries(columns.map((column, index) => [column, fields[index] ?? ''])),
  }));
  return { separator, columns: columns.filter(Boolean), rows };
}

/** The names of columns, each once: files repeat names, and spreadsheets add columns without any. */
function toDistinct(names: readonly string[]): string[] {
  const distinct: string[] = [];
  for (const name of names) {
    const numbered = [name, ...names.map((_, at) => `${name} (${at + 2})`)];
    distinct.push(name && (numbered.find((each) => !distinct.includes(each)) ?? name));
  }
  return distinct;
}

/** Returns the first column with a name like one of those that tills and banks give it. */
export const columnLike = (columns: readonly string[], names: RegExp): string | undefined =>
  columns.find((column) => names.test(column));

/** The columns of amounts. */
export const AMOUNTS = /amount|betrag|total|sum|umsatz/i;

/** A text with one of the two separators that can only mean decimals, or with both. */
const DECIMALS = {
  en: /^-?\d+\.(\d{1,2}|\d{4,})$|,.*\.\d*$/,
  de: /^-?\d+,(\d{1,2}|\d{4,})$|\..*,\d*$/,
} as const;

/** Currency signs, letters and blanks around a number. */
const AROUND = /^[\p{Sc}\p{L}\s]+|[\p{Sc}\p{L}\s]+$/gu;

/** The language in which the amounts of a file are written; the given one, if they do not tell. */
export function languageOf(texts: readonly string[], language: Language): Language {
  const typed = texts.map((text) => text.replace(AROUND, ''));
  const other = language === 'en' ? 'de' : 'en';
  const isWritten = (as: Language) => typed.some((text) => DECIMALS[as].test(text));
  return isWritten(other) && !isWritten(language) ? other : language;
}

/**
 * Reads the amounts of a file. `1.234` has two meanings: that of the other amounts of the file, or else that
 * of the language of the page.
 * @returns the amounts, undefined where a text is not an amount
 */
export function readAmounts(texts: readonly string[], language: Language): (number | undefined)[] {
  const own = languageOf(texts, language);
  return texts.map((text) => {
    const amount = readNumber(text.replace(AROUND, ''), own);
    return typeof amount === 'number' ? amount : undefined;
  });
}
