import { Progress, Stack, Text } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import type { Answer, PortalAnswer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { useParam } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { List } from '../ui/list.tsx';
import { ListPage, PageHead } from '../ui/page.tsx';
import { Empty, Panel, Stat } from '../ui/parts.tsx';
import { Sheets } from '../ui/sheets.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

export function Screen() {
  const { label } = useWords();
  return (
    <ListPage
      name="batches"
      create="batch.generate"
      of="batch.list"
      cell={(name, item) =>
        name === 'produced' && item['status'] === 'PROCESSING' ? (
          <Progress
            value={(100 * Number(item['produced'])) / Number(item['quantity'])}
            aria-label={label('produced')}
            w={90}
            ml="auto"
          />
        ) : undefined
      }
    />
  );
}

type Batch = Answer<'batch.show'>;

/** What the head of the page and its numbers say. */
const IN_HEAD = [
  'transactionId',
  'reference',
  'status',
  'quantity',
  'produced',
  'percent',
  'open',
  'activated',
  'balance',
  'sheetsMax',
];

export function Thing() {
  const texts = useTexts();
  const { offers } = useApp();
  const format = useFormat();
  const navigate = useNavigate();
  const transactionId = useParam('transactionId');
  const { thing, instead } = useThing<Batch>(`/batches/${transactionId}`, {
    refetchMs: ({ status }) => (status === 'PROCESSING' ? 1_000 : false),
  });
  const { thing: merchant } = useThing<PortalAnswer<'merchant.show'>>('/merchant', {
    enabled: offers('batch.release'),
  });
  if (!thing) return instead;
  const given = { transactionId };
  const { status, quantity, produced, currency, open, sheetsMax } = thing;
  const isRunning = status === 'PROCESSING';
  // What was canceled is neither printed nor blocked.
  const concerned = format.number(isRunning ? quantity : open);
  const effect = texts.batch.effect(concerned, `${format.money(thing.balance, currency)}`);
  // Of one whose vouchers are all canceled, nothing can be downloaded, printed or blocked.
  const isUsable = status === 'COMPLETED' && open > 0;
  return (
    <>
      <PageHead
        back="batches"
        title={thing.reference}
        state={status}
        note={<Copyable text={transactionId} />}
        acts={[
          isRunning && { name: 'batch.cancel', given, effect, isDanger: true },
          isUsable && merchant?.downloadApproval && { name: 'batch.release', given },
          isUsable && {
            name: 'batch.download',
            given: { ...given, ...(thing.exports === 0 && { again: undefined }) },
            initial: { format: 'csv' },
            effect,
          },
          isUsable && {
            name: 'voucher.bulk',
            label: texts.batch.blockAll,
            given: { batch: transactionId, action: 'block', serialNumbers: undefined, expiry: undefined },
            effect,
            isDanger: true,
            onDone: ({ id }) => void (id && navigate({ to: `/jobs/${id}` })),
          },
          isUsable && {
            name: 'voucher.bulk-cancel',
            label: texts.batch.cancelAll,
            to: `/vouchers/bulk?batch=${transactionId}&action=cancel`,
            isDanger: true,
          },
        ]}
        of="batch.show"
        given={given}
      />
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
        <div className="two side-first">
          <Stack>
            <Panel title={texts.details} padded>
              <Fields of={thing} answer="batch.show" without={IN_HEAD} />
            </Panel>
            {offers('sheets.order') && isUsable && open > sheetsMax && (
              <Panel title={texts.batch.print} padded>
                <Text size="sm" className="quiet">
                  {texts.batch.printMax(format.number(sheetsMax))}
                </Text>
              </Panel>
            )}
            {offers('sheets.order') && isUsable && open <= sheetsMax && (
              <Sheets
                title={texts.batch.print}
                how={texts.batch.printHow}
                path={`/batches/${transactionId}/sheets`}
                order="sheets.order"
                given={given}
                effect={effect}
              />
            )}
            {offers('batch.exports') && (
              <List
                title={texts.batch.exports}
                of="batch.exports"
                fixed={given}
                columns={['begunAt', 'format', 'by', 'state']}
                narrow={['begunAt', 'format', 'by', 'state']}
                empty={<Empty text={texts.empty.exports} />}
                brief
              />
            )}
          </Stack>
          <Vouchers {...given} isOffered={offers('voucher.list')} isRunning={isRunning} />
        </div>
      </Stack>
    </>
  );
}

type VouchersProps = { transactionId: string; isOffered: boolean; isRunning: boolean };

function Vouchers({ transactionId, isOffered, isRunning }: VouchersProps) {
  const texts = useTexts();
  if (!isOffered) return <Panel padded>{texts.batch.download}</Panel>;
  if (isRunning)
    return (
      <Panel title={texts.nav.vouchers}>
        <Empty text={texts.batch.notYet} />
      </Panel>
    );
  return (
    <List
      title={texts.nav.vouchers}
      of="voucher.list"
      fixed={{ batch: transactionId }}
      columns={['serialNumber', 'voucherCode', 'state', 'balance']}
    />
  );
}

function Numbers({ of }: { of: Batch }) {
  const { activated, value, balance, currency } = of;
  const figures = useApp().operations?.get('batch.show')?.figures;
  const texts = useTexts().batch;
  const format = useFormat();
  const carried = value === null ? 0 : value * activated;
  return (
    <div className="stats">
      {(['quantity', 'open', 'activated'] as const).map((name) => (
        <Stat key={name} label={texts[name]}>
          <Figure of={figures?.[name]} value={of[name]} around={[of]}>
            {format.number(of[name])}
          </Figure>
        </Stat>
      ))}
      <Stat
        label={texts.balance}
        note={carried > 0 && texts.left(format.number(Math.round((100 * balance) / carried)))}
      >
        <Figure of={figures?.['balance']} value={balance} around={[of]}>
          {format.money(balance, currency)}
        </Figure>
      </Stat>
    </div>
  );
}
