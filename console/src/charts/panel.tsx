import { ActionIcon, Group } from '@mantine/core';
import { type QueryClient, useQuery } from '@tanstack/react-query';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import { figuresIn } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { Choice } from '../ui/choice.tsx';
import { useFormat } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { Rows } from '../ui/list.tsx';
import { Busy, Empty, Panel, Problem } from '../ui/parts.tsx';
import type { ChartProps } from './chart.tsx';
import { useCurrency } from './currency.ts';
import {
  FLOATS_MAX,
  type Point,
  type Points,
  readCohorts,
  readDeclines,
  readExpiring,
  readFloats,
  readMonths,
  readOutstanding,
} from './read.ts';

const Chart = lazy(async () => ({ default: (await import('./chart.tsx')).Chart }));
const HEIGHT = 256;
/** What a point opens into its entries with: it is not shown. */
const HIDDEN = ['startsAt', 'endsAt', 'merchantId'];

type Declared = Pick<ChartProps, 'kind' | 'x' | 'unit'> & {
  /** The operation without which there is no chart. */
  readonly needs: string;
  readonly read: (client: QueryClient) => Promise<Points | readonly Point[]>;
  /** If left out, every column except that of the axis. */
  readonly series?: readonly string[];
};

export const CHARTS = {
  outstanding: {
    needs: 'books.report',
    read: readOutstanding,
    kind: 'area',
    x: 'day',
    series: ['owed', 'outstanding'],
  },
  months: { needs: 'books.report', read: readMonths, kind: 'bars', x: 'month' },
  expiring: { needs: 'books.report', read: readExpiring, kind: 'bars', x: 'month', series: ['outstanding'] },
  curve: { needs: 'books.report', read: readCohorts, kind: 'lines', x: 'monthsSince', unit: 'percent' },
  floats: {
    needs: 'float.show',
    read: readFloats,
    kind: 'ranks',
    x: 'merchant',
    series: ['daysLeft'],
    unit: 'days',
  },
  declines: {
    needs: 'decline.count',
    read: readDeclines,
    kind: 'ranks',
    x: 'code',
    series: ['declines'],
    unit: 'count',
  },
} as const satisfies Record<string, Declared>;

/** A chart with its table, one currency at a time. */
/** @param isFollowing whether the currency is chosen elsewhere on the page */
export function ChartPanel({ name, isFollowing }: { name: keyof typeof CHARTS; isFollowing?: boolean }) {
  const { read, series, needs: _needs, ...chart }: Declared = CHARTS[name];
  const texts = useTexts().chart;
  const title = texts[name];
  const note = useNote(name);
  const [isTable, setTable] = useState(false);
  const [chosen, choose] = useCurrency();
  const { data, error, refetch } = useQuery({
    queryKey: ['chart', name],
    queryFn: ({ client }) => read(client),
    staleTime: 60_000,
    retry: false,
  });
  const byCurrency: Points = Array.isArray(data) ? { '': data } : ((data ?? {}) as Points);
  const lengthOf = (each: string) => byCurrency[each]?.length ?? 0;
  const currencies = Object.keys(byCurrency)
    .filter((each) => lengthOf(each) > 0)
    .sort();
  // At first, the currency with the longest history, or the first one, as beside the chart.
  const [longest = ''] = isFollowing
    ? currencies
    : currencies.toSorted((one, other) => lengthOf(other) - lengthOf(one));
  const currency = currencies.includes(chosen) ? chosen : longest;
  const points = byCurrency[currency] ?? [];
  const columns = [...new Set(points.flatMap((point) => Object.keys(point)))];
  const drawn = series ?? columns.filter((column) => column !== chart.x && !HIDDEN.includes(column));
  const aside = (
    <Group gap={8}>
      {isFollowing && <span className="quiet">{currency}</span>}
      {currencies.length > 1 && !isFollowing && (
        <Choice
          label={texts.currency}
          of={Object.fromEntries(currencies.map((each) => [each, each]))}
          value={currency}
          onChange={choose}
        />
      )}
      <ActionIcon
        variant="default"
        size={28}
        aria-label={`${isTable ? texts.chart : texts.table}: ${title}`}
        title={isTable ? texts.chart : texts.table}
        onClick={() => setTable(!isTable)}
      >
        <Icon name={isTable ? 'chart' : 'table'} size={16} />
      </ActionIcon>
    </Group>
  );
  const body = (): ReactNode => {
    if (error) return <Problem error={error} retry={() => void refetch()} />;
    if (!data) return <Busy />;
    if (points.length === 0) return <Empty text={texts.nothing} />;
    if (isTable)
      return (
        <div style={{ maxHeight: 2 * HEIGHT, overflowY: 'auto' }}>
          <Table {...{ name, points, columns, currency }} />
        </div>
      );
    return (
      <Suspense fallback={<Busy />}>
        <Chart {...chart} points={points} series={drawn} currency={currency} />
      </Suspense>
    );
  };
  return (
    <Panel title={title} aside={aside}>
      <div
        style={{
          minHeight: data && points.length === 0 ? 0 : HEIGHT,
          padding: isTable ? 0 : '4px 16px 12px',
        }}
      >
        {body()}
      </div>
      {note && points.length > 0 && (
        <p className="quiet" style={{ margin: 0, padding: '0 16px 12px', fontSize: '0.8125rem' }}>
          {note}
        </p>
      )}
    </Panel>
  );
}

type TableProps = {
  readonly name: string;
  readonly points: readonly Point[];
  readonly columns: readonly string[];
  readonly currency: string;
};

/** The figures of a chart's table, loaded with the table alone. */
function Table({ name, points, columns, currency }: TableProps) {
  const { operations } = useApp();
  const { data: opened } = useQuery({
    queryKey: ['opened', 'charts'],
    queryFn: async () => await import('./opened.ts'),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const [of, list] = { floats: ['float.show', 'items'], declines: ['decline.count', 'items'] }[name] ?? [];
  const figures =
    of && list
      ? figuresIn(operations?.get(of)?.figures, list)
      : name === 'curve'
        ? opened?.curved(columns)
        : opened?.CHARTED[name];
  const shown = columns.filter((column) => !HIDDEN.includes(column));
  return (
    <Rows
      items={points}
      columns={shown}
      currency={currency || undefined}
      figures={figures}
      around={currency ? { currency } : {}}
    />
  );
}

function useNote(name: string): string | undefined {
  const texts = useTexts().chart;
  const format = useFormat();
  if (name === 'floats') return texts.floatsNote(format.number(FLOATS_MAX));
  return { curve: texts.curveNote, declines: texts.declinesNote }[name];
}
