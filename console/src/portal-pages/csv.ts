/** Reads a CSV file: quoted fields, and the separator that its first line uses most. */
export function readCsv(text: string): {
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, string>>[];
} {
  const clean = text.replace(/^\uFEFF/, '');
  const head = clean.slice(0, clean.search(/\r?\n|$/));
  const separator = [',', ';', '\t'].reduce((best, each) =>
    head.split(each).length > head.split(best).length ? each : best,
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
  const [columns = [], ...rest] = lines.filter((line) => line.some((each) => each !== ''));
  return {
    columns,
    rows: rest.map((line) => Object.fromEntries(columns.map((column, at) => [column, line[at] ?? '']))),
  };
}

/** Reads an amount with a decimal point or comma; NaN if it is not an amount. */
export function readAmount(text: string): number {
  const digits = text.replace(/[^\d.,-]/g, '');
  const decimal = Math.max(digits.lastIndexOf('.'), digits.lastIndexOf(','));
  if (decimal < 0) return digits === '' ? Number.NaN : Number(digits);
  return Number(`${digits.slice(0, decimal).replace(/[.,]/g, '')}.${digits.slice(decimal + 1)}`);
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
