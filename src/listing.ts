import Type, { type Static, type TObject, type TProperties } from 'typebox';
import { raw, type Sql, sql } from './db/sql.ts';
import { type Caller, type Operation, reading } from './operation.ts';
import { onlyPage, PAGE, Page, type Position, pageOf, readCursor } from './page.ts';
import { Word } from './schema.ts';

/** What the rows of a list are sorted by, besides their ids. */
type Key = {
  /** Returns what is compared, of a column or of a value in a cursor. */
  readonly of: (value: Sql) => Sql;
  readonly column: Sql;
};

/** Sorts by a text that is never null, in capitals or not. */
export const byText = (column: Sql): Key => ({ of: (value) => sql`lower(${value}::text)`, column });

/** Sorts by a time, to the millisecond; null is before all times. */
export const byTime = (column: Sql): Key => ({
  of: (value) => sql`coalesce(date_trunc('milliseconds', ${value}::timestamptz), '-infinity')`,
  column,
});

/**
 * The orders of a list that an index serves, or any order of a list that is short, such as that of products.
 */
type Sorts = {
  /** The column of the ids, by which the list is sorted unless the caller names a field. */
  readonly id: Sql;
  readonly isNewestFirst: boolean;
  /** By field; null: a time that ascends with the ids. */
  readonly keys: Readonly<Record<string, Key | null>>;
};

/** The parts of a statement that sort its rows, and let it begin after a position. */
export type Order = { readonly after: Sql; readonly by: Sql };

/** What callers send: the name of a field, for a descending order after a `-`. */
function Sort({ keys }: Sorts) {
  const fields = Object.keys(keys);
  return Word(
    fields.flatMap((field) => [field, `-${field}`]),
    { description: 'The field by which the list is sorted; with `-` before it, in descending order.' },
  );
}

const fieldOf = (sort: string) => sort.replace('-', '');

function orderOf({ id, isNewestFirst, keys }: Sorts, sort: string | undefined, after: Position): Order {
  const key = sort === undefined ? null : keys[fieldOf(sort)];
  const isDescending = sort === undefined ? isNewestFirst : sort.startsWith('-');
  const [sign, direction] = isDescending ? [raw('<'), raw('desc')] : [raw('>'), raw('asc')];
  const last = sql`${after.at(-1)}`;
  const begins = after.length === 0;
  if (!key) return { after: begins ? sql`true` : sql`${id} ${sign} ${last}`, by: sql`${id} ${direction}` };
  const compared = key.of(key.column);
  return {
    after: begins ? sql`true` : sql`(${compared}, ${id}) ${sign} (${key.of(sql`${after[0]}`)}, ${last})`,
    by: sql`${compared} ${direction}, ${id} ${direction}`,
  };
}

/** Returns the position of an item in an order: the value of its field, if the list is sorted by one. */
function sorted(item: unknown, { keys }: Sorts, sort: string | undefined): Position {
  if (sort === undefined || !keys[fieldOf(sort)]) return [];
  const value = (item as Readonly<Record<string, unknown>>)[fieldOf(sort)];
  return [value instanceof Date ? value.toISOString() : String(value ?? '-infinity')];
}

type Listed<Filters extends TProperties, Item extends TObject> = Pick<
  Operation,
  'name' | 'summary' | 'description' | 'path' | 'roles' | 'columns' | 'isHeavy'
> & {
  /** By default the words of the name. */
  readonly command?: Operation['command'];
  readonly item: Item;
  readonly filters?: Filters;
  /** Returns the sort key of an item: by default its id. */
  readonly position?: (item: Static<Item>) => Position;
} & (
    | { readonly sorts: Sorts; readonly rows: Rows<Filters, Item, [order: Order]> }
    | { readonly sorts?: undefined; readonly rows: Rows<Filters, Item, []> }
  );

/**
 * Reads items in the order of the list.
 * @param after the position of the last item of the page before; empty for the first page
 * @param count how many, one more than the page has
 * @param order of a list that has `sorts`: replaces `after`
 */
type Rows<Filters extends TProperties, Item extends TObject, Ordered extends readonly Order[]> = (
  caller: Caller,
  filters: Static<TObject<Filters>>,
  after: Position,
  count: number,
  ...order: Ordered
) => Promise<readonly Static<Item>[]>;

type List<Filters extends TProperties, Item extends TObject> = Operation<
  TObject<Filters & typeof PAGE>,
  ReturnType<typeof Page<Item>>
>;

function byId(item: unknown): Position {
  const { id } = item as { readonly id?: string | number };
  if (id === undefined) throw new Error('the items of a list have no id: declare their position');
  return [Number(id)];
}

type Asked = { readonly cursor?: string; readonly limit?: number; readonly sort?: string };

/** Defines an operation that lists items page by page. */
export function listing<Filters extends TProperties, Item extends TObject>(
  listed: Listed<Filters, Item>,
): List<Filters, Item> {
  const { item, filters, position = byId, sorts, rows: _rows, ...definition } = listed;
  const list = reading({
    ...definition,
    input: { ...filters, ...(sorts && { sort: Type.Optional(Sort(sorts)) }), ...PAGE } as TProperties,
    output: Page(item) as TObject,
    async run(caller, input) {
      const { cursor, limit = 50, sort, ...given } = input as Asked;
      const after = readCursor(cursor);
      const read = [caller, given as Static<TObject<Filters>>, after, limit + 1] as const;
      const found = await (listed.sorts
        ? listed.rows(...read, orderOf(listed.sorts, sort, after))
        : listed.rows(...read));
      const sortedBy = (each: Static<Item>) => (sorts ? sorted(each, sorts, sort) : []);
      return pageOf(found, limit, (each) => [...sortedBy(each), ...position(each)]);
    },
  });
  return list as unknown as List<Filters, Item>;
}

type AllListed<Input extends TProperties, Item extends TObject> = Pick<
  Listed<Input, Item>,
  'name' | 'summary' | 'description' | 'path' | 'roles' | 'columns' | 'command' | 'item'
> & {
  readonly input?: Input;
  readonly rows: (caller: Caller, input: Static<TObject<Input>>) => Promise<Static<Item>[]>;
};

/** Defines an operation that lists all items at once, since there are never many. */
export function listingAll<Item extends TObject, Input extends TProperties = Readonly<Record<never, never>>>({
  item,
  input = {} as Input,
  rows,
  ...definition
}: AllListed<Input, Item>) {
  const list = reading({
    ...definition,
    input: input as TProperties,
    output: Page(item) as TObject,
    run: async (caller, given) => onlyPage(await rows(caller, given as never)),
  });
  return list as unknown as Operation<TObject<Input>, ReturnType<typeof Page<Item>>>;
}
