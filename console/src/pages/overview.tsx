import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense } from 'react';
import { type Point, type Points, readMovements, readOutstanding } from '../charts/read.ts';
import { useTexts } from '../i18n/index.tsx';
import { dayAfter, readDays } from '../reports.ts';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { List } from '../ui/list.tsx';
import { Busy, Head, Stat } from '../ui/parts.tsx';
import { Attention } from './attention.tsx';

// The top of the page does not wait for the charts.
const loadPanels = () => import('../charts/panel.tsx');
const OutstandingPanel = lazy(async () => ({ default: (await loadPanels()).OutstandingPanel }));
const FloatsPanel = lazy(async () => ({ default: (await loadPanels()).FloatsPanel }));

export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  return (
    <>
      <Head title={texts.nav.overview} />
      <Stack gap="lg">
        {offers('books.report') && <Today />}
        <div className="two">
          {offers('books.report') && (
            <Suspense fallback={<Busy />}>
              <OutstandingPanel />
            </Suspense>
          )}
          <Attention />
        </div>
        <div className="two">
          {offers('transaction.list') && (
            <List
              title={texts.overview.latest}
              of="transaction.list"
              limit={8}
              refetchMs={10_000}
              columns={['timestamp', 'kind', 'merchantId', 'amount']}
              narrow={['timestamp', 'kind', 'amount']}
              brief
            />
          )}
          {offers('float.show') && (
            <Suspense fallback={<Busy />}>
              <FloatsPanel />
            </Suspense>
          )}
        </div>
      </Stack>
    </>
  );
}

/** The money on vouchers and today's movements, in each currency. */
function Today() {
  const texts = useTexts();
  const format = useFormat();
  // These are the query keys of the other parts of the page, so nothing is read twice.
  const often = { refetchInterval: 30_000, retry: false } as const;
  const { data: days } = useQuery({ queryKey: ['days'], queryFn: readDays, ...often });
  const { data: outstanding } = useQuery({
    queryKey: ['chart', 'outstanding'],
    queryFn: readOutstanding,
    ...often,
  });
  const day = days?.at(-1)?.day ?? '';
  const { data: moved } = useQuery({
    queryKey: ['moved', day],
    queryFn: () => readMovements(day, dayAfter(day)),
    enabled: day !== '',
    ...often,
  });
  const isEmpty = days?.length === 0;
  const data = isEmpty ? [] : outstanding && moved && todayOf(outstanding, moved);
  const lines = (name: 'outstanding' | 'issued' | 'redeemed' | 'expired') => (
    <Stat key={name} label={texts.overview[name]}>
      {data === undefined ? (
        <span className="quiet">…</span>
      ) : data.length === 0 ? (
        <span className="quiet">–</span>
      ) : (
        data.map(({ currency, ...sums }) => (
          <div key={currency} className="stat-line">
            <small className="quiet">{currency}</small> {format.amount(sums[name], currency)}
          </div>
        ))
      )}
    </Stat>
  );
  return (
    <div className="stats">{(['outstanding', 'issued', 'redeemed', 'expired'] as const).map(lines)}</div>
  );
}

function todayOf(outstanding: Points, moved: Readonly<Record<string, Point>>) {
  return Object.entries(outstanding).map(([currency, points]) => ({
    currency,
    outstanding: Number(points.at(-1)?.['outstanding'] ?? 0),
    issued: Number(moved[currency]?.['issued'] ?? 0),
    redeemed: Number(moved[currency]?.['redeemed'] ?? 0),
    expired: Number(moved[currency]?.['expired'] ?? 0),
  }));
}
