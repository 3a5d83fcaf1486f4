import { Button, Group, Skeleton, Title } from '@mantine/core';
import { keepPreviousData, replaceEqualDeep, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { Link, useRouterState } from '@tanstack/react-router';
import {
  lazy,
  memo,
  type ReactNode,
  type RefObject,
  Suspense,
  use,
  useEffect,
  useEffectEvent,
  useId,
  useRef,
} from 'react';
import { get, type Page, type Total } from '../api.ts';
import type { Operation } from '../described.ts';
import { type Figure as Declared, figuresIn } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Filters } from './address.ts';
import { useApp } from './app.tsx';
import { Figure } from './figure.tsx';
import { useFormat } from './format.ts';
import type { Item } from './item.ts';
import { AGAIN_MS } from './items.ts';
import { type ListProps, shownAs } from './lists.tsx';
import { Empty, PartName, Problem, usePartName } from './parts.tsx';
import { pageOf } from './places.ts';
import { type Selection, useSelection } from './selection.ts';
import { isTight, Value } from './value.tsx';
import { hasViewsOf } from './view-store.ts';
import { useWords } from './words.ts';

// The lists of the overview have no tools, and do not load them.
const loadTools = () => import('./list-tools.tsx');
const ListTools = lazy(async () => ({ default: (await loadTools()).ListTools }));
const FilterBar = lazy(async () => ({ default: (await loadTools()).FilterBar }));
const SelectionBar = lazy(async () => ({ default: (await loadTools()).SelectionBar }));
const SortButton = lazy(async () => ({ default: (await loadTools()).SortButton }));
const ViewTabs = lazy(async () => ({ default: (await loadTools()).ViewTabs }));

const PAGE = ['limit', 'cursor', 'sort'];

/** How often a list is read again while work goes on in it. */
const RUNNING_MS = 3_000;

const RUNNING = ['PROCESSING', 'WAITING', 'RUNNING'];
const isRunning = ({ status, state }: Item) => RUNNING.includes(String(status ?? state));

/** Reads a list again from time to time, but not while the pointer or the focus is on rows that could move. */
function useLive(place: RefObject<HTMLElement | null>, runs: boolean, read: () => unknown): void {
  const look = useEffectEvent(() => {
    const isHeld = !runs && place.current?.matches(':hover, :focus-within');
    if (!document.hidden && !isHeld) read();
  });
  useEffect(() => {
    const timer = setInterval(() => look(), runs ? RUNNING_MS : AGAIN_MS);
    return () => clearInterval(timer);
  }, [runs]);
  // The last rows of what has ended, at once.
  const ran = useRef(runs);
  const readLast = useEffectEvent(() => void read());
  useEffect(() => {
    if (ran.current && !runs) readLast();
    ran.current = runs;
  }, [runs]);
}

/** The filters, the order and the columns of a list, by its operation, its page and the address. */
function useShown(props: ListProps, operation: Operation | undefined) {
  const { search, fixed = {}, of } = props;
  const { door, shapeOf } = useApp();
  const all = operation?.fields ?? [];
  // In the portal, everything belongs to one merchant.
  const isOwn = (name: string) => door === 'operator' || name !== 'merchantId';
  const isShown = (name: string) => !(name in fixed) && isOwn(name);
  const standard =
    props.columns?.filter(isOwn) ?? (shownAs(of)?.columns ?? operation?.columns ?? []).filter(isShown);
  const fields = all.filter(
    ({ name, in: place }) =>
      search !== undefined &&
      place === 'query' &&
      !PAGE.includes(name) &&
      isShown(name) &&
      (props.filters?.includes(name) ?? true),
  );
  // A list that fills its page has its columns in the address, too.
  const names = search && !props.fixed ? [...fields.map(({ name }) => name), 'columns', 'sort'] : undefined;
  const sorts = names && all.find(({ name }) => name === 'sort')?.options;
  const known = (name: string) => isOwn(name) && (standard.includes(name) || shapeOf(name).isKnown);
  const chosen = new Set(names && search?.['columns']?.split(',').filter(known));
  const columns = chosen.size > 0 ? [...chosen] : standard;
  return { fields, names, sorts, sort: sorts && search?.['sort'], standard, columns };
}

/** The rows of a list. The first are asked for before the page is drawn, which waits for others. */
function useRead(operation: Operation | undefined, fixed: Filters, filters: Filters, limit: number) {
  const all = operation?.fields ?? [];
  // Short lists come in one answer.
  const isPaged = all.some(({ name }) => name === 'limit');
  const path = operation?.path.replace(/\{(\w+)\}/g, (_, name: string) => fixed[name] ?? '') ?? '';
  const inPath = new Set(all.flatMap(({ name, in: place }) => (place === 'path' ? [name] : [])));
  const query = {
    ...filters,
    ...Object.fromEntries(Object.entries(fixed).filter(([name]) => !inPath.has(name))),
  };
  const isKnown = operation !== undefined;
  const options = {
    queryKey: ['list', path, query, limit],
    queryFn: ({ pageParam }: { pageParam: string | null }) =>
      get<Page<Item>>(path, { ...query, ...(isPaged && { limit }), cursor: pageParam ?? undefined }),
    initialPageParam: null as string | null,
    getNextPageParam: (page: Page<Item>) => page.nextCursor,
  };
  const client = useQueryClient();
  if (isKnown && !client.getQueryState(options.queryKey)) void client.prefetchInfiniteQuery(options);
  const read = useInfiniteQuery({ ...options, enabled: isKnown, placeholderData: keepPreviousData });
  return { ...read, path, query, isPaged };
}

/** A list that is read by cursor, newest first, more on demand. */
export function List(props: ListProps) {
  const { search, fixed = {}, limit = 50 } = props;
  const { narrow, cell, actions } = { ...shownAs(props.of), ...props };
  const texts = useTexts().list;
  const part = use(PartName);
  const { operations, session } = useApp();
  const pathname = useRouterState({ select: ({ location }) => location.pathname });
  const operation = operations?.get(props.of);
  const { fields, names, sorts, sort, standard, columns } = useShown(props, operation);
  const given = Object.fromEntries(fields.map(({ name }) => [name, search?.[name]]));
  const read = useRead(operation, fixed, { ...given, sort }, limit);
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage, refetch } = read;
  const { path, query, isPaged } = read;
  const shown = { cell, actions, to: pageOf(props.of), narrow: columns === standard ? narrow : undefined };
  const items = data?.pages.flatMap((page) => page.items) ?? [];
  const total = data?.pages[0]?.total;
  const section = useRef<HTMLElement>(null);
  // Of several pages, each would be read again.
  const isShort = data?.pages.length === 1;
  useLive(section, props.runs ?? items.some(isRunning), () => isShort && refetch());
  const keys = keysOf(items);
  const { selection, selected, clear } = useSelection(keys);
  const picked = props.bulk ? items.filter((_, index) => selected.includes(keys[index] ?? '')) : [];
  const isFiltered = Object.values(given).some(Boolean);
  const nothing =
    isFiltered || !props.empty ? <Empty text={isFiltered ? texts.filtered : texts.empty} /> : props.empty;
  // An empty list has nothing to filter or to export.
  const isBare = data !== undefined && items.length === 0 && !isFiltered;
  const hasTools = !isBare && (fields.length > 0 || (items.length > 0 && !props.brief));
  // The place of their tabs is there before them, so that nothing moves.
  const hasViews = names && hasViewsOf(session?.user.id ?? '', pathname);
  const hasHead = props.title !== undefined || hasTools || total || props.aside;
  return (
    <section className="panel" aria-label={props.title} ref={section}>
      {names && (
        <Suspense fallback={hasViews && <div className="views" />}>
          <ViewTabs names={names} />
        </Suspense>
      )}
      {hasHead && (
        <div className="panel-head">
          {props.title && <Title order={2}>{props.title}</Title>}
          {picked.length > 0 ? (
            <Suspense>
              <SelectionBar items={picked} clear={clear}>
                {props.bulk?.(picked)}
              </SelectionBar>
            </Suspense>
          ) : (
            hasTools &&
            fields.length > 0 && (
              <Suspense>
                <FilterBar fields={fields} search={search ?? {}} choices={props.choices} />
              </Suspense>
            )
          )}
          {total && <Sum of={total} />}
          {props.aside}
          {hasTools && !props.brief && (
            <Suspense>
              <ListTools {...{ path, query, isPaged, items, columns, standard, names }} />
            </Suspense>
          )}
        </div>
      )}
      {error && (
        <div className="panel-body">
          <Problem error={error} retry={() => refetch()} />
        </div>
      )}
      {isPending && !error && <Waiting rows={Math.min(limit, 8)} />}
      {data && items.length === 0 && nothing}
      {items.length > 0 && (
        <PartName value={props.title ?? part}>
          <Rows
            items={items}
            columns={columns}
            selection={props.bulk && selection}
            figures={figuresIn(operation?.figures, 'items')}
            around={query}
            sorts={sorts}
            sort={sort}
            {...shown}
          />
        </PartName>
      )}
      {hasNextPage && !props.brief && (
        <Group justify="center" p="sm">
          <Button variant="default" loading={isFetchingNextPage} onClick={() => fetchNextPage()}>
            {texts.more}
          </Button>
        </Group>
      )}
    </section>
  );
}

/** The number of all entries that match, and their sum. */
function Sum({ of: { rows, amount, currency } }: { of: Total }) {
  const { entries } = useTexts().list;
  const format = useFormat();
  return (
    <b className="number" data-sum={amount}>
      {`${entries(format.number(rows), rows)} · ${format.money(amount, currency)}`}
    </b>
  );
}

/** As high as the rows that will replace it. */
function Waiting({ rows }: { rows: number }) {
  const { loading } = useTexts().list;
  return (
    <div role="status" aria-label={loading} style={{ padding: '8px 16px 16px' }}>
      {Array.from({ length: rows }, (_, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all the same
        <Skeleton key={index} h={16} my={24} w={`${90 - ((index * 13) % 30)}%`} />
      ))}
    </div>
  );
}

type RowsProps = Pick<ListProps, 'narrow' | 'cell' | 'actions'> & {
  /** The address that a row links to. */
  readonly to?: ((item: Item) => string) | undefined;
  readonly items: readonly Item[];
  readonly columns: readonly string[];
  readonly selection?: Selection | undefined;
  /** The currency of amounts, if the items do not name it. */
  readonly currency?: string;
  /** The columns whose values open into what adds up to them, and what is around the rows. */
  readonly figures?: Readonly<Record<string, Declared>> | undefined;
  readonly around?: Item;
  /** The orders that the address may name, and the one that it names. */
  readonly sorts?: readonly string[] | undefined;
  readonly sort?: string | undefined;
};

/** The keys of rows: the ids of the items, or else their places. */
function keysOf(items: readonly Item[]): readonly string[] {
  const ids = items.map((item) =>
    String(item['id'] ?? item['transactionId'] ?? item['serialNumber'] ?? item['keyId'] ?? item['day']),
  );
  return new Set(ids).size === ids.length ? ids : items.map((_, index) => String(index));
}
const NARROW = 3;

const sortedAs = (name: string, sort: string | undefined) =>
  sort === name ? 'ascending' : sort === `-${name}` ? 'descending' : undefined;

export function Rows(props: RowsProps) {
  const { items, columns: named, narrow, to, selection, sorts, sort, ...shown } = props;
  const columns = shown.actions ? [...named, ''] : named;
  const id = useId();
  const keys = keysOf(items);
  const texts = useTexts().list;
  const { label } = useWords();
  const isKept = (name: string, index: number) => name === '' || (narrow?.includes(name) ?? index < NARROW);
  const kept = columns.filter(isKept);
  const classes = columns.map((name, index) => {
    const values = items.map((item) => item[name]);
    const isNumber = values.some((value) => typeof value === 'number' || isAmountCell(value));
    return [
      (isNumber || name === '') && 'number',
      !isKept(name, index) && 'wide',
      isTight(values) && 'tight',
      name === kept[0] && 'from-edge',
      name === kept.at(-1) && 'to-edge',
    ]
      .filter(Boolean)
      .join(' ');
  });
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for inputs
    <div className="table-scroll" role="group" aria-label={texts.table} tabIndex={0}>
      <table className="rows" {...usePartName()}>
        <thead>
          <tr>
            {columns.map((name, index) => (
              <th key={name} className={classes[index]} scope="col" aria-sort={sortedAs(name, sort)}>
                {index === 0 && selection && (
                  <input
                    type="checkbox"
                    className="row-check"
                    aria-label={texts.selectAll}
                    checked={keys.every((key) => selection.has(key))}
                    onChange={selection.toggleAll}
                  />
                )}
                {name === '' ? (
                  <span className="skip">{texts.actions}</span>
                ) : sorts?.includes(name) ? (
                  <Suspense fallback={label(name)}>
                    <SortButton of={name} />
                  </Suspense>
                ) : (
                  label(name)
                )}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item, row) => {
            const key = keys[row] ?? '';
            return (
              <Row
                key={key}
                {...{ item, columns, classes }}
                rowKey={key}
                {...shown}
                label={`${id}${row}`}
                labelled={kept[0]}
                target={to?.(item)}
                isSelected={selection?.has(key)}
                toggle={selection?.toggle}
              />
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

type RowProps = Pick<RowsProps, 'columns' | 'cell' | 'actions' | 'currency' | 'figures' | 'around'> & {
  readonly rowKey: string;
  readonly item: Item;
  /** The classes of the columns. */
  readonly classes: readonly string[];
  /** The id of the cell that names the row, and the column of that cell. */
  readonly label: string;
  readonly labelled: string | undefined;
  readonly target: string | undefined;
  readonly isSelected: boolean | undefined;
  readonly toggle: Selection['toggle'] | undefined;
};

/** A row is rendered when something of it differs, and not for each page of rows that is added. */
const Row = memo(
  function Row({ columns, classes, cell, actions, currency, figures, around = {}, ...row }: RowProps) {
    const { rowKey, item, label, labelled, target, isSelected, toggle } = row;
    const { select } = useTexts().list;
    return (
      <tr
        className={target ? 'link' : isTotal(item) ? 'total' : undefined}
        onKeyDown={toggle && ((event) => event.key === 'x' && toggle(rowKey))}
      >
        {columns.map((name, index) => (
          <td key={name} className={classes[index]} id={name === labelled ? label : undefined}>
            {index === 0 && toggle && (
              <input
                type="checkbox"
                className="row-check"
                aria-label={`${select} ${rowKey}`}
                checked={isSelected ?? false}
                onChange={({ nativeEvent }) => toggle(rowKey, (nativeEvent as MouseEvent).shiftKey)}
              />
            )}
            {/* It covers the row, and is as a link is: also in another tab, and to be copied. */}
            {target && name === labelled && <Link to={target} className="row-link" aria-labelledby={label} />}
            <Cell
              {...{ name, item, currency }}
              own={name === '' ? actions?.(item) : cell?.(name, item)}
              figure={figures?.[name]}
              around={[item, around]}
            />
          </td>
        ))}
      </tr>
    );
  },
  (before, after) => replaceEqualDeep(before, after) === before,
);

type CellProps = {
  readonly name: string;
  readonly item: Item;
  readonly currency: string | undefined;
  /** What the page shows instead of the value. */
  readonly own: ReactNode | undefined;
  readonly figure: Declared | undefined;
  readonly around: readonly Item[];
};

function Cell({ name, item, currency, own, figure, around }: CellProps) {
  const value = item[name];
  if (own === undefined || own === null)
    return (
      <Value
        {...{ name, value, figure, around }}
        currency={(item['currency'] as string | undefined) ?? currency}
      />
    );
  return (
    <Figure of={figure} value={value} around={around}>
      {own}
    </Figure>
  );
}

/** The rows of reports and statements to which others add up. */
const isTotal = ({ account, product, kind }: Item) =>
  account === 'total' || product === 'total' || kind === 'CLOSING' || kind === 'PAYABLE';
const isAmountCell = (value: unknown) => typeof value === 'object' && value !== null && 'amount' in value;
