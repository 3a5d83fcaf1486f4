import { Anchor, Grid, Stack, Text } from '@mantine/core';
import { Link, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { REPORTS } from '../reports.ts';
import { Action } from '../ui/action.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Head, Panel } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const texts = useTexts().books;
  const search = useSearch({ strict: false }) as Filters;
  return (
    <>
      <Head title={texts.title}>
        <Action name="books.close" label="Close what is due" primary />
        <Action name="books.verify" label={texts.verify} />
        <Same name="books.days" />
      </Head>
      <Grid>
        <Grid.Col span={{ base: 12, md: 7 }}>
          <List
            path="/books/days"
            search={search}
            columns={['day', 'state', 'rows', 'startsAt', 'endsAt', 'hash']}
            cell={(name, item) =>
              name === 'hash' && item['hash'] ? (
                <span className="mono">{String(item['hash']).slice(0, 12)}…</span>
              ) : undefined
            }
          />
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Panel title={texts.reports}>
            <Stack p="md" gap="sm">
              {REPORTS.map(({ name, number, use }) => (
                <div key={name}>
                  <Anchor component={Link} to={`/books/reports/${name}`}>
                    {number} {name}
                  </Anchor>
                  <Text size="sm" className="quiet">
                    {use}
                  </Text>
                </div>
              ))}
            </Stack>
          </Panel>
        </Grid.Col>
      </Grid>
    </>
  );
}
