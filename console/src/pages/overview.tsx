import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import type { Query } from '../api.ts';
import { type Point, type Points, readMovements, readOwed } from '../charts/read.ts';
import { useTexts } from '../i18n/index.tsx';
import { dayAfter, readDays } from '../reports.ts';
import { useApp } from '../ui/app.tsx';
import { DemoTour } from '../ui/demo.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { INSTALLATION } from '../ui/installation.ts';
import { useItems } from '../ui/items.ts';
import { List } from '../ui/list.tsx';
import { Busy, Head, Panel, Stat } from '../ui/parts.tsx';
import { SetupList } from '../ui/setup.tsx';

// The top of the page does not wait for the charts.
const ChartPanel = lazy(async () => ({ default: (await import('../charts/panel.tsx')).ChartPanel }));

export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  return (
    <>
      <Head title={texts.nav.overview} />
      <Stack gap="lg">
        <DemoTour />
        {offers('setup.show') && <SetupList />}
        {offers('books.report') && <Today />}
        <div className="two">
          {offers('books.report') && (
            <Suspense fallback={<Busy />}>
              <ChartPanel name="outstanding" />
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
              columns={['timestamp', 'kind', 'merchantId', 'amount']}
              brief
            />
          )}
          {offers('float.show') && (
            <Suspense fallback={<Busy />}>
              <ChartPanel name="floats" />
            </Suspense>
          )}
        </div>
      </Stack>
    </>
  );
}

/** All parts of the page read the days together. */
const DAYS = { queryKey: ['days'], queryFn: readDays, refetchInterval: 300_000, retry: false } as const;

/** The money on vouchers and today's movements, in each currency. */
function Today() {
  const texts = useTexts();
  const format = useFormat();
  const { data: days } = useQuery(DAYS);
  const day = days?.at(-1)?.day ?? '';
  const { data: today } = useQuery({
    queryKey: ['today', day],
    queryFn: async () => {
      const to = dayAfter(day);
      return todayOf(...(await Promise.all([readOwed(day, to), readMovements(day, to)])));
    },
    enabled: day !== '',
    refetchInterval: 60_000,
    retry: false,
  });
  // The addresses of the entries behind the amounts are loaded after the amounts.
  const { data: opened } = useQuery({
    queryKey: ['opened'],
    queryFn: async () => (await import('../charts/opened.ts')).OPENED,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const data = days?.length === 0 ? [] : today;
  const lines = (name: 'outstanding' | 'issued' | 'redeemed' | 'expired') => (
    <Stat key={name} label={texts.overview[name]}>
      {data === undefined ? (
        <span className="quiet">…</span>
      ) : data.length === 0 ? (
        <span className="quiet">–</span>
      ) : (
        data.map(({ currency, ...sums }) => (
          <div key={currency} className="stat-line">
            <small className="quiet">{currency}</small>{' '}
            <Figure
              of={opened?.[name]}
              value={sums[name]}
              around={[{ currency, day, startsAt: day, endsAt: day }]}
            >
              {format.amount(sums[name], currency)}
            </Figure>
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

/** The number of low floats that are named. */
const NAMED_MAX = 3;

/** Matters that need attention, with links to them. */
function Attention() {
  const { overview: texts, chart } = useTexts();
  const { offers } = useApp();
  const format = useFormat();
  const waiting = useWatched('approval.list', '/approvals', { forMe: true });
  const running = useWatched('batch.list', '/batches', { status: 'PROCESSING' });
  const low = useWatched('float.low', '/floats/low');
  const reached = useWatched('daily-limit.list', '/daily-limits', { reached: true });
  const full = useWatched('product.list', '/products', { reached: true }) ?? [];
  const network = useItems('/settings/network', { enabled: offers('settings.network'), refetchMs: 60_000 });
  const endpoints = useWatched('webhook.list', '/webhooks', { limit: 200 });
  const { data: days } = useQuery({ ...DAYS, enabled: offers('books.days') });
  const { data: checked } = useQuery({ ...INSTALLATION, enabled: offers('installation.check') });
  const near = network?.filter(({ state }) => state !== 'below') ?? [];
  const hasPassed = near.some(({ state }) => state === 'passed');
  const failing = endpoints?.filter((item) => item['failingSince'] || item['enabled'] === false);
  const closed = days?.filter(({ state }) => state === 'closed').at(-1);
  const late = days?.filter(({ state }) => state === 'closing').length ?? 0;
  return (
    <Panel title={texts.attention}>
      <ul className="plain-list">
        <Line to="/approvals" label={texts.approvals} count={waiting?.length} isAlert />
        <Line to="/batches?status=PROCESSING" label={texts.running} count={running?.length} />
        <Line
          to="/merchants"
          label={texts.lowFloats}
          count={low?.length}
          isAlert
          note={low
            ?.slice(0, NAMED_MAX)
            .map(({ merchant, daysLeft }) =>
              daysLeft === null ? merchant : `${merchant}: ${chart.lasts(Number(daysLeft))}`,
            )
            .join(', ')}
        />
        <Line
          to={reached?.[0] ? `/merchants/${reached[0]['merchantId']}?tab=limits` : '/merchants'}
          label={texts.limits}
          count={reached?.length}
          isAlert
        />
        {full.length > 0 && (
          <Line
            to={full[0] && full.length === 1 ? `/products/${full[0]['code']}` : '/products'}
            label={texts.full}
            count={full.length}
            isAlert
          />
        )}
        {near.length > 0 && (
          <Line
            to="/settings"
            label={hasPassed ? texts.networkPassed : texts.networkNear}
            count={near.length}
            isAlert
            note={near
              .map(({ paid, amount, percent, currency }) =>
                texts.networkPaid(
                  format.money(Number(paid), String(currency)),
                  format.money(Number(amount), String(currency)),
                  Number(percent),
                ),
              )
              .join(', ')}
          />
        )}
        <Line to="/webhooks" label={texts.webhooks} count={failing?.length} isAlert />
        <Line
          to="/system"
          label={texts.installation}
          count={checked?.findings.filter(({ state }) => state !== 'ok').length}
          isAlert
        />
        {days && (
          <li className="line">
            <Link to="/books" className="quiet-link">
              {texts.lastClose}
            </Link>
            <span className={late > 1 ? 'warn' : undefined}>
              {closed ? format.day(closed.day) : texts.none}
            </span>
          </li>
        )}
      </ul>
    </Panel>
  );
}

function useWatched(list: string, path: string, query: Query = {}) {
  const { offers } = useApp();
  return useItems(path, { query: { limit: 50, ...query }, enabled: offers(list), refetchMs: 60_000 });
}

type LineProps = {
  to: string;
  label: string;
  count: number | undefined;
  isAlert?: boolean;
  note?: string;
};

function Line({ to, label, count, isAlert = false, note }: LineProps) {
  if (count === undefined) return null;
  return (
    <li className="line">
      <span>
        <Link to={to} className="quiet-link">
          {label}
        </Link>
        {note && <small className="quiet">{note}</small>}
      </span>
      <b className={isAlert && count > 0 ? 'warn' : count === 0 ? 'quiet' : undefined}>{count}</b>
    </li>
  );
}
