import { SimpleGrid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { get, type Page } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { type Item, List } from '../ui/list.tsx';
import { Busy, Head, Panel } from '../ui/parts.tsx';

const Outstanding = lazy(async () => ({ default: (await import('../ui/outstanding.tsx')).Outstanding }));

export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  return (
    <>
      <Head title={texts.overview.title} />
      <Stack>
        <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
          {offers('float.low') && (
            <Count
              label={texts.overview.lowFloats}
              path="/floats"
              query={{ low: true }}
              is={(item) => item['low'] === true}
            />
          )}
          {offers('batch.list') && (
            <Count label={texts.overview.running} path="/batches" query={{ status: 'PROCESSING' }} />
          )}
          {offers('approval.list') && (
            <Count
              label={texts.overview.approvals}
              path="/approvals"
              query={{}}
              is={(item) => item['state'] === 'waiting' || item['state'] === 'proposed'}
            />
          )}
          {offers('books.days') && <LastClose />}
        </SimpleGrid>
        {offers('books.report') && (
          <Panel title={`${texts.overview.outstanding} · ${texts.overview.ninetyDays}`}>
            <Suspense fallback={<Busy />}>
              <Outstanding />
            </Suspense>
          </Panel>
        )}
        {offers('transaction.list') && (
          <List
            path="/transactions"
            limit={10}
            refetchMs={10_000}
            columns={['timestamp', 'kind', 'merchantId', 'serialNumber', 'amount', 'currency', 'reference']}
            to={({ transactionId }) => `/transactions/${transactionId}`}
          />
        )}
      </Stack>
    </>
  );
}

function Stat({ label, value }: { label: string; value: string }) {
  return (
    <Panel>
      <div style={{ padding: 16 }}>
        <Text size="sm" className="quiet">
          {label}
        </Text>
        <div className="stat">{value}</div>
      </div>
    </Panel>
  );
}

function Count({
  label,
  path,
  query,
  is = () => true,
}: {
  label: string;
  path: string;
  query: Record<string, string | boolean>;
  is?: (item: Item) => boolean;
}) {
  const format = useFormat();
  const { data } = useQuery({
    queryKey: ['count', path, query],
    queryFn: () => get<Page<Item>>(path, { ...query, limit: 200 }),
    refetchInterval: 15_000,
    retry: false,
  });
  const count = data?.items.filter(is).length;
  return (
    <Stat
      label={label}
      value={count === undefined ? '–' : `${format.number(count)}${data?.nextCursor ? '+' : ''}`}
    />
  );
}

function LastClose() {
  const texts = useTexts().overview;
  const format = useFormat();
  const { data } = useQuery({
    queryKey: ['days'],
    queryFn: () => get<Page<Item>>('/books/days'),
    retry: false,
  });
  const closed = data?.items
    .filter(({ state }) => state === 'closed')
    .map(({ day }) => String(day))
    .sort()
    .at(-1);
  return <Stat label={texts.lastClose} value={closed ? format.day(closed) : texts.none} />;
}
