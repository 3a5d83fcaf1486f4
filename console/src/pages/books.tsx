import { Alert, Anchor, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, useState } from 'react';
import { reports } from '../../generated/reports.ts';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { readDays } from '../reports.ts';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { PageHead, PageTabs, useTab } from '../ui/page.tsx';
import { Busy, Panel, Problem } from '../ui/parts.tsx';
import { Month } from './days.tsx';
import { Verify } from './verify.tsx';

const Rules = lazy(async () => ({ default: (await import('./rules.tsx')).Rules }));
const Charts = lazy(async () => ({ default: (await import('./charts.tsx')).Charts }));

export function Screen() {
  const { books: texts, nav } = useTexts();
  const { offers } = useApp();
  const [closed, setClosed] = useState<Answer<'books.close'>>();
  const rules = { key: 'rules', label: texts.rules, body: <Rules /> };
  const tabs = [
    { key: 'days', label: texts.days, body: <Days /> },
    { key: 'reports', label: texts.reports, body: <Reports /> },
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

function Calendar() {
  const { data, error } = useQuery({ queryKey: ['days'], queryFn: readDays });
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
