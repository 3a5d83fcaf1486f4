import { Anchor, Group } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { useParam } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import type { Item } from '../ui/list.tsx';
import { PageHead } from '../ui/page.tsx';
import { Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

type Transaction = Answer<'transaction.show'>;

export function Screen() {
  const texts = useTexts();
  const { kind } = useWords();
  const { door } = useApp();
  const format = useFormat();
  const navigate = useNavigate();
  const transactionId = useParam('id');
  const given = { transactionId };
  const { thing, instead } = useThing<Transaction>(`/transactions/${transactionId}`);
  if (!thing) return instead;
  const isCorrectable = thing.kind === 'REDEMPTION' && thing.refundStatus === null;
  const amount = format.money(thing.amount, thing.currency);
  const { serialNumber: serial, originalTransactionId: original } = thing;
  return (
    <>
      <PageHead
        back="transactions"
        title={kind(thing.kind)}
        shown={
          <>
            {kind(thing.kind)} <span className="number">{amount}</span>
          </>
        }
        state={thing.refundStatus}
        note={<Copyable text={transactionId} />}
        acts={[
          isCorrectable && {
            name: 'redemption.correct',
            given,
            effect: `${amount} · ${thing.voucherCode}`,
            isDanger: true,
            onDone: (answer) => {
              const made = (answer['replacement'] ?? answer['reversal']) as Item | null;
              if (made) void navigate({ to: `/transactions/${made['transactionId']}` });
            },
          },
          thing.kind === 'TOP_UP' && { name: 'float.correct', given, effect: amount, isDanger: true },
        ]}
        of="transaction.show"
        given={given}
      />
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
    </>
  );
}
