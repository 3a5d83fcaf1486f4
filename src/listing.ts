import type { Static, TObject, TProperties } from 'typebox';
import { type Caller, type Operation, reading } from './operation.ts';
import { PAGE, Page, type Position, pageOf, readCursor } from './page.ts';

type Listed<Filters extends TProperties, Item extends TObject> = Pick<
  Operation,
  'name' | 'summary' | 'description' | 'path' | 'roles' | 'columns' | 'isHeavy'
> & {
  /** By default the words of the name. */
  readonly command?: Operation['command'];
  readonly item: Item;
  readonly filters?: Filters;
  /**
   * Reads items in the order of the list.
   * @param after the position of the last item of the page before; empty for the first page
   * @param count how many, one more than the page has
   */
  readonly rows: (
    caller: Caller,
    filters: Static<TObject<Filters>>,
    after: Position,
    count: number,
  ) => Promise<readonly Static<Item>[]>;
  /** Returns the sort key of an item: by default its id. */
  readonly position?: (item: Static<Item>) => Position;
};

type List<Filters extends TProperties, Item extends TObject> = Operation<
  TObject<Filters & typeof PAGE>,
  ReturnType<typeof Page<Item>>
>;

function byId(item: unknown): Position {
  const { id } = item as { readonly id?: string | number };
  if (id === undefined) throw new Error('the items of a list have no id: declare their position');
  return [Number(id)];
}

/** Defines an operation that lists items page by page. */
export function listing<Filters extends TProperties, Item extends TObject>({
  item,
  filters,
  rows,
  position = byId,
  ...definition
}: Listed<Filters, Item>): List<Filters, Item> {
  const list = reading({
    ...definition,
    input: { ...filters, ...PAGE } as TProperties,
    output: Page(item) as TObject,
    async run(caller, input) {
      const { cursor, limit = 50, ...given } = input as { cursor?: string; limit?: number };
      return pageOf(await rows(caller, given as never, readCursor(cursor), limit + 1), limit, position);
    },
  });
  return list as unknown as List<Filters, Item>;
}
