import { createHash } from 'node:crypto';
import Type, { type Static } from 'typebox';
import { none } from '../figure.ts';
import { Day, Money, Text, Word } from '../schema.ts';

/** What a reader of bank statements returns: entries, and the errors and notes of the file. */

/** Why amounts of the bank are no sums of the journal. */
export const BANK_ENTRY = none('An entry of the bank, as its statement names it.');
export const STATED = none('As the bank states it.');

export const ReadEntry = Type.Object({
  line: Type.Integer(),
  reference: Text,
  day: Day,
  amount: Money(BANK_ENTRY, 'Positive: received.'),
  description: Text,
});
export type BankEntry = Static<typeof ReadEntry>;

/** The rules that a statement can break. */
const BANK_RULES = [
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
  'currency',
  'account',
  'accounts',
  'encoding',
  'csv',
  'xml',
  'camt053',
] as const;

/** The notes on a statement that can still be imported. */
const BANK_NOTES = ['zero', 'otherAccount', 'newNumber', 'gap', 'missing'] as const;

const Finding = <const Rules extends readonly string[]>(rules: Rules) =>
  Type.Object({
    line: Type.Integer(),
    field: Text,
    rule: Word(rules),
    message: Text,
    /** What the message says, as values, for pages in other languages. */
    facts: Type.Optional(Type.Unsafe<Facts>({ type: 'object' })),
  });
type Facts = Readonly<Record<string, unknown>>;

export const BankError = Finding(BANK_RULES);
export const BankNote = Finding(BANK_NOTES);
export type BankError = Static<typeof BankError>;
export type BankNote = Static<typeof BankNote>;
type BankRule = BankError['rule'];

/** A balance of the account, as the bank states it. */
export const Balance = Type.Object({ day: Day, amount: Money(STATED) });
export type Balance = Static<typeof Balance>;

type Ends = {
  /** Null if the file does not state it. */
  readonly opening: Balance | null;
  readonly closing: Balance | null;
  /** The number of the account that the file names; null for none. */
  readonly number: string | null;
};

export type Statement = Ends & {
  readonly entries: readonly BankEntry[];
  readonly errors: readonly BankError[];
  readonly notes: readonly BankNote[];
};

/** The account whose statement is read. `number` is null until it is known. */
export type Account = {
  readonly currency: string;
  readonly decimals: number;
  readonly number: string | null;
};

const DESCRIPTION_MAX = 500;
/** What banks write instead of a reference. */
const NO_REFERENCE = ['', 'NONREF', 'NOTPROVIDED'];

/** Returns a reference; undefined for a text that stands for none. */
export function referenceOf(text: string | undefined): string | undefined {
  const reference = text?.trim() ?? '';
  return NO_REFERENCE.includes(reference.toUpperCase()) ? undefined : reference;
}

export class Collected {
  readonly entries: BankEntry[] = [];
  readonly errors: BankError[] = [];
  readonly notes: BankNote[] = [];
  readonly #lines = new Map<string, number>();
  readonly #repeated = new Map<string, number>();

  wrong(line: number, field: string, rule: BankRule, message: string, facts?: Facts): void {
    this.errors.push({ line, field, rule, message, ...(facts && { facts }) });
  }

  note(line: number, field: string, rule: BankNote['rule'], message: string, facts?: Facts): void {
    this.notes.push({ line, field, rule, message, ...(facts && { facts }) });
  }

  statement(ends: Ends): Statement {
    return { entries: this.entries, errors: this.errors, notes: this.notes, ...ends };
  }

  /** Reports an error that concerns the whole file. */
  refused(line: number, rule: BankRule, message: string, facts?: Facts): Statement {
    this.wrong(line, 'file', rule, message, facts);
    return this.statement({ opening: null, closing: null, number: null });
  }

  /**
   * Adds an entry. One without an amount only informs, and is left out. One whose reference is already in the
   * file is refused. If the bank gives no reference, it is derived from the entry.
   */
  add(entry: BankEntry): void {
    if (entry.amount === 0n) {
      this.note(entry.line, 'amount', 'zero', 'is 0: the entry was left out');
      return;
    }
    const reference = referenceOf(entry.reference) ?? this.#derive(entry);
    const first = this.#lines.get(reference);
    if (first !== undefined) this.wrong(entry.line, 'reference', 'repeated', `is also in line ${first}`);
    else this.#lines.set(reference, entry.line);
    this.entries.push({ ...entry, reference });
  }

  /** Derives a reference. Equal entries of a day are distinguished by their order. */
  #derive({ day, amount, description }: BankEntry): string {
    const key = `${day} ${amount} ${description}`;
    const count = (this.#repeated.get(key) ?? 0) + 1;
    this.#repeated.set(key, count);
    return createHash('sha256').update(`${key} ${count}`).digest('hex').slice(0, 32);
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
