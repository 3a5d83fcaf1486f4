import { ActionIcon, Group, SegmentedControl } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, type ReactNode, Suspense, useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { useFormat } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { Rows } from '../ui/list.tsx';
import { Busy, Empty, Panel, Problem } from '../ui/parts.tsx';
import { FLOATS_MAX, type Point, type Points, readFloats, readOutstanding } from './read.ts';

export type ChartKind = 'area' | 'bars' | 'lines' | 'ranks';
export type ChartProps = {
  readonly kind: ChartKind;
  readonly points: readonly Point[];
  /** The column of the axis, and the columns that are drawn. */
  readonly x: string;
  readonly series: readonly string[];
  readonly currency?: string;
  readonly unit?: 'money' | 'percent' | 'days' | 'count';
};

const Chart = lazy(async () => ({ default: (await import('./chart.tsx')).Chart }));
const HEIGHT = 256;

type Props = Omit<ChartProps, 'points' | 'series' | 'currency'> & {
  readonly title: string;
  readonly name: string;
  readonly read: () => Promise<Points | readonly Point[]>;
  /** If left out, every column except that of the axis. */
  readonly series?: readonly string[];
  readonly note?: string;
};

/** A chart with its table, one currency at a time. */
export function ChartPanel({ title, name, read, note, series, ...chart }: Props) {
  const texts = useTexts().chart;
  const [isTable, setTable] = useState(false);
  const [chosen, setChosen] = useState<string>();
  const { data, error, refetch } = useQuery({
    queryKey: ['chart', name],
    queryFn: read,
    staleTime: 60_000,
    retry: false,
  });
  const byCurrency: Points = Array.isArray(data) ? { '': data } : ((data ?? {}) as Points);
  const lengthOf = (each: string) => byCurrency[each]?.length ?? 0;
  const currencies = Object.keys(byCurrency)
    .filter((each) => lengthOf(each) > 0)
    .sort();
  // At first, the currency with the longest history.
  const currency = chosen ?? currencies.toSorted((one, other) => lengthOf(other) - lengthOf(one))[0] ?? '';
  const points = byCurrency[currency] ?? [];
  const columns = [...new Set(points.flatMap((point) => Object.keys(point)))];
  const drawn = series ?? columns.filter((column) => column !== chart.x);
  const aside = (
    <Group gap={8}>
      {currencies.length > 1 && (
        <SegmentedControl
          size="xs"
          aria-label={texts.currency}
          data={currencies}
          value={currency}
          onChange={setChosen}
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
          <Rows items={points} columns={columns} currency={currency || undefined} />
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
      <div style={{ minHeight: HEIGHT, padding: isTable ? 0 : '4px 16px 12px' }}>{body()}</div>
      {note && (
        <p className="quiet" style={{ margin: 0, padding: '0 16px 12px', fontSize: '0.8125rem' }}>
          {note}
        </p>
      )}
    </Panel>
  );
}

/** The money on vouchers, and all that is owed to others, day by day. */
export function OutstandingPanel() {
  const texts = useTexts().chart;
  return (
    <ChartPanel
      title={texts.outstanding}
      name="outstanding"
      read={readOutstanding}
      kind="area"
      x="day"
      series={['owed', 'outstanding']}
    />
  );
}

/** How long each float lasts. */
export function FloatsPanel() {
  const texts = useTexts().chart;
  const format = useFormat();
  return (
    <ChartPanel
      title={texts.floats}
      note={texts.floatsNote(format.number(FLOATS_MAX))}
      name="floats"
      read={readFloats}
      kind="ranks"
      x="merchant"
      series={['daysLeft']}
      unit="days"
    />
  );
}
