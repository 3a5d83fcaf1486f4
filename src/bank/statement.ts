/** What a reader of bank statements returns: entries, and the errors of the file. */

export type BankEntry = {
  readonly line: number;
  readonly reference: string;
  readonly day: string;
  /** Positive for received money. */
  readonly amountMinor: bigint;
  readonly description: string;
};

/** The rules that a statement can break. */
export const BANK_RULES = [
  'empty',
  'imported',
  'repeated',
  'required',
  'column',
  'columnTwice',
  'fields',
  'day',
  'maximum',
  'money',
  'encoding',
  'csv',
  'camt053',
] as const;
type BankRule = (typeof BANK_RULES)[number];

export type BankError = {
  readonly line: number;
  readonly field: string;
  readonly rule: BankRule;
  readonly message: string;
};

export type Statement = {
  readonly entries: readonly BankEntry[];
  readonly errors: readonly BankError[];
  /** The balance at the end of a day, as the bank states it; null if the file does not state one. */
  readonly closing: { readonly minor: bigint; readonly day: string } | null;
};

export type Currency = { readonly currency: string; readonly decimals: number };

const DESCRIPTION_MAX = 500;

export class Collected {
  readonly entries: BankEntry[] = [];
  readonly errors: BankError[] = [];
  readonly #lines = new Map<string, number>();

  wrong(line: number, field: string, rule: BankRule, message: string): void {
    this.errors.push({ line, field, rule, message });
  }

  /** Reports an error that concerns the whole file. */
  refused(line: number, rule: BankRule, message: string): Statement {
    this.wrong(line, 'file', rule, message);
    return { ...this, closing: null };
  }

  /** Adds an entry. An entry whose reference is already in the file is refused. */
  add(entry: BankEntry): void {
    const first = this.#lines.get(entry.reference);
    if (first !== undefined) this.wrong(entry.line, 'reference', 'repeated', `is also in line ${first}`);
    else this.#lines.set(entry.reference, entry.line);
    this.entries.push(entry);
  }
}

/** Joins the texts of an entry. */
export function describe(texts: readonly unknown[]): string {
  const parts = texts.filter(
    (each): each is string => typeof each === 'string' && each !== '' && each !== 'NOTPROVIDED',
  );
  return parts
    .join(' ')
    .replace(/\p{Cc}+/gu, ' ')
    .slice(0, DESCRIPTION_MAX);
}
