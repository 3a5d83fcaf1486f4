/**
 * The entries behind a figure, declared beside it once: the console links the figure to them, and tests add
 * them up. `{name}` stands for a field of the figure's row, or of what is around the row. A filter whose
 * field is empty, or is the `total` of a report, is left out.
 */

/** A figure as its cases: the first one whose condition the row fulfills. */
export type Figure = readonly Case[];

type Case = {
  /** The values that fields of the row may have. */
  readonly when?: Readonly<Record<string, readonly string[]>>;
} & (
  | {
      /** The operation that shows the entries, and its input. */
      readonly of: string;
      readonly given: Readonly<Record<string, string>>;
    }
  | {
      /** Other figures of the same row, which add up to it; `-` subtracts one. */
      readonly sumOf: readonly string[];
    }
  | {
      /** Why there are no entries: a sentence. */
      readonly none: string;
    }
);

type Given = Readonly<Record<string, string>>;

const booked = (given: Given): Case => ({ of: 'books.entries', given: { currency: '{currency}', ...given } });

/** Entries that were booked in the interval. */
export const moved = (given: Given): Figure => [booked({ from: '{startsAt}', to: '{endsAt}', ...given })];

/** A balance: all entries up to its time. */
export const balance = (given: Given): Figure => [booked({ to: '{endsAt}', ...given })];

/** A balance at the beginning of the interval. */
export const opening = (given: Given): Figure => balance({ to: '{startsAt}', ...given });

export const sumOf = (...columns: readonly string[]): Figure => [{ sumOf: columns }];
export const none = (why: string): Figure => [{ none: why }];

/** Why a figure that many things have is no sum. */
export const ENTRY = none('An entry of the journal itself, and not a sum.');
export const SETTING = none('A setting, and not a sum.');
export const REQUESTED = none('Of one request, and not a sum.');
export const NUMBER = none('A number, not a figure.');
export const COUNTED = none('A number of things, which are listed and not booked.');

/** The page of one thing: the figure is one of its fields. */
export const fieldOf = (of: string, field: string): Figure => [{ of, given: { [field]: `{${field}}` } }];

/** A figure for rows that fulfill a condition, and another one for the rest. */
export const when = (condition: Case['when'] & object, then: Figure, otherwise: Figure): Figure => [
  ...then.map((each) => ({ ...each, when: condition })),
  ...otherwise,
];
