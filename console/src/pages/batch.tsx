import { Progress, Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useParams } from '@tanstack/react-router';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Action } from '../ui/action.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { List } from '../ui/list.tsx';
import { Busy, Fields, Head, Panel, Problem, State } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

type Batch = Readonly<Record<string, unknown>> & {
  readonly reference: string;
  readonly status: string;
  readonly quantity: number;
  readonly produced: number;
  readonly balance: number;
  readonly currency: string;
};

export function Screen() {
  const { nav } = useTexts();
  const { offers } = useApp();
  const format = useFormat();
  const { transactionId = '' } = useParams({ strict: false }) as { transactionId?: string };
  const { data, error, refetch } = useQuery({
    queryKey: ['batch', transactionId],
    queryFn: () => get<Batch>(`/batches/${transactionId}`),
    refetchInterval: ({ state }) => (state.data?.status === 'PROCESSING' ? 1_000 : false),
  });
  if (error) return <Problem error={error} retry={refetch} />;
  if (!data) return <Busy />;
  const given = { transactionId };
  const effect = `${format.number(data.quantity)} × ${nav.vouchers}: ${format.money(data.balance, data.currency)}`;
  return (
    <>
      <Head
        title={
          <>
            {data.reference} <State name={data.status} />
          </>
        }
        note={transactionId}
      >
        <Action name="batch.cancel" label="Cancel the batch" danger given={given} effect={effect} />
        <Action name="batch.block" label="Block all" danger given={given} effect={effect} />
        <Action name="batch.export" label="Export codes" given={given} effect={effect} />
        <Same name="batch.show" given={given} />
      </Head>
      <Stack>
        {data.status === 'PROCESSING' && (
          <Progress
            value={(100 * data.produced) / data.quantity}
            animated
            aria-label={format.number(data.produced)}
          />
        )}
        <Panel>
          <div style={{ padding: 16 }}>
            <Fields of={data} leaveOut={['reference', 'status', 'transactionId']} />
          </div>
        </Panel>
        {offers('voucher.list') && (
          <List
            path="/vouchers"
            fixed={{ batch: transactionId }}
            columns={['serialNumber', 'voucherCode', 'state', 'balance', 'expiresAt']}
            to={({ serialNumber }) => `/vouchers/${serialNumber}`}
          />
        )}
      </Stack>
    </>
  );
}
