import { Badge, Grid, Group, Stack, Text, Timeline } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate, useParams } from '@tanstack/react-router';
import { get } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { Action } from '../ui/action.tsx';
import { labelOf, useFormat } from '../ui/format.ts';
import { Busy, Fields, Head, Panel, Problem, State } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

type Entry = Readonly<Record<string, unknown>> & {
  readonly timestamp?: string;
  readonly at?: string;
  readonly kind?: string;
  readonly type?: string;
  readonly amount?: number;
};
type Voucher = Readonly<Record<string, unknown>> & {
  readonly serialNumber: string;
  readonly voucherCode: string;
  readonly state: string;
  readonly currency: string;
  readonly balance: number;
  readonly value: number | null;
  readonly entries?: readonly Entry[];
  readonly timeline?: readonly Entry[];
};

/** One voucher: its state, what happened to it, and what support can do about it. */
export function Screen() {
  const texts = useTexts().voucher;
  const format = useFormat();
  const navigate = useNavigate();
  const { serialNumber = '' } = useParams({ strict: false }) as { serialNumber?: string };
  const { data, error, refetch } = useQuery({
    queryKey: ['voucher', serialNumber],
    queryFn: () => get<Voucher>(`/vouchers/${serialNumber}`),
  });
  if (error) return <Problem error={error} retry={refetch} />;
  if (!data) return <Busy />;
  const given = { serialNumber };
  const effect = `${data.voucherCode}: ${format.money(data.balance, data.currency)}`;
  const happened = data.timeline ?? data.entries ?? [];
  return (
    <>
      <Head
        title={
          <Group gap="sm">
            {texts.title} <span className="mono">{data.voucherCode}</span> <State name={data.state} />
          </Group>
        }
        note={data.serialNumber}
      >
        {data['blockedAt'] === null && (
          <Action name="voucher.block" label="Block" danger given={given} effect={effect} />
        )}
        {data['blockedAt'] !== null && (
          <Action name="voucher.unblock" label="Unblock" given={given} effect={effect} />
        )}
        {data['pinLocked'] === true && (
          <Action name="voucher.unlock-pin" label="Unlock PIN" given={given} effect={effect} />
        )}
        <Action name="voucher.extend" label="Extend" given={given} effect={effect} />
        <Action
          name="voucher.replace"
          label="Replace"
          danger
          given={given}
          effect={effect}
          onDone={(made) => navigate({ to: `/vouchers/${made.serialNumber}` })}
        />
        <Action name="voucher.adjust" label="Adjust" given={given} effect={effect} />
        <Action name="voucher.cash-out" label="Cash out" danger given={given} effect={effect} />
        <Same name="voucher.show" given={given} />
      </Head>
      <Grid>
        <Grid.Col span={{ base: 12, md: 5 }}>
          <Panel>
            <Stack p="md">
              <div>
                <div className="stat">{format.money(data.balance, data.currency)}</div>
                {data.value !== null && (
                  <Text className="quiet" size="sm">
                    {format.money(data.value, data.currency)}
                  </Text>
                )}
              </div>
              <Fields
                of={data}
                leaveOut={[
                  'entries',
                  'timeline',
                  'declines',
                  'balance',
                  'value',
                  'voucherCode',
                  'state',
                  'serialNumber',
                ]}
              />
            </Stack>
          </Panel>
        </Grid.Col>
        <Grid.Col span={{ base: 12, md: 7 }}>
          <Panel title={texts.timeline}>
            <Timeline p="md" bulletSize={14} lineWidth={1}>
              {happened.map((entry, index) => (
                <Timeline.Item
                  key={String(entry['transactionId'] ?? index)}
                  title={<Happened entry={entry} currency={data.currency} />}
                >
                  <Text size="xs" className="quiet">
                    {format.time(String(entry.timestamp ?? entry.at))}
                  </Text>
                  <Text size="xs" className="quiet mono">
                    {String(entry['reference'] ?? entry['transactionId'] ?? '')}
                  </Text>
                </Timeline.Item>
              ))}
            </Timeline>
          </Panel>
        </Grid.Col>
      </Grid>
    </>
  );
}

function Happened({ entry, currency }: { entry: Entry; currency: string }) {
  const format = useFormat();
  const kind = String(entry['what'] ?? entry.kind ?? '');
  return (
    <Group gap="xs" justify="space-between">
      <Text size="sm">
        {labelOf(kind.toLowerCase())}{' '}
        {entry['code'] ? (
          <Badge color="orange" variant="light" size="sm">
            {String(entry['code'])}
          </Badge>
        ) : null}
      </Text>
      {typeof entry.amount === 'number' && (
        <span className="number">{format.money(entry.amount, currency)}</span>
      )}
    </Group>
  );
}
