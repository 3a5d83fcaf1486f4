import { Button, Group, Skeleton, Title } from '@mantine/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { get, type Page } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { listingAt } from '../operations.ts';
import { useApp } from './app.tsx';
import { Export } from './export.tsx';
import { FilterBar, type Filters } from './filters.tsx';
import { Empty, Problem } from './parts.tsx';
import { Value } from './value.tsx';
import { useWords } from './words.ts';

export type { Filters } from './filters.tsx';
export type Item = Readonly<Record<string, unknown>>;

type Props = {
  readonly path: string;
  readonly columns: readonly string[];
  /** Columns that a narrow screen leaves out. */
  readonly wide?: readonly string[];
  /** The fields by which the list can be filtered; those that the service does not offer are left out. */
  readonly filters?: readonly string[];
  /** The filters are in the address of the page. */
  readonly search?: Filters;
  readonly fixed?: Filters;
  readonly limit?: number;
  readonly refetchMs?: number;
  /** The address that a row links to. */
  readonly to?: (item: Item) => string;
  readonly cell?: (name: string, item: Item) => ReactNode | undefined;
  readonly empty?: ReactNode;
  readonly title?: string;
  /** Only the first rows, without a button for more or an export. */
  readonly brief?: boolean;
};

/** A list that is read by cursor, newest first, more on demand. */
export function List(props: Props) {
  const { path, columns, wide, search = {}, fixed = {}, limit = 50, refetchMs } = props;
  const texts = useTexts().list;
  const { operations } = useApp();
  const fields = listingAt(operations, path)?.fields ?? [];
  const filters = (props.filters ?? []).filter((name) => fields.some((field) => field.name === name));
  const given = Object.fromEntries(filters.map((name) => [name, search[name]]));
  // Short lists come in one answer.
  const isPaged = fields.some(({ name }) => name === 'limit');
  const query = { ...given, ...fixed };
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage, refetch } =
    useInfiniteQuery({
      queryKey: ['list', path, query, limit],
      queryFn: ({ pageParam }) =>
        get<Page<Item>>(path, { ...query, ...(isPaged && { limit }), cursor: pageParam ?? undefined }),
      enabled: operations !== undefined,
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.nextCursor,
      placeholderData: keepPreviousData,
      ...(refetchMs === undefined ? {} : { refetchInterval: refetchMs }),
    });
  const items = data?.pages.flatMap((page) => page.items) ?? [];
  const isFiltered = Object.values(given).some(Boolean);
  const nothing =
    isFiltered || !props.empty ? <Empty text={isFiltered ? texts.filtered : texts.empty} /> : props.empty;
  // An empty list has nothing to filter or to export.
  const isBare = data !== undefined && items.length === 0 && !isFiltered;
  const hasTools = !isBare && (filters.length > 0 || (items.length > 0 && !props.brief));
  const hasHead = props.title !== undefined || hasTools;
  return (
    <section className="panel" aria-label={props.title ?? texts.table}>
      {hasHead && (
        <div className="panel-head">
          {props.title && <Title order={2}>{props.title}</Title>}
          {hasTools && filters.length > 0 && <FilterBar filters={filters} fields={fields} search={search} />}
          {items.length > 0 && !props.brief && (
            <Export path={path} query={query} columns={columns} isPaged={isPaged} />
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
        <Rows items={items} columns={columns} wide={wide} to={props.to} cell={props.cell} />
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

type RowsProps = Pick<Props, 'columns' | 'wide' | 'to' | 'cell'> & {
  readonly items: readonly Item[];
  /** The currency of amounts, if the items do not name it. */
  readonly currency?: string;
};

const keyOf = (item: Item, index: number) =>
  String(
    item['id'] ?? item['transactionId'] ?? item['serialNumber'] ?? item['keyId'] ?? item['day'] ?? index,
  );
const TIGHT =
  /(At|By|^timestamp|^at|^day|Day|^number|^serialNumber|^voucherCode|^code|^transactionId|^keyId|^state|^status|^kind|^scope|^dueOn|^from|^hash|^email|^actor|^maker|^checker|^month|Month|^)$/;

export function Rows({ items, columns, wide = [], to, cell, currency }: RowsProps) {
  const texts = useTexts().list;
  const { label } = useWords();
  const navigate = useNavigate();
  const isNumber = (name: string) =>
    /^(leastPayout|commission|vat)$/.test(name) ||
    items.some(({ [name]: value }) => typeof value === 'number' || isAmountCell(value));
  const narrow = columns.filter((name) => !wide.includes(name));
  const classes = columns.map((name) =>
    [
      (isNumber(name) || name === '') && 'number',
      wide.includes(name) && 'wide',
      TIGHT.test(name) && 'tight',
      name === narrow[0] && 'from-edge',
      name === narrow.at(-1) && 'to-edge',
    ]
      .filter(Boolean)
      .join(' '),
  );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it
    <section className="table-scroll" aria-label={texts.table} tabIndex={0}>
      <table className="rows">
        <thead>
          <tr>
            {columns.map((name, index) => (
              <th key={name} className={classes[index]} scope="col">
                {name === '' ? <span className="skip">{texts.actions}</span> : label(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item, row) => {
            const target = to?.(item);
            const open = target === undefined ? undefined : () => navigate({ to: target });
            return (
              <tr
                key={keyOf(item, row)}
                className={open ? 'link' : isTotal(item) ? 'total' : undefined}
                tabIndex={open && 0}
                onClick={open}
                onKeyDown={
                  open && ((event) => event.key === 'Enter' && event.target === event.currentTarget && open())
                }
              >
                {columns.map((name, index) => (
                  <td key={name} className={classes[index]}>
                    {cell?.(name, item) ?? (
                      <Value
                        name={name}
                        value={item[name]}
                        currency={(item['currency'] as string | undefined) ?? currency}
                      />
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </section>
  );
}

/** The last row of some reports. */
const isTotal = (item: Item) => item['account'] === 'total' || item['product'] === 'total';
const isAmountCell = (value: unknown) => typeof value === 'object' && value !== null && 'amount' in value;
