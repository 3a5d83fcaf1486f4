import { lazy, Suspense } from 'react';
import type { PortalAnswer } from '../answers.ts';
import type { Figure as Declared } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import { dayAfter } from '../reports.ts';
import { useApp } from '../ui/app.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { todayIn } from '../ui/format-of.ts';
import { useItems } from '../ui/items.ts';
import { Busy, Panel, Stat } from '../ui/parts.tsx';

const Chart = lazy(async () => ({ default: (await import('../charts/chart.tsx')).Chart }));

type Redeemed = PortalAnswer<'books.redeemed'>['items'][number];

const DAYS = 30;
const HEIGHT = 220;

/** The periods of the tiles, in days up to today. */
const PERIODS = { today: 1, week: 7, month: DAYS } as const;

function useRedeemed(): { readonly items: readonly Redeemed[] | undefined; readonly today: string } {
  const items = useItems<Redeemed>('/books/redeemed', { query: { days: DAYS }, refetchMs: 60_000 });
  return { items, today: todayIn(useApp().session?.zone ?? 'UTC') };
}

const currenciesOf = (items: readonly Redeemed[]) =>
  [...new Set(items.map(({ currency }) => currency))].sort();

/** The figure of a day, from an earlier day on. */
const since = (from: string, figure: Declared = []): Declared =>
  figure.map((each) => ({ ...each, ...(each.given && { given: { ...each.given, from } }) }));

/** What was redeemed today, in 7 and in 30 days. Each tile leads to its transactions. */
export function Sales() {
  const texts = useTexts().sales;
  const format = useFormat();
  const { items, today } = useRedeemed();
  const figures = useApp().operations?.get('books.redeemed')?.figures;
  return (Object.keys(PERIODS) as (keyof typeof PERIODS)[]).map((name) => {
    const first = dayAfter(today, 1 - PERIODS[name]);
    const within = items?.filter(({ day }) => day >= first);
    const count = within?.reduce((sum, { redemptions }) => sum + redemptions, 0) ?? 0;
    return (
      <Stat
        key={name}
        label={texts[name]}
        to={`/transactions?from=${first}`}
        note={within && texts.redemptions(count, format.number(count))}
      >
        {within === undefined ? (
          <span className="quiet">…</span>
        ) : within.length === 0 ? (
          <span className="quiet">–</span>
        ) : (
          currenciesOf(within).map((currency) => {
            const own = within.filter((each) => each.currency === currency);
            const sum = own.reduce((total, { redeemed }) => total + redeemed, 0);
            return (
              <div key={currency}>
                <Figure
                  of={since(first, figures?.['items.redeemed'])}
                  value={sum}
                  around={[{ currency, day: today }]}
                >
                  {format.money(sum, currency)}
                </Figure>
              </div>
            );
          })
        )}
      </Stat>
    );
  });
}

/** The same day by day, in each currency. */
export function SalesCharts() {
  const texts = useTexts().sales;
  const { items = [], today } = useRedeemed();
  const days = Array.from({ length: DAYS }, (_, back) => dayAfter(today, 1 - DAYS + back));
  return currenciesOf(items).map((currency) => {
    const own = new Map(items.filter((each) => each.currency === currency).map((each) => [each.day, each]));
    const points = days.map((day) => ({ day, redeemed: own.get(day)?.redeemed ?? 0 }));
    return (
      <Panel key={currency} title={texts.chart(currency)}>
        <div style={{ minHeight: HEIGHT, padding: '4px 16px 12px' }}>
          <Suspense fallback={<Busy />}>
            <Chart kind="bars" points={points} x="day" series={['redeemed']} currency={currency} />
          </Suspense>
        </div>
      </Panel>
    );
  });
}
