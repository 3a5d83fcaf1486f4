import { Button, Stack } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { get, type Page, send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { type Item, Rows } from '../ui/list.tsx';
import { Busy, Fields, Head, Panel, Problem } from '../ui/parts.tsx';

export function Screen() {
  const texts = useTexts().account;
  const { session } = useApp();
  const client = useQueryClient();
  const { data, error } = useQuery({ queryKey: ['sessions'], queryFn: () => get<Page<Item>>('/sessions') });
  const end = async (id: string) => {
    await send('DELETE', `/sessions/${id}`);
    await client.invalidateQueries();
  };
  const endOthers = async () => {
    await send('POST', '/sessions/end-others', { body: {} });
    await client.invalidateQueries();
  };
  return (
    <>
      <Head title={texts.title} />
      <Stack>
        <Panel>
          <div style={{ padding: 16 }}>{session && <Fields of={session.user} />}</div>
        </Panel>
        <Panel
          title={texts.sessions}
          aside={
            <Button size="xs" variant="default" onClick={endOthers}>
              {texts.endOthers}
            </Button>
          }
        >
          {error ? (
            <Problem error={error} />
          ) : data ? (
            <Rows
              items={data.items}
              columns={['createdAt', 'lastSeenAt', 'address', 'agent', '']}
              cell={(name, item) =>
                name !== '' ? undefined : item['current'] ? (
                  texts.current
                ) : (
                  <Button size="compact-xs" variant="default" onClick={() => end(String(item['id']))}>
                    {texts.end}
                  </Button>
                )
              }
            />
          ) : (
            <Busy />
          )}
        </Panel>
      </Stack>
    </>
  );
}
