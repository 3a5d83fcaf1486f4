import { type Language, readNumber } from '../ui/number.ts';

/** Reads a CSV file: quoted fields, and the separator that its first line uses most. */
export function readCsv(text: string): {
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
  const columns = head?.fields ?? [];
  const rows = rest.map(({ fields, line }) => ({
    line,
    of: Object.fromEntries(columns.map((column, index) => [column, fields[index] ?? ''])),
  }));
  return { columns, rows };
}

/** A text with one of the two separators that can only mean decimals, or with both. */
const DECIMALS = {
  en: /^-?\d+\.(\d{1,2}|\d{4,})$|,.*\.\d*$/,
  de: /^-?\d+,(\d{1,2}|\d{4,})$|\..*,\d*$/,
} as const;

/** Currency signs, letters and blanks around a number. */
const AROUND = /^[\p{Sc}\p{L}\s]+|[\p{Sc}\p{L}\s]+$/gu;

/**
 * Reads the amounts of a file. `1.234` has two meanings: that of the other amounts of the file, or else that
 * of the language of the page.
 * @returns the amounts, undefined where a text is not an amount
 */
export function readAmounts(texts: readonly string[], language: Language): (number | undefined)[] {
  const typed = texts.map((text) => text.replace(AROUND, ''));
  const other = language === 'en' ? 'de' : 'en';
  const isWritten = (as: Language) => typed.some((text) => DECIMALS[as].test(text));
  const own = isWritten(other) && !isWritten(language) ? other : language;
  return typed.map((text) => {
    const amount = readNumber(text, own);
    return typeof amount === 'number' ? amount : undefined;
  });
}

export type Booked = { readonly reference: string; readonly amount: number };
export type Compared = {
  readonly agreeing: number;
  readonly missingHere: readonly Booked[];
  readonly missingThere: readonly Booked[];
  readonly differing: readonly (Booked & { readonly inScrip: number })[];
};

/** Compares a till's list with Scrip's, by reference. */
export function compare(till: readonly Booked[], scrip: readonly Booked[]): Compared {
  const here = new Map(scrip.map((each) => [each.reference, each]));
  const there = new Map(till.map((each) => [each.reference, each]));
  const agreeing = till.filter(({ reference, amount }) => here.get(reference)?.amount === amount).length;
  return {
    agreeing,
    missingHere: till.filter(({ reference }) => !here.has(reference)),
    missingThere: scrip.filter(({ reference }) => !there.has(reference)),
    differing: till.flatMap((each) => {
      const inScrip = here.get(each.reference)?.amount;
      return inScrip !== undefined && inScrip !== each.amount ? [{ ...each, inScrip }] : [];
    }),
  };
}
