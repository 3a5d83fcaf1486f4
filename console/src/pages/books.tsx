import { Alert, Anchor, Stack, Tabs, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { reports } from '../../generated/reports.ts';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { readDays } from '../reports.ts';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import type { Filters } from '../ui/list.tsx';
import { Busy, Head, Panel, Problem } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { Days } from './days.tsx';
import { Verify } from './verify.tsx';

const Rules = lazy(async () => ({ default: (await import('./rules.tsx')).Rules }));
const Charts = lazy(async () => ({ default: (await import('./charts.tsx')).Charts }));

export function Screen() {
  const texts = useTexts().books;
  const navigate = useNavigate();
  const { offers } = useApp();
  const { tab = 'days' } = useSearch({ strict: false }) as Filters;
  const [closed, setClosed] = useState<Answer<'books.close'>>();
  const choose = (next: string | null) =>
    void navigate({ to: '.', search: (next === 'days' ? {} : { tab: next }) as never });
  return (
    <>
      <Head title={texts.title}>
        <Actions
          primary
          acts={[
            { name: 'books.close', onDone: (answer) => setClosed(answer as Answer<'books.close'>) },
            { name: 'books.transfer' },
          ]}
        />
        <Same name={tab === 'rules' ? 'books.rules' : 'books.days'} />
      </Head>
      {closed && <Closed of={closed} />}
      <Tabs value={tab} onChange={choose} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="days">{texts.days}</Tabs.Tab>
          <Tabs.Tab value="reports">{texts.reports}</Tabs.Tab>
          <Tabs.Tab value="charts">{texts.charts}</Tabs.Tab>
          {offers('books.rules') && <Tabs.Tab value="rules">{texts.rules}</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="days">
          <Stack>
            {offers('books.verify') && <Verify />}
            <Calendar />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="reports">
          <Reports />
        </Tabs.Panel>
        <Tabs.Panel value="charts">
          <Suspense fallback={<Busy />}>
            <Charts />
          </Suspense>
        </Tabs.Panel>
        <Tabs.Panel value="rules">
          <Suspense fallback={<Busy />}>
            <Rules />
          </Suspense>
        </Tabs.Panel>
      </Tabs>
    </>
  );
}

function Calendar() {
  const { data, error } = useQuery({ queryKey: ['days'], queryFn: readDays });
  if (error) return <Problem error={error} />;
  return data ? <Days days={data} /> : <Busy />;
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
