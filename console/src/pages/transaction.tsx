import { Anchor, Group } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Action } from '../ui/action.tsx';
import { Busy, Fields, Head, Panel, Problem } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const { nav } = useTexts();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const { data, error, refetch } = useQuery({
    queryKey: ['transaction', id],
    queryFn: () => get<Record<string, unknown>>(`/transactions/${id}`),
  });
  if (error) return <Problem error={error} retry={refetch} />;
  if (!data) return <Busy />;
  const serial = data['serialNumber'];
  return (
    <>
      <Head title={String(data['kind'] ?? nav.transactions)} note={id}>
        <Action name="redemption.correct" label="Correct" danger given={{ id, transactionId: id }} />
        <Same name="transaction.show" given={{ id, transactionId: id }} />
      </Head>
      <Panel>
        <Group p="md" align="flex-start">
          <Fields of={data} />
          {serial !== null && serial !== undefined && (
            <Anchor component={Link} to={`/vouchers/${serial}`}>
              {nav.vouchers}: {String(serial)}
            </Anchor>
          )}
        </Group>
      </Panel>
    </>
  );
}
