import { Button, Progress, Stack, Text } from '@mantine/core';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { type Item, List } from '../ui/list.tsx';
import { Head, Panel, Stat } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields, State } from '../ui/value.tsx';

type Batch = Item & {
  readonly reference: string;
  readonly status: string;
  readonly quantity: number;
  readonly produced: number;
  readonly open: number;
  readonly balance: number;
  readonly currency: string;
};

export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  const format = useFormat();
  const navigate = useNavigate();
  const { transactionId = '' } = useParams({ strict: false }) as { transactionId?: string };
  const { thing, instead } = useThing<Batch>(`/batches/${transactionId}`, {
    refetchMs: ({ status }) => (status === 'PROCESSING' ? 1_000 : false),
  });
  if (!thing) return instead;
  const given = { transactionId };
  const { status, quantity, produced, currency } = thing;
  const effect = texts.batch.effect(format.number(quantity), format.money(thing.balance, currency));
  const isRunning = status === 'PROCESSING';
  return (
    <>
      <Head
        back={{ to: '/batches', label: texts.nav.batches }}
        name={thing.reference}
        title={
          <>
            <bdi>{thing.reference}</bdi> <State name={status} />
          </>
        }
        note={<Copyable text={transactionId} />}
      >
        <Actions
          acts={[
            isRunning && { name: 'batch.cancel', given, effect, isDanger: true },
            status === 'COMPLETED' && {
              name: 'voucher.bulk',
              label: texts.batch.blockAll,
              given: { batch: transactionId, action: 'block', serialNumbers: undefined, expiry: undefined },
              effect,
              isDanger: true,
              onDone: ({ id }) => void (id && navigate({ to: `/jobs/${id}` })),
            },
          ]}
        />
        {status === 'COMPLETED' && offers('voucher.bulk-cancel') && (
          <Button
            variant="default"
            className="bad"
            component={Link}
            to="/vouchers/bulk"
            search={{ batch: transactionId, action: 'cancel' } as never}
          >
            {texts.batch.cancelAll}
          </Button>
        )}
        <Same name="batch.show" given={given} />
      </Head>
      <Stack gap="lg">
        {isRunning && (
          <Panel padded>
            <Text size="sm" mb={6}>
              {texts.batch.progress(format.number(produced), format.number(quantity))}
            </Text>
            <Progress value={(100 * produced) / quantity} animated aria-label={texts.batch.running} />
          </Panel>
        )}
        <Numbers of={thing} />
        <div className="two">
          <Vouchers transactionId={transactionId} isOffered={offers('voucher.list')} />
          <Stack>
            <Panel title={texts.batch.details} padded>
              <Fields
                of={thing}
                show={['merchantId', 'product', 'value', 'expiryDate', 'acceptedAt']}
                also={['endedAt', 'failure']}
              />
            </Panel>
            {offers('batch.exports') && status === 'COMPLETED' && (
              <Panel title={texts.batch.print} padded>
                <Text size="sm" mb={8}>
                  {texts.batch.printHow}
                </Text>
                <pre className="code">{`scrip batch export ${transactionId} --format pdf`}</pre>
              </Panel>
            )}
            {offers('batch.exports') && (
              <List
                title={texts.batch.exports}
                path={`/batches/${transactionId}/exports`}
                columns={['begunAt', 'format', 'by', 'state']}
                brief
              />
            )}
          </Stack>
        </div>
      </Stack>
    </>
  );
}

function Vouchers({ transactionId, isOffered }: { transactionId: string; isOffered: boolean }) {
  const texts = useTexts();
  if (!isOffered) return <Panel padded>{texts.batch.download}</Panel>;
  return (
    <List
      title={texts.nav.vouchers}
      path="/vouchers"
      fixed={{ batch: transactionId }}
      columns={['serialNumber', 'voucherCode', 'state', 'balance']}
      to={({ serialNumber }) => `/vouchers/${serialNumber}`}
    />
  );
}

function Numbers({ of: { quantity, open, balance, currency } }: { of: Batch }) {
  const texts = useTexts().batch;
  const format = useFormat();
  const share = quantity === 0 ? 0 : (100 * (quantity - open)) / quantity;
  return (
    <div className="stats">
      <Stat label={texts.ordered}>{format.number(quantity)}</Stat>
      <Stat label={texts.open}>{format.number(open)}</Stat>
      <Stat label={texts.used}>{format.number(Math.round(share))} %</Stat>
      <Stat label={texts.balance}>{format.money(balance, currency)}</Stat>
    </div>
  );
}
