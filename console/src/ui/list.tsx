import { Button, Group, Select, Table, TextInput } from '@mantine/core';
import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { get, type Page } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { comesInPages } from '../operations.ts';
import { useApp } from './app.tsx';
import { labelOf } from './format.ts';
import { Busy, Empty, Problem, Value } from './parts.tsx';

export type Item = Readonly<Record<string, unknown>>;
export type Filters = Readonly<Record<string, string | undefined>>;

type Filter = { readonly name: string; readonly label?: string; readonly options?: readonly string[] };

type Props = {
  readonly path: string;
  readonly columns: readonly string[];
  readonly filters?: readonly Filter[];
  /** The filters are the address of the page. */
  readonly search?: Filters;
  readonly fixed?: Filters;
  readonly limit?: number;
  readonly refetchMs?: number;
  /** Where a row leads. */
  readonly to?: (item: Item) => string;
  readonly cell?: (name: string, item: Item) => ReactNode | undefined;
  readonly empty?: ReactNode;
};

/** A list by cursor: the newest first, more on demand; the filters stand in the address of the page. */
export function List({
  path,
  columns,
  filters = [],
  search = {},
  fixed = {},
  limit = 50,
  refetchMs,
  to,
  cell,
  empty,
}: Props) {
  const texts = useTexts().list;
  const { operations } = useApp();
  const query = { ...search, ...fixed, ...(comesInPages(operations, path) && { limit }) };
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage, refetch } =
    useInfiniteQuery({
      queryKey: ['list', path, query],
      queryFn: ({ pageParam }) => get<Page<Item>>(path, { ...query, cursor: pageParam ?? undefined }),
      enabled: operations !== undefined,
      initialPageParam: null as string | null,
      getNextPageParam: (page) => page.nextCursor,
      placeholderData: keepPreviousData,
      ...(refetchMs === undefined ? {} : { refetchInterval: refetchMs }),
    });
  const items = data?.pages.flatMap((page) => page.items) ?? [];
  const isFiltered = Object.values(search).some((value) => value !== undefined && value !== '');
  return (
    <section className="panel">
      {(filters.length > 0 || items.length > 0) && (
        <Group justify="space-between" p="sm" gap="sm" align="flex-end">
          <FilterBar filters={filters} search={search} />
          <Button
            size="xs"
            variant="default"
            disabled={items.length === 0}
            onClick={() => downloadCsv(path, columns, items)}
          >
            {texts.exportCsv} ({items.length}
            {hasNextPage ? '+' : ''})
          </Button>
        </Group>
      )}
      {error && (
        <Group p="sm">
          <Problem error={error} retry={() => refetch()} />
        </Group>
      )}
      {isPending && !error && <Busy />}
      {data &&
        items.length === 0 &&
        (empty && !isFiltered ? empty : <Empty text={isFiltered ? texts.filtered : texts.empty} />)}
      {items.length > 0 && <Rows items={items} columns={columns} to={to} cell={cell} />}
      {hasNextPage && (
        <Group justify="center" p="sm">
          <Button size="xs" variant="subtle" loading={isFetchingNextPage} onClick={() => fetchNextPage()}>
            {texts.more}
          </Button>
        </Group>
      )}
    </section>
  );
}

type RowsProps = Pick<Props, 'columns' | 'to' | 'cell'> & { readonly items: readonly Item[] };

export function Rows({ items, columns, to, cell }: RowsProps) {
  const texts = useTexts().list;
  const navigate = useNavigate();
  const isNumber = (name: string) => items.some((item) => typeof item[name] === 'number');
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it
    <section className="table-scroll" aria-label={texts.table} tabIndex={0}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            {columns.map((name) => (
              <Table.Th key={name} className={isNumber(name) ? 'number' : undefined}>
                {labelOf(name)}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map((item, index) => {
            const target = to?.(item);
            const open = target === undefined ? undefined : () => navigate({ to: target });
            return (
              <Table.Tr
                key={String(
                  item['id'] ?? item['transactionId'] ?? item['serialNumber'] ?? item['keyId'] ?? index,
                )}
                className={open && 'link'}
                tabIndex={open && 0}
                onClick={open}
                onKeyDown={open && ((event) => event.key === 'Enter' && open())}
              >
                {columns.map((name) => (
                  <Table.Td key={name} className={isNumber(name) ? 'number' : undefined}>
                    {cell?.(name, item) ?? (
                      <Value
                        name={name}
                        value={item[name]}
                        currency={item['currency'] as string | undefined}
                      />
                    )}
                  </Table.Td>
                ))}
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </section>
  );
}

function FilterBar({ filters, search }: { filters: readonly Filter[]; search: Filters }) {
  const texts = useTexts().list;
  const navigate = useNavigate();
  const [typed, setTyped] = useState<Filters>(search);
  const apply = (changed: Filters) => {
    const next = Object.fromEntries(Object.entries({ ...search, ...changed }).filter(([, value]) => value));
    void navigate({ to: '.', search: next as never, replace: true });
  };
  const isFiltered = Object.values(search).some(Boolean);
  return (
    <Group gap="xs" align="flex-end" component="search">
      {filters.map(({ name, label = labelOf(name), options }) =>
        options ? (
          <Select
            key={name}
            size="xs"
            w={150}
            label={label}
            clearable
            placeholder={texts.all}
            data={[...options]}
            value={search[name] ?? null}
            onChange={(value) => apply({ [name]: value ?? undefined })}
          />
        ) : (
          <TextInput
            key={name}
            size="xs"
            w={170}
            label={label}
            value={typed[name] ?? ''}
            onChange={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
            onKeyDown={(event) =>
              event.key === 'Enter' && apply({ [name]: typed[name]?.trim() || undefined })
            }
            onBlur={() =>
              (typed[name] ?? '') !== (search[name] ?? '') &&
              apply({ [name]: typed[name]?.trim() || undefined })
            }
          />
        ),
      )}
      {isFiltered && (
        <Button
          size="xs"
          variant="subtle"
          onClick={() => {
            setTyped({});
            void navigate({ to: '.', search: {} as never, replace: true });
          }}
        >
          {texts.clear}
        </Button>
      )}
    </Group>
  );
}

/** What a spreadsheet would read as a formula is defused. */
function toCsvCell(value: unknown): string {
  const text =
    value === null || value === undefined
      ? ''
      : typeof value === 'object'
        ? JSON.stringify(value)
        : String(value);
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

function downloadCsv(path: string, columns: readonly string[], items: readonly Item[]): void {
  const lines = [
    columns.join(','),
    ...items.map((item) => columns.map((name) => toCsvCell(item[name])).join(',')),
  ];
  const url = URL.createObjectURL(
    new Blob([`${lines.join('\r\n')}\r\n`], { type: 'text/csv;charset=utf-8' }),
  );
  const link = Object.assign(document.createElement('a'), {
    href: url,
    download: `${path.slice(1).replaceAll('/', '-')}.csv`,
  });
  link.click();
  URL.revokeObjectURL(url);
}
