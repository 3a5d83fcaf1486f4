import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense } from 'react';
import type { Listed } from '../answers.ts';
import { useCurrency } from '../charts/currency.ts';
import { type Point, readDay } from '../charts/read.ts';
import type { Catalogue } from '../i18n/en.ts';
import { useTexts } from '../i18n/index.tsx';
import { NEWEST_DAYS } from '../reports.ts';
import { useApp } from '../ui/app.tsx';
import { useAtWork } from '../ui/at-work.ts';
import { Choice } from '../ui/choice.tsx';
import { DemoTour } from '../ui/demo.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { countOf, useAbout, useInbox } from '../ui/inbox.tsx';
import { INSTALLATION } from '../ui/installation.ts';
import { useItems } from '../ui/items.ts';
import { List } from '../ui/list.tsx';
import type { ListProps } from '../ui/lists.tsx';
import { Busy, Empty, Head, Panel, Stat } from '../ui/parts.tsx';
import { useSetup } from '../ui/setup.tsx';
import { useWords } from '../ui/words.ts';

// The top of the page does not wait for the charts.
const ChartPanel = lazy(async () => ({ default: (await import('../charts/panel.tsx')).ChartPanel }));

export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  const hasBooks = offers('books.report');
  const { isInUse, steps, dialog } = useSetup(offers('setup.show'));
  return (
    <>
      <Head title={texts.nav.overview} />
      <Stack gap="lg">
        <DemoTour />
        {!isInUse && steps}
        <div className="stats">
          {hasBooks && <Today />}
          {offers('decline.count') && <DeclinedToday />}
        </div>
        <div className="two">
          {hasBooks ? (
            <Suspense fallback={<Busy />}>
              <ChartPanel name="outstanding" isFollowing />
            </Suspense>
          ) : (
            <Work />
          )}
          <Attention />
        </div>
        <div className="two">
          {hasBooks && <Work />}
          {hasBooks && offers('float.show') && (
            <Suspense fallback={<Busy />}>
              <ChartPanel name="floats" />
            </Suspense>
          )}
        </div>
        {isInUse && steps}
        {dialog}
      </Stack>
    </>
  );
}

type WorkList = ListProps & { readonly may: string; readonly not?: string };

/** The lists that people work on, by what their roles permit: a person has the first that applies. */
const worksOf = ({ overview: texts, transactions, codes, empty }: Catalogue): readonly WorkList[] => [
  {
    ...{ may: 'settlement.pay', not: 'voucher.unlock-pin', of: 'settlement.list', title: texts.settlements },
    fixed: { state: 'APPROVED' },
    empty: <Empty text={empty.settlements} />,
    columns: ['number', 'merchantId', 'dueOn', 'payable'],
    narrow: ['number', 'dueOn', 'payable'],
  },
  {
    ...{ may: 'batch.generate', not: 'settlement.pay', of: 'batch.list', title: texts.batches },
    empty: <Empty text={empty.batches} />,
    columns: ['acceptedAt', 'reference', 'merchantId', 'status', 'quantity'],
  },
  {
    ...{ may: 'voucher.unlock-pin', not: 'batch.generate', of: 'decline.list', title: transactions.declined },
    empty: <Empty text={empty.declines} />,
    columns: ['at', 'merchantId', 'serialNumber', 'code', 'amount'],
    narrow: ['at', 'serialNumber', 'code'],
    cell: (name, { code }) => (name === 'code' ? (codes[String(code)] ?? String(code)) : undefined),
  },
  {
    ...{ may: 'transaction.list', of: 'transaction.list', title: texts.latest },
    empty: <Empty text={empty.transactions} />,
    columns: ['timestamp', 'kind', 'merchantId', 'amount'],
  },
];

function Work() {
  const texts = useTexts();
  const { offers } = useApp();
  const found = worksOf(texts).find(({ may, not }) => offers(may) && !(not && offers(not)));
  if (!found) return null;
  const { may: _may, not: _not, ...list } = found;
  return <List {...list} limit={8} brief />;
}

/** All parts of the page read the days together. */
const DAYS = { ...NEWEST_DAYS, refetchInterval: 300_000, retry: false } as const;

/** The money on vouchers and today's movements in one currency, beside those of the day before. */
function Today() {
  const texts = useTexts();
  const format = useFormat();
  const { data: days } = useQuery(DAYS);
  const [yesterday, day] = [days?.at(-2), days?.at(-1)?.day ?? ''];
  const before = yesterday?.day;
  const { data: sums } = useQuery({
    queryKey: ['day', day],
    queryFn: () => readDay(day),
    enabled: day !== '',
    refetchInterval: 60_000,
    retry: false,
  });
  const { data: earlier } = useQuery({
    queryKey: ['day', before, yesterday?.state],
    queryFn: () => readDay(before ?? ''),
    enabled: before !== undefined,
    // A closed day never changes.
    staleTime: yesterday?.state === 'closed' ? Number.POSITIVE_INFINITY : 60_000,
    retry: false,
  });
  const today = sums && (before === undefined || earlier) ? todayOf(sums, earlier) : undefined;
  // The addresses of the entries behind the amounts.
  const isAtWork = useAtWork();
  const { data: opened } = useQuery({
    queryKey: ['opened'],
    enabled: isAtWork,
    queryFn: async () => (await import('../charts/opened.ts')).OPENED,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const [currency, choose] = useCurrency();
  const data = days?.length === 0 ? {} : today;
  // What nobody has and nothing moves is left out.
  const currencies = Object.keys(data ?? {}).filter((each) =>
    Object.values(data?.[each] ?? {}).some(({ now, last = 0 }) => now !== 0 || last !== 0),
  );
  const shown = currencies.includes(currency) ? currency : (currencies[0] ?? '');
  return (
    <>
      {currencies.length > 1 && (
        <div className="whole">
          <Choice
            label={texts.chart.currency}
            of={Object.fromEntries(currencies.map((each) => [each, each]))}
            value={shown}
            onChange={choose}
          />
        </div>
      )}
      {SUMS.map((name) => {
        const { now, last } = data?.[shown]?.[name] ?? {};
        return (
          <Stat
            key={name}
            label={texts.overview[name]}
            note={
              before &&
              last !== undefined && (
                <Figure
                  of={opened?.[name]}
                  value={last}
                  around={[{ currency: shown, day: before, startsAt: before, endsAt: before }]}
                >
                  {texts.overview.dayBefore(`${format.money(last, shown)}`)}
                </Figure>
              )
            }
          >
            {now === undefined ? (
              <span className="quiet">{data === undefined ? '…' : '–'}</span>
            ) : (
              <div className="stat-line">
                <Figure
                  of={opened?.[name]}
                  value={now}
                  around={[{ currency: shown, day, startsAt: day, endsAt: day }]}
                >
                  {format.money(now, shown)}
                </Figure>
              </div>
            )}
          </Stat>
        );
      })}
    </>
  );
}

const SUMS = ['outstanding', 'issued', 'redeemed', 'expired'] as const;
type Sums = Readonly<
  Record<(typeof SUMS)[number], { readonly now: number; readonly last: number | undefined }>
>;
type Day = Readonly<Record<string, Point>>;

/** The sums of a day and of the day before it, if the books have it, in each currency. */
function todayOf(today: Day, before: Day | undefined): Readonly<Record<string, Sums>> {
  const sums = (currency: string) =>
    Object.fromEntries(
      SUMS.map((name) => {
        const of = (day: Day) => Number(day[currency]?.[name] ?? 0);
        return [name, { now: of(today), last: before && of(before) }];
      }),
    ) as Sums;
  const currencies = new Set([...Object.keys(today), ...Object.keys(before || {})]);
  return Object.fromEntries([...currencies].sort().map((currency) => [currency, sums(currency)]));
}

const REASONS = 2;

/** How many requests were declined today, and mostly why. The count has days of UTC. */
function DeclinedToday() {
  const { overview: texts, codes } = useTexts();
  const figures = useApp().operations?.get('decline.count')?.figures;
  const format = useFormat();
  const day = new Date().toISOString().slice(0, 10);
  const found = useItems<Listed<'decline.count'>>('/declines/count', {
    query: { from: day, to: day },
    refetchMs: 60_000,
  });
  const total = found?.reduce((sum, { declines }) => sum + declines, 0);
  const reasons = found?.slice(0, REASONS).map(({ code, declines }) => `${codes[code] ?? code}: ${declines}`);
  return (
    <Stat label={texts.declined} to="/transactions?tab=declined" note={reasons?.join(', ')}>
      {total === undefined ? (
        <span className="quiet">…</span>
      ) : (
        <Figure of={figures?.['items.declines']} value={total} around={[]}>
          {format.number(total)}
        </Figure>
      )}
    </Stat>
  );
}

/** Matters that need attention, with links to them. What somebody else resolves is quiet. */
function Attention() {
  const { overview: texts } = useTexts();
  const { offers } = useApp();
  const { kind } = useWords();
  const format = useFormat();
  const about = useAbout();
  const matters = useInbox();
  const { data: days } = useQuery({ ...DAYS, enabled: offers('books.days') });
  const { data: checked } = useQuery({ ...INSTALLATION, enabled: offers('installation.check') });
  const closed = days?.filter(({ state }) => state === 'closed').at(-1);
  const findings = checked?.findings.filter(({ state }) => state !== 'ok').length ?? 0;
  return (
    <Panel title={texts.attention}>
      <ul className="plain-list">
        {matters?.map((matter) => (
          <Line
            key={matter.matter}
            to={matter.link}
            label={kind(matter.matter, 'matter')}
            count={countOf(matter)}
            isAlert={matter.isYours}
            note={about(matter)}
          />
        ))}
        {findings > 0 && <Line to="/system" label={texts.installation} count={String(findings)} isAlert />}
        {matters?.length === 0 && findings === 0 && <li className="quiet">{texts.nothing}</li>}
        {days && (
          <Line to="/books" label={texts.lastClose} count={closed ? format.day(closed.day) : texts.none} />
        )}
      </ul>
    </Panel>
  );
}

type LineProps = { to: string; label: string; count: string; isAlert?: boolean; note?: string };

function Line({ to, label, count, isAlert = false, note }: LineProps) {
  return (
    <li className="line">
      <span>
        <Link to={to} className="quiet-link">
          {label}
        </Link>
        {note && (
          <small className="quiet" data-recorded="">
            {note}
          </small>
        )}
      </span>
      <b className={isAlert ? 'warn' : undefined}>{count}</b>
    </li>
  );
}
