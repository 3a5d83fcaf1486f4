import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Action } from '../ui/action.tsx';
import { type Item, Rows } from '../ui/list.tsx';
import { Busy, Fields, Head, Panel, Problem, State } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const { nav } = useTexts();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const { data, error, refetch } = useQuery({
    queryKey: ['settlement', id],
    queryFn: () => get<Record<string, unknown>>(`/settlements/${id}`),
  });
  if (error) return <Problem error={error} retry={refetch} />;
  if (!data) return <Busy />;
  const lines = (data['lines'] ?? []) as Item[];
  const effect = `${data['payable'] ?? data['net'] ?? ''} ${data['currency'] ?? ''}`;
  return (
    <>
      <Head
        title={
          <>
            {String(data['number'] ?? nav.settlements)} <State name={String(data['state'])} />
          </>
        }
        note={id}
      >
        <Action name="settlement.approve" label="Approve" primary given={{ id }} effect={effect} />
        <Action name="settlement.pay" label="Pay" primary given={{ id }} effect={effect} />
        <Action
          name="settlement.returned"
          label="Returned by the bank"
          danger
          given={{ id }}
          effect={effect}
        />
        <Same name="settlement.show" given={{ id }} />
      </Head>
      <Stack>
        <Panel>
          <div style={{ padding: 16 }}>
            <Fields of={data} leaveOut={['lines']} />
          </div>
        </Panel>
        {lines[0] && (
          <Panel>
            <Rows items={lines} columns={Object.keys(lines[0])} />
          </Panel>
        )}
      </Stack>
    </>
  );
}
