/** Figures open into what adds up to them, as the service declares it (`x-reports`, `x-entries`). */

/** What a figure is made of. `{name}` in an input stands for a field of the row, or of what is around it. */
type Case = {
  readonly when?: Readonly<Record<string, readonly string[]>>;
  readonly of?: string;
  readonly given?: Readonly<Record<string, string>>;
  readonly sumOf?: readonly string[];
  readonly none?: string;
};
/** The first case applies whose condition is fulfilled. */
export type Figure = readonly Case[];

/** Figures of answers whose form is free, and of files of people: nothing declares them. */
export const UNDECLARED = {
  count: [{ none: 'A number of things, which are listed and not booked.' }],
  inFile: [{ none: 'An amount of your file, and not of the books.' }],
  difference: [{ none: 'The difference of the two figures beside it.' }],
  running: [{ none: 'The movements up to here add up to it.' }],
} satisfies Readonly<Record<string, Figure>>;

type Fields = Readonly<Record<string, unknown>>;

/** An operation with its input, or why there is none. */
export type Opened = {
  readonly of?: string;
  readonly given: Readonly<Record<string, string>>;
  readonly sumOf: readonly string[];
  readonly none?: string;
};

/**
 * Returns what a figure opens into.
 * @param around its row first, then what is around the row
 */
export function openedBy(figure: Figure, ...around: readonly Fields[]): Opened | undefined {
  const fieldOf = (name: string) => around.find((fields) => name in fields)?.[name];
  const applies = ({ when = {} }: Case) =>
    Object.entries(when).every(([name, words]) => words.includes(String(fieldOf(name))));
  const found = figure.find(applies);
  if (!found) return undefined;
  const given = Object.entries(found.given ?? {}).flatMap(([name, text]) => {
    const [, field] = /^\{(\w+)\}$/.exec(text) ?? [];
    const value = String((field === undefined ? text : fieldOf(field)) ?? '');
    return value === '' || value === 'total' ? [] : [[name, value] as const];
  });
  return { sumOf: [], ...found, given: Object.fromEntries(given) };
}

/**
 * Returns the figure of what several columns of a report add up to.
 * @param columns `-` subtracts one
 */
export function combined(figures: Readonly<Record<string, Figure>> = {}, columns: readonly string[]): Figure {
  const [first, ...others] = columns.flatMap((column) => figures[column.replace('-', '')]?.[0] ?? []);
  if (!first) return [];
  const given = [first, ...others].map((each) => each.given ?? {});
  const isDebit = first.given?.['sum'] === 'debits';
  const kind = given.map((each) => each['kind']).join();
  return [{ ...first, given: { ...first.given, kind, sum: isDebit ? 'net-debits' : 'net' } }];
}

/** Returns the figures of one list of an answer, such as `lines`, by their fields. */
export function figuresIn(
  figures: Readonly<Record<string, Figure>> = {},
  list: string,
): Readonly<Record<string, Figure>> {
  const prefix = `${list}.`;
  const own = Object.entries(figures).filter(([path]) => path.startsWith(prefix));
  return Object.fromEntries(own.map(([path, figure]) => [path.slice(prefix.length), figure]));
}
