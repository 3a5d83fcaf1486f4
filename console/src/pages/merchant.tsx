import { Grid, Stack, Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Action } from '../ui/action.tsx';
import { useApp } from '../ui/app.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Busy, Fields, Head, Panel, Problem } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const { nav } = useTexts();
  const { offers } = useApp();
  const navigate = useNavigate();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const { tab = 'floats' } = useSearch({ strict: false }) as Filters;
  const { data, error, refetch } = useQuery({
    queryKey: ['merchant', id],
    queryFn: () => get<Record<string, unknown>>(`/merchants/${id}`),
  });
  if (error) return <Problem error={error} retry={refetch} />;
  if (!data) return <Busy />;
  const name = String(data['name']);
  const lists = [
    {
      tab: 'floats',
      label: nav.floats,
      needs: 'float.show',
      path: '/floats',
      columns: ['currency', 'balance', 'warnBelow', 'daysLeft'],
    },
    {
      tab: 'keys',
      label: nav.keys,
      needs: 'api-key.list',
      path: '/api-keys',
      columns: ['keyId', 'scopes', 'networks', 'createdAt', 'expiresAt', 'revokedAt'],
    },
    {
      tab: 'batches',
      label: nav.batches,
      needs: 'batch.list',
      path: '/batches',
      columns: ['reference', 'status', 'quantity', 'produced'],
    },
    {
      tab: 'transactions',
      label: nav.transactions,
      needs: 'transaction.list',
      path: '/transactions',
      columns: ['timestamp', 'kind', 'serialNumber', 'amount', 'currency', 'reference'],
    },
    {
      tab: 'webhooks',
      label: nav.webhooks,
      needs: 'webhook.list',
      path: '/webhooks',
      columns: ['url', 'events', 'pending', 'failed', 'enabled'],
    },
    {
      tab: 'settlements',
      label: nav.settlements,
      needs: 'settlement.list',
      path: '/settlements',
      columns: ['number', 'state', 'from', 'to', 'net', 'currency'],
    },
    {
      tab: 'users',
      label: nav.users,
      needs: 'user.list',
      path: '/users',
      columns: ['email', 'name', 'roles', 'state'],
    },
  ].filter(({ needs }) => offers(needs));
  return (
    <>
      <Head title={name} note={`${nav.merchants} ${id}`}>
        <Action name="float.top-up" label="Top up" primary given={{ merchantId: id }} effect={name} />
        <Action name="api-key.create" label="New API key" given={{ merchantId: id }} />
        {data['suspendedAt'] === null ? (
          <Action name="merchant.suspend" label="Suspend" danger given={{ id }} effect={name} />
        ) : (
          <Action name="merchant.resume" label="Resume" given={{ id }} effect={name} />
        )}
        <Action name="merchant.permit" label="Permit" given={{ id }} effect={name} />
        <Action name="merchant.forbid" label="Forbid" given={{ id }} effect={name} />
        <Action name="merchant.set" label="Change" given={{ id }} effect={name} />
        <Same name="merchant.show" given={{ id }} />
      </Head>
      <Grid>
        <Grid.Col span={{ base: 12, md: 4 }}>
          <Panel>
            <div style={{ padding: 16 }}>
              <Fields of={data} leaveOut={['name', 'floats']} />
            </div>
          </Panel>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 8 }}>
          <Stack>
            <Tabs
              value={tab}
              onChange={(chosen) => navigate({ to: '.', search: { tab: chosen } as never, replace: true })}
              keepMounted={false}
            >
              <Tabs.List mb="sm">
                {lists.map((each) => (
                  <Tabs.Tab key={each.tab} value={each.tab}>
                    {each.label}
                  </Tabs.Tab>
                ))}
              </Tabs.List>
              {lists.map(({ tab: value, path, columns }) => (
                <Tabs.Panel key={value} value={value}>
                  <List path={path} columns={columns} fixed={{ merchantId: id }} />
                </Tabs.Panel>
              ))}
            </Tabs>
          </Stack>
        </Grid.Col>
      </Grid>
    </>
  );
}
