import { Anchor, Group, Stack } from '@mantine/core';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import type { Item } from '../ui/list.tsx';
import { Head, Panel } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields, State } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

type Transaction = Answer<'transaction.show'>;

export function Screen() {
  const texts = useTexts();
  const { kind } = useWords();
  const { door } = useApp();
  const format = useFormat();
  const navigate = useNavigate();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const { thing, instead } = useThing<Transaction>(`/transactions/${id}`);
  if (!thing) return instead;
  const isCorrectable = thing.kind === 'REDEMPTION' && thing.refundStatus === null;
  const amount = format.money(thing.amount, thing.currency);
  const { serialNumber: serial, originalTransactionId: original } = thing;
  return (
    <>
      <Head
        back={{ to: '/transactions', label: texts.nav.transactions }}
        name={kind(thing.kind)}
        title={
          <>
            {kind(thing.kind)} <span className="number">{amount}</span>{' '}
            {thing.refundStatus && <State name={thing.refundStatus} />}
          </>
        }
        note={<Copyable text={id} />}
      >
        <Actions
          acts={[
            isCorrectable && {
              name: 'redemption.correct',
              given: { transactionId: id },
              effect: `${amount} · ${thing['voucherCode']}`,
              isDanger: true,
              onDone: (answer) => {
                const made = (answer['replacement'] ?? answer['reversal']) as Item | null;
                if (made) void navigate({ to: `/transactions/${made['transactionId']}` });
              },
            },
            thing.kind === 'TOP_UP' && {
              name: 'float.correct',
              given: { transactionId: id },
              effect: amount,
              isDanger: true,
            },
          ]}
        />
        <Same name="transaction.show" given={{ transactionId: id }} />
      </Head>
      <Stack>
        <Panel padded>
          <Fields of={thing} without={['transactionId', 'kind', 'refundStatus', 'originalTransactionId']} />
          <Group className="links">
            {serial !== null && door === 'operator' && (
              <Anchor component={Link} to={`/vouchers/${serial}`} size="sm">
                {texts.transactions.openVoucher}
              </Anchor>
            )}
            {original !== null && (
              <Anchor component={Link} to={`/transactions/${original}`} size="sm">
                {texts.transactions.openOriginal}
              </Anchor>
            )}
          </Group>
        </Panel>
      </Stack>
    </>
  );
}
