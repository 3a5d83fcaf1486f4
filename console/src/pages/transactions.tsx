import { Anchor, Group } from '@mantine/core';
import { Link, useNavigate } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { type Filters, useFilters, useParam } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { Icon } from '../ui/icons.tsx';
import type { Item } from '../ui/item.ts';
import { List } from '../ui/list.tsx';
import { PageHead, PageTabs, useTab } from '../ui/page.tsx';
import { Empty, Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

export function Screen() {
  const { nav, transactions: texts } = useTexts();
  const { offers } = useApp();
  const { tab: _tab, ...search } = useFilters();
  const booked = { key: 'booked', label: texts.booked, body: <Booked search={search} /> };
  const declined = { key: 'declined', label: texts.declined, body: <Declined search={search} /> };
  const tabs = offers('decline.list') ? [booked, declined] : [booked];
  const isDeclined = useTab(tabs.map(({ key }) => key)) === 'declined';
  return (
    <>
      <PageHead
        title={nav.transactions}
        of={isDeclined ? 'decline.list' : 'transaction.list'}
        given={search}
      />
      <PageTabs tabs={tabs} />
    </>
  );
}

function Booked({ search }: { search: Filters }) {
  const texts = useTexts().empty;
  return (
    <List
      of="transaction.list"
      search={search}
      empty={<Empty icon={<Icon name="transactions" size={26} />} text={texts.transactions} />}
    />
  );
}

function Declined({ search }: { search: Filters }) {
  const texts = useTexts().empty;
  return (
    <List
      of="decline.list"
      search={search}
      narrow={['at', 'code', 'amount']}
      cell={(name, { code, amount, currency }) => {
        if (name === 'code') return <Decline code={String(code)} />;
        return name === 'amount' && amount !== null && currency === null ? (
          <Bare amount={Number(amount)} />
        ) : undefined;
      }}
      empty={<Empty icon={<Icon name="transactions" size={26} />} text={texts.declines} />}
    />
  );
}

/** The amount of a request whose code is unknown: no voucher says in which currency it was meant. */
function Bare({ amount }: { amount: number }) {
  const { noCurrency } = useTexts().declined;
  const format = useFormat();
  return (
    <span className="quiet" title={noCurrency}>
      {format.number(amount)}
    </span>
  );
}

/** The reason for a decline, with the status code that the till got. */
function Decline({ code }: { code: string }) {
  const { codes } = useTexts();
  return (
    <>
      <span className="mono">{code}</span> {codes[code]}
    </>
  );
}

type Transaction = Answer<'transaction.show'>;

export function Thing() {
  const texts = useTexts();
  const { kind, label } = useWords();
  const { door, operations } = useApp();
  const format = useFormat();
  const navigate = useNavigate();
  const transactionId = useParam('id');
  const given = { transactionId };
  const { thing, instead } = useThing<Transaction>(`/transactions/${transactionId}`);
  if (!thing) return instead;
  // What replaced it is changed through the redemption itself.
  const isRedemption = thing.kind === 'REDEMPTION' && thing.originalTransactionId === null;
  const amount = `${format.money(thing.amount, thing.currency)}`;
  // After a refund, what is left to refund or to correct.
  const left =
    thing.refundable !== null && thing.refundable !== thing.amount
      ? ` · ${label('refundable')}: ${format.money(thing.refundable, thing.currency)}`
      : '';
  const effect = `${amount} · ${thing.voucherCode}${left}`;
  const figures = operations?.get('transaction.show')?.figures;
  const { serialNumber: serial } = thing;
  const others = [
    { id: thing.originalTransactionId, text: texts.transactions.openOriginal },
    { id: thing.correctedBy, text: texts.transactions.openCorrection },
  ];
  return (
    <>
      <PageHead
        back="transactions"
        title={kind(thing.kind)}
        shown={
          <>
            {kind(thing.kind)}{' '}
            <span className="number">
              <Figure of={figures?.['amount']} value={thing.amount} around={[thing]}>
                {amount}
              </Figure>
            </span>
          </>
        }
        state={thing.refundStatus}
        note={<Copyable text={transactionId} />}
        acts={[
          Number(thing.refundable) > 0 && { name: 'redemption.refund', given, effect },
          isRedemption &&
            thing.correctedBy === null &&
            Number(thing.refundable) > 0 && {
              name: 'redemption.correct',
              given,
              effect,
              isDanger: true,
              onDone: (answer) => {
                const made = (answer['replacement'] ?? answer['reversal']) as Item | null;
                if (made) void navigate({ to: `/transactions/${made['transactionId']}` });
              },
            },
          thing.kind === 'TOP_UP' &&
            thing.correctedBy === null && { name: 'float.correct', given, effect: amount, isDanger: true },
        ]}
        of="transaction.show"
        given={given}
      />
      <Panel padded>
        <Fields
          of={thing}
          answer="transaction.show"
          without={['transactionId', 'kind', 'refundStatus', 'originalTransactionId', 'correctedBy']}
        />
        <Group className="links">
          {serial !== null && door === 'operator' && (
            <Anchor component={Link} to={`/vouchers/${serial}`} size="sm">
              {texts.transactions.openVoucher}
            </Anchor>
          )}
          {others.map(
            ({ id, text }) =>
              id !== null && (
                <Anchor key={id} component={Link} to={`/transactions/${id}`} size="sm">
                  {text}
                </Anchor>
              ),
          )}
        </Group>
      </Panel>
    </>
  );
}
