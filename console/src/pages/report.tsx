import { Badge, Button, Group, Stack, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { REPORTS } from '../reports.ts';
import { useApp } from '../ui/app.tsx';
import { type Filters, type Item, Rows } from '../ui/list.tsx';
import { Busy, Empty, Fields, Head, Panel, Problem } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

type Answer = Item & {
  readonly rows?: readonly Item[];
  readonly items?: readonly Item[];
  readonly state?: string;
};

export function Screen() {
  const texts = useTexts();
  const { door } = useApp();
  const navigate = useNavigate();
  const { report = '' } = useParams({ strict: false }) as { report?: string };
  const search = useSearch({ strict: false }) as Filters;
  const month = new Date().toISOString().slice(0, 8);
  const [typed, setTyped] = useState({
    from: search['from'] ?? `${month}01`,
    to: search['to'] ?? new Date().toISOString().slice(0, 10),
    merchantId: search['merchantId'] ?? '',
  });
  const isAsked = search['from'] !== undefined;
  const { data, error, isFetching } = useQuery({
    queryKey: ['report', report, search],
    enabled: isAsked,
    queryFn: () => get<Answer>(`/books/reports/${report}`, search),
  });
  const show = (event: FormEvent) => {
    event.preventDefault();
    const given = Object.fromEntries(Object.entries(typed).filter(([, value]) => value !== ''));
    void navigate({ to: '.', search: given as never });
  };
  const rows = data?.rows ?? data?.items ?? [];
  const about = REPORTS.find(({ name }) => name === report);
  const { rows: _rows, items: _items, ...head } = data ?? {};
  return (
    <>
      <Head title={`${about?.number ?? ''} ${report}`} note={about?.use}>
        <Same name="books.report" given={{ report, ...search }} />
      </Head>
      <Stack>
        <form onSubmit={show}>
          <Group align="flex-end">
            <TextInput
              type="date"
              label={texts.books.from}
              required
              value={typed.from}
              onChange={(event) => setTyped({ ...typed, from: event.currentTarget.value })}
            />
            <TextInput
              type="date"
              label={texts.books.to}
              required
              value={typed.to}
              onChange={(event) => setTyped({ ...typed, to: event.currentTarget.value })}
            />
            <TextInput
              label={texts.nav.merchants}
              value={typed.merchantId}
              placeholder="1"
              onChange={(event) => setTyped({ ...typed, merchantId: event.currentTarget.value })}
            />
            <Button type="submit" loading={isFetching}>
              {texts.books.show}
            </Button>
          </Group>
        </form>
        {error && <Problem error={error} />}
        {isFetching && !data && <Busy />}
        {data && (
          <>
            <Panel>
              <div style={{ padding: 16 }}>
                {data.state && (
                  <Badge mb="sm" color={data.state === 'closed' ? 'teal' : 'orange'} variant="light">
                    {data.state}
                  </Badge>
                )}
                <Fields of={head} />
              </div>
            </Panel>
            <Panel>
              {rows[0] ? (
                <Rows items={rows} columns={Object.keys(rows[0])} />
              ) : (
                <Empty text={texts.list.empty} />
              )}
            </Panel>
          </>
        )}
        {door === 'portal' && null}
      </Stack>
    </>
  );
}
