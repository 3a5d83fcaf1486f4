import { ActionIcon, Anchor, Group, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { reports } from '../../generated/reports.ts';
import type { Listed } from '../answers.ts';
import { UNDECLARED } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import { DAYS, type Day, monthsOf, numberOf, type Report, type Row, readReport } from '../reports.ts';
import { useApp } from '../ui/app.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import { useItems } from '../ui/items.ts';
import { Busy, Empty, Panel, Problem } from '../ui/parts.tsx';
import { useWords } from '../ui/words.ts';

type Month = ReturnType<typeof monthsOf>[number];

/** What is to be done until a month can be reported, how it compares with the one before, and its reports. */
export function MonthEnd() {
  const { data: days, error } = useQuery(DAYS);
  if (error) return <Problem error={error} />;
  return days ? <OfMonths days={days} /> : <Busy />;
}

function OfMonths({ days }: { days: readonly Day[] }) {
  const texts = useTexts();
  const format = useFormat();
  const months = monthsOf(days);
  // The last one that has ended.
  const [at, setAt] = useState(Math.max(0, months.length - 2));
  const month = months[at];
  if (!month) return <Empty text={texts.chart.nothing} />;
  const step = (to: number, label: string, text: string) => (
    <ActionIcon
      variant="default"
      size={26}
      aria-label={label}
      disabled={!months[to]}
      onClick={() => setAt(to)}
    >
      {text}
    </ActionIcon>
  );
  const aside = (
    <Group gap={4}>
      {step(at - 1, texts.books.before, '←')}
      {step(at + 1, texts.books.after, '→')}
    </Group>
  );
  return (
    <div className="two">
      <Stack>
        <Panel title={format.month(month.month)} aside={aside}>
          <Steps month={month} days={days.filter(({ day }) => day.startsWith(month.month))} />
        </Panel>
        <Compared month={month} before={months[at - 1]} />
      </Stack>
      <ReportLinks month={month} />
    </div>
  );
}

type StepProps = { label: string; to: string; isDone: boolean; state: string };

function StepLine({ label, to, isDone, state }: StepProps) {
  return (
    <li className="line">
      <Anchor component={Link} to={to}>
        {label}
      </Anchor>
      <span className={isDone ? 'ok' : 'warn'}>
        {isDone && <Icon name="approvals" size={16} />} {state}
      </span>
    </li>
  );
}

/** The steps, each with what is left of it. None can be ticked off. */
function Steps({ month, days }: { month: Month; days: readonly Day[] }) {
  const { monthEnd: texts, setup } = useTexts();
  const { offers } = useApp();
  const open = useItems<Listed<'bank.open'>>('/bank/open', { enabled: offers('bank.open') });
  const settlements = useItems<Listed<'settlement.list'>>('/settlements', {
    query: { limit: 200 },
    enabled: offers('settlement.list'),
  });
  const closed = days.filter(({ state }) => state === 'closed').length;
  const own = settlements?.filter(({ lastDay }) => lastDay.startsWith(month.month)) ?? [];
  const count = (isCounted: (each: Listed<'settlement.list'>) => boolean) => own.filter(isCounted).length;
  const unmatched = open?.reduce((sum, { entries }) => sum + entries, 0) ?? 0;
  const drafts = count(({ state }) => state === 'DRAFT');
  const unpaid = count(({ state, payable }) => payable > 0 && (state === 'APPROVED' || state === 'RETURNED'));
  const disputed = count(({ openDisputes }) => openDisputes > 0);
  const line = (label: string, to: string, left: number) => (
    <StepLine label={label} to={to} isDone={left === 0} state={left === 0 ? setup.done : texts.left(left)} />
  );
  return (
    <ol className="plain-list">
      <StepLine
        label={texts.days}
        to="/books"
        isDone={closed === days.length}
        state={setup.progress(closed, days.length)}
      />
      {open && line(texts.bank, '/bank?tab=match', unmatched)}
      {settlements && line(texts.drafts, '/settlements?state=DRAFT', drafts)}
      {settlements && line(texts.unpaid, '/settlements?state=APPROVED', unpaid)}
      {settlements && line(texts.disputes, '/settlements', disputed)}
    </ol>
  );
}

/** The reports of the whole operator, for the days of the month. */
function ReportLinks({ month: { from, to } }: { month: Month }) {
  const texts = useTexts();
  return (
    <Panel title={texts.monthEnd.reports}>
      <ul className="plain-list">
        {reports
          .filter(({ ofMerchant }) => ofMerchant !== 'always')
          .map(({ name, number }) => (
            <li key={name} className="line">
              <Anchor component={Link} to={`/books/reports/${name}`} search={{ from, to } as never}>
                {texts.reports[name].title}
              </Anchor>
              <span className="quiet">{number}</span>
            </li>
          ))}
      </ul>
    </Panel>
  );
}

const LIABILITY = reports.find(({ name }) => name === 'liability');

/** The totals of R2 in a month, by currency. */
const readTotals = ({ from, to }: Month) => readReport('liability', { from, to, section: 'total' });

/** The money on vouchers in the month and in the one before. */
function Compared({ month, before }: { month: Month; before: Month | undefined }) {
  const { monthEnd: texts } = useTexts();
  const format = useFormat();
  const { label } = useWords();
  const { data, error } = useQuery({
    queryKey: ['month-end', month.from, month.to, before?.from],
    queryFn: async () => [await readTotals(month), before && (await readTotals(before))] as const,
    retry: false,
  });
  if (error) return <Problem error={error} />;
  if (!data) return <Busy />;
  const [now, last] = data;
  return now.tables.map(({ currency, columns, rows }) => {
    const earlier = last?.tables.find((table) => table.currency === currency)?.rows ?? [];
    const shown = columns.filter(
      (name) =>
        LIABILITY?.columns[name] === 'money' &&
        (sumOf(rows, name) !== 0 || sumOf(earlier, name) !== 0 || name === 'closing'),
    );
    return (
      <Panel key={currency} title={`${texts.compared} · ${currency}`}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and the keyboard must reach it */}
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for inputs */}
        <div className="table-scroll" role="group" aria-label={currency} tabIndex={0}>
          <table className="rows" aria-label={`${texts.compared} · ${currency}`}>
            <thead>
              <tr>
                <th scope="col" className="from-edge">
                  {texts.movement}
                </th>
                <th scope="col" className="number wide">
                  {before ? format.month(before.month) : texts.before}
                </th>
                <th scope="col" className="number">
                  {format.month(month.month)}
                </th>
                <th scope="col" className="number to-edge">
                  {texts.change}
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((name) => {
                const [value, old] = [sumOf(rows, name), sumOf(earlier, name)];
                return (
                  <tr key={name} className={name === 'closing' ? 'total' : undefined}>
                    <td className="from-edge">{label(name)}</td>
                    <td className="number wide">
                      <Sum of={last} rows={earlier} name={name} currency={currency} />
                    </td>
                    <td className="number">
                      <Sum of={now} rows={rows} name={name} currency={currency} />
                    </td>
                    <td className="number to-edge">
                      {value === old ? (
                        <span className="quiet">–</span>
                      ) : (
                        <Figure of={UNDECLARED.difference} value={value - old} around={[]}>
                          {format.moved(value - old, currency)}
                        </Figure>
                      )}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      </Panel>
    );
  });
}

const sumOf = (rows: readonly Row[], name: string) => rows.reduce((sum, row) => sum + numberOf(row[name]), 0);

type SumProps = { of: Report | undefined; rows: readonly Row[]; name: string; currency: string };

/** A sum, which opens into its entries. */
function Sum({ of, rows, name, currency }: SumProps) {
  const format = useFormat();
  const [row, ...others] = rows;
  if (!of || !row) return <span className="quiet">–</span>;
  const value = sumOf(rows, name);
  const { startsAt, endsAt } = of;
  return (
    <Figure
      of={others.length === 0 ? LIABILITY?.figures['total']?.[name] : undefined}
      value={value}
      around={[row, { currency, startsAt, endsAt }]}
    >
      {format.amount(value, currency)}
    </Figure>
  );
}
