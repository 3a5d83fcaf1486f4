import { ActionIcon, Alert, Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, useState } from 'react';
import { reports } from '../../generated/reports.ts';
import type { Answer } from '../answers.ts';
import { get } from '../api.ts';
import { figuresIn } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import { DAYS, type Day } from '../reports.ts';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import type { Item } from '../ui/item.ts';
import { Rows } from '../ui/list.tsx';
import { PageHead, PageTabs, useTab } from '../ui/page.tsx';
import { Busy, Panel, Problem } from '../ui/parts.tsx';
import { State } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

const Rules = lazy(async () => ({ default: (await import('./rules.tsx')).Rules }));
const MonthEnd = lazy(async () => ({ default: (await import('./month-end.tsx')).MonthEnd }));
const Charts = lazy(async () => ({ default: (await import('./charts.tsx')).Charts }));

export function Screen() {
  const { books: texts, monthEnd: titles, nav } = useTexts();
  const { offers } = useApp();
  const [closed, setClosed] = useState<Answer<'books.close'>>();
  const { data: days } = useDays();
  const rules = { key: 'rules', label: texts.rules, body: <Rules /> };
  const tabs = [
    { key: 'days', label: texts.days, body: <Days /> },
    { key: 'reports', label: texts.reports, body: <Reports /> },
    { key: 'month-end', label: titles.title, body: <MonthEnd /> },
    { key: 'charts', label: texts.charts, body: <Charts /> },
    ...(offers('books.rules') ? [rules] : []),
  ];
  const tab = useTab(tabs.map(({ key }) => key));
  return (
    <>
      <PageHead
        title={nav.books}
        primary
        acts={[
          { name: 'books.close', onDone: (answer) => setClosed(answer as Answer<'books.close'>) },
          { name: 'books.transfer' },
          // Balances are taken over before the first day is closed.
          days?.every(({ state }) => state !== 'closed') && { name: 'books.opening' },
          { name: 'books.escheat', isDanger: true },
        ]}
        of={tab === 'rules' ? 'books.rules' : 'books.days'}
      />
      {closed && <Closed of={closed} />}
      <PageTabs tabs={tabs} />
    </>
  );
}

function Days() {
  const { offers } = useApp();
  return (
    <Stack>
      {offers('books.verify') && <Verify />}
      <Calendar />
    </Stack>
  );
}

const useDays = () => useQuery(DAYS);

function Calendar() {
  const { data, error } = useDays();
  if (error) return <Problem error={error} />;
  return data ? <Month days={data} /> : <Busy />;
}

/** The result of a close: the closed days, and why the next one waits. */
function Closed({ of }: { of: Answer<'books.close'> }) {
  const texts = useTexts().books;
  const format = useFormat();
  const { closed: days, waiting } = of;
  const held = waiting?.prepared.map(({ name, since }) => `${name} (${format.time(since)})`) ?? [];
  return (
    <Alert color={days.length > 0 ? 'teal' : 'accent'} variant="light" mb="md">
      {texts.closedDays(days.length)}
      {waiting &&
        ` ${texts.waits[waiting.cause]?.(format.day(waiting.day), format.time(waiting.dueAt)) ?? ''}`}
      {held.length > 0 && ` ${texts.prepared(held.join(', '))}`}
    </Alert>
  );
}

function Reports() {
  const texts = useTexts();
  return (
    <Panel>
      <ul className="plain-list">
        {reports.map(({ name, number }) => (
          <li key={name}>
            <Anchor component={Link} to={`/books/reports/${name}`} fw={500}>
              {texts.reports[name].title}
            </Anchor>{' '}
            <span className="quiet">{number}</span>
            <Text size="sm" className="quiet">
              {texts.reports[name].use}
            </Text>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

type Verified = Answer<'books.verify'>;

/** Computes every closed day again, and names changed rows and closings. */
function Verify() {
  const texts = useTexts().books;
  const { data, error, isPending, mutate } = useMutation({
    mutationFn: () => get<Verified>('/books/verify'),
  });
  return (
    <>
      <Group>
        <Button variant="default" onClick={() => mutate()} loading={isPending}>
          {texts.verify}
        </Button>
      </Group>
      {error && <Problem error={error} />}
      {data && (
        <Alert color={data.ok ? 'teal' : 'red'} variant="light">
          {data.ok ? texts.verified(data.days) : texts.broken}
        </Alert>
      )}
      {data && data.breaks.length > 0 && (
        <Panel>
          <Rows items={data.breaks} columns={Object.keys(data.breaks[0] ?? {})} />
        </Panel>
      )}
    </>
  );
}

/** Monday is the first day of the week, as in ISO 8601. */
const weekdayOf = (day: string) => (new Date(`${day}T00:00:00Z`).getUTCDay() + 6) % 7;

/** The days of the books, month by month, as a calendar with its table. */
function Month({ days }: { days: readonly Day[] }) {
  const texts = useTexts().books;
  const { operations } = useApp();
  const { word } = useWords();
  const format = useFormat();
  const months = [...new Set(days.map(({ day }) => day.slice(0, 7)))];
  const [chosen, setChosen] = useState<string>();
  const month = chosen ?? months.at(-1);
  if (month === undefined) return null;
  const at = months.indexOf(month);
  const own = days.filter(({ day }) => day.startsWith(month));
  const first = own[0];
  const weekday = new Intl.DateTimeFormat(format.locale, { weekday: 'short', timeZone: 'UTC' });
  return (
    <div className="two even">
      <Panel
        title={format.month(month)}
        padded
        aside={
          <Group gap={4}>
            <Step label={texts.before} text="←" disabled={at <= 0} go={() => setChosen(months[at - 1])} />
            <Step
              label={texts.after}
              text="→"
              disabled={at >= months.length - 1}
              go={() => setChosen(months[at + 1])}
            />
          </Group>
        }
      >
        <div className="days" aria-hidden="true">
          {Array.from({ length: 7 }, (_, index) => (
            <small className="quiet" key={weekday.format(Date.UTC(2024, 0, 1 + index))}>
              {weekday.format(Date.UTC(2024, 0, 1 + index))}
            </small>
          ))}
          {own.map(({ day, state, rows }) => (
            <div
              key={day}
              className="day"
              data-state={state}
              style={day === first?.day ? { gridColumnStart: weekdayOf(day) + 1 } : undefined}
              title={`${format.day(day)}: ${word(state)}`}
            >
              {Number(day.slice(8))}
              {rows !== null && <small>{format.short(rows)}</small>}
            </div>
          ))}
        </div>
        <Group gap="xs" mt="md">
          <State name="closed" />
          <State name="closing" />
          <State name="open" />
        </Group>
      </Panel>
      <Panel title={texts.days}>
        <div style={{ maxHeight: 460, overflowY: 'auto' }}>
          <Rows
            items={[...own].reverse() as unknown as Item[]}
            columns={['day', 'state', 'rows', 'hash']}
            figures={figuresIn(operations?.get('books.days')?.figures, 'items')}
            cell={(name, item) => {
              // The entries of a day are counted when it is closed.
              if (name === 'rows' && item[name] === null) return <span className="quiet">–</span>;
              if (name !== 'hash' || !item[name]) return undefined;
              return (
                <span className="mono" title={String(item[name])}>
                  {String(item[name]).slice(0, 8)}
                </span>
              );
            }}
          />
        </div>
      </Panel>
    </div>
  );
}

type StepProps = { label: string; text: string; disabled: boolean; go(): void };

function Step({ label, text, disabled, go }: StepProps) {
  return (
    <ActionIcon variant="default" size={26} aria-label={label} disabled={disabled} onClick={go}>
      {text}
    </ActionIcon>
  );
}
