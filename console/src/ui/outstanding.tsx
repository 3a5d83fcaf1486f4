import '@mantine/charts/styles.css';
import { AreaChart } from '@mantine/charts';
import { Button, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { get, type Page } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useFormat } from './format.ts';
import { type Item, Rows } from './list.tsx';
import { Busy, Empty, Problem } from './parts.tsx';

type Report = {
  readonly rows?: readonly Item[];
  readonly items?: readonly Item[];
  readonly currency?: string;
};

const DAYS = 90;

/** What vouchers carry and what is owed, day by day (R3), as a chart or a table. */
export function Outstanding() {
  const texts = useTexts();
  const format = useFormat();
  const [isTable, setTable] = useState(false);
  const to = new Date().toISOString().slice(0, 10);
  const from = new Date(Date.now() - DAYS * 86_400_000).toISOString().slice(0, 10);
  const { data, error } = useQuery({
    queryKey: ['outstanding', from, to],
    queryFn: async () => {
      // The books begin with their first day, and a report takes no day before it.
      const { items } = await get<Page<Item>>('/books/days', { from, to });
      const days = items.map(({ day }) => String(day)).sort();
      const [first, last] = [days[0], days.at(-1)];
      return first === undefined
        ? ({} as Report)
        : get<Report>('/books/reports/outstanding', { from: first, to: last });
    },
    retry: false,
  });
  if (error)
    return (
      <div style={{ padding: 16 }}>
        <Problem error={error} />
      </div>
    );
  if (!data) return <Busy />;
  const rows = data.rows ?? data.items ?? [];
  const first = rows[0];
  if (!first) return <Empty text={texts.list.empty} />;
  const currencies = [...new Set(rows.map((row) => String(row['currency'])))];
  const chosen = currencies.includes('EUR') ? 'EUR' : currencies[0];
  const shown = rows.filter((row) => String(row['currency']) === chosen);
  return (
    <Stack p="md" gap="xs">
      {isTable ? (
        <Rows items={shown} columns={Object.keys(first)} />
      ) : (
        <AreaChart
          h={220}
          withDots={false}
          curveType="linear"
          dataKey="day"
          withLegend
          data={shown.map((row) => ({
            day: String(row['day']),
            outstanding: Number(row['outstanding']),
            owed: Number(row['owed']),
          }))}
          series={[
            { name: 'outstanding', label: texts.overview.outstanding, color: 'accent.6' },
            { name: 'owed', label: texts.overview.owed, color: 'gray.5' },
          ]}
          valueFormatter={(value) => format.money(value, chosen ?? 'USD')}
          yAxisProps={{ width: 110 }}
        />
      )}
      <Button
        size="compact-xs"
        variant="subtle"
        style={{ alignSelf: 'flex-start' }}
        onClick={() => setTable(!isTable)}
      >
        {isTable ? texts.overview.chart : texts.overview.table}
      </Button>
    </Stack>
  );
}
