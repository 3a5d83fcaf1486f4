import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { get } from '../api.ts';
import { Action } from '../ui/action.tsx';
import { List } from '../ui/list.tsx';
import { Busy, Fields, Head, Panel, Problem } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const { data, error, refetch } = useQuery({
    queryKey: ['webhook', id],
    queryFn: () => get<Record<string, unknown>>(`/webhooks/${id}`),
  });
  if (error) return <Problem error={error} retry={refetch} />;
  if (!data) return <Busy />;
  const url = String(data['url']);
  return (
    <>
      <Head title={url} note={`Endpoint ${id}`}>
        <Action name="webhook.test" label="Send a test" primary given={{ id }} effect={url} />
        <Action name="webhook.resend" label="Resend" given={{ id }} effect={url} />
        <Action name="webhook.rotate" label="Rotate the secret" given={{ id }} effect={url} />
        <Action name="webhook.enable" label="Enable" given={{ id }} effect={url} />
        <Action name="webhook.remove" label="Remove" danger given={{ id }} effect={url} />
        <Same name="webhook.show" given={{ id }} />
      </Head>
      <Stack>
        <Panel>
          <div style={{ padding: 16 }}>
            <Fields of={data} leaveOut={['url', 'id']} />
          </div>
        </Panel>
        <List
          path={`/webhooks/${id}/deliveries`}
          refetchMs={10_000}
          columns={['occurredAt', 'type', 'state', 'attempts', 'dueAt', 'lastAttempt', 'eventId']}
        />
      </Stack>
    </>
  );
}
