import '@mantine/core/styles/Timeline.layer.css';
import { Button, Group, Stack, Text, Timeline } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { UNDECLARED } from '../figures.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Acts } from '../ui/act.ts';
import { useFilters, useParam } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { AtField } from '../ui/at.tsx';
import { Figure } from '../ui/figure.tsx';
import { useFormat } from '../ui/format.ts';
import { isPast } from '../ui/format-of.ts';
import type { Item } from '../ui/item.ts';
import { ListPage, PageHead } from '../ui/page.tsx';
import { Empty, Panel } from '../ui/parts.tsx';
import { Sheets } from '../ui/sheets.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields, Time, Value } from '../ui/value.tsx';
import { useWords } from '../ui/words.ts';

/** The operations on the selected vouchers, of which the next page shows the effect. */
function Selected({ items }: { items: readonly Item[] }) {
  const { word } = useWords();
  const serialNumbers = items.map(({ serialNumber }) => serialNumber).join(',');
  return (['block', 'unblock', 'extend'] as const).map((action) => (
    <Button
      key={action}
      variant="default"
      component={Link}
      to="/vouchers/bulk"
      search={{ action, serialNumbers } as never}
    >
      {word(action)}
    </Button>
  ));
}

export function Screen() {
  const { offers } = useApp();
  const { action } = useWords();
  const bulk = offers('voucher.bulk') ? (items: readonly Item[]) => <Selected items={items} /> : undefined;
  return (
    <ListPage name="vouchers" of="voucher.list" bulk={bulk}>
      {offers('voucher.bulk') && (
        <Button variant="default" component={Link} to="/vouchers/bulk">
          {action('voucher.bulk')}
        </Button>
      )}
    </ListPage>
  );
}

type Entry = Voucher['timeline'][number];
type Voucher = Answer<'voucher.show'>;

/** One voucher: its state, its history, and the actions that support can take. */
export function Thing() {
  const texts = useTexts();
  const format = useFormat();
  const { operations, offers } = useApp();
  const serialNumber = useParam('serialNumber');
  const { at } = useFilters();
  const { thing, instead } = useThing<Voucher>(`/vouchers/${serialNumber}`, { query: { at } });
  if (!thing) return instead;
  const { currency, balance, value, reserved, replacedBy } = thing;
  const carried = value ?? reserved;
  const figures = operations?.get('voucher.show')?.figures;
  // A search changes nothing: it is in the audit.
  const timeline = thing.timeline.filter(({ what }) => what !== 'voucher.find');
  const balances = balancesAfter(balance, timeline);
  return (
    <>
      <PageHead
        back="vouchers"
        title={serialNumber}
        shown={<span className="mono">{thing.voucherCode}</span>}
        state={thing.state}
        note={<Copyable text={serialNumber} />}
        // What a voucher was then cannot be changed.
        acts={at ? [] : actsOn(thing, `${format.money(balance, currency)}`)}
        of="voucher.show"
        given={{ serialNumber, at }}
      >
        <AtField />
      </PageHead>
      <div className="two side-first">
        <Stack gap="lg">
          <Panel padded>
            <Stack gap="md">
              <div>
                <div className="stat">
                  <Figure of={figures?.['balance']} value={balance} around={[thing]}>
                    {format.money(balance, currency)}
                  </Figure>
                </div>
                <Text className="quiet" size="sm">
                  {carried === null ? (
                    texts.voucher.noValue
                  ) : (
                    <Figure of={figures?.['value']} value={carried} around={[thing]}>
                      {value === null
                        ? texts.voucher.reserved(`${format.money(carried, currency)}`)
                        : texts.voucher.of(`${format.money(carried, currency)}`)}
                    </Figure>
                  )}
                </Text>
              </div>
              <Fields
                of={thing}
                answer="voucher.show"
                links={{
                  batchReference: offers('batch.show') ? `/batches/${thing.batch}` : undefined,
                }}
                without={[
                  'serialNumber',
                  'voucherCode',
                  'state',
                  'batch',
                  'currency',
                  'balance',
                  'value',
                  'reserved',
                ]}
              />
            </Stack>
          </Panel>
          {replacedBy !== null && offers('sheets.order-card') && (
            <Sheets
              title={texts.batch.card}
              how={texts.batch.cardHow}
              path={`/vouchers/${serialNumber}/card`}
              order="sheets.order-card"
              given={{ serialNumber }}
              effect={texts.batch.cardEffect(replacedBy)}
            />
          )}
        </Stack>
        <Panel title={texts.voucher.timeline} padded>
          {timeline.length === 0 ? (
            <Empty text={texts.empty.timeline} />
          ) : (
            <Timeline bulletSize={13} lineWidth={1} color="accent">
              {timeline.map((entry, index) => (
                <Timeline.Item
                  key={`${entry.at} ${entry.what} ${entry.transactionId}`}
                  title={<Title entry={entry} currency={currency} />}
                >
                  <Note entry={entry} currency={currency} balance={balances[index] ?? 0} />
                </Timeline.Item>
              ))}
            </Timeline>
          )}
        </Panel>
      </div>
    </>
  );
}

/** The actions that the state of a voucher permits: the service would refuse the others. */
function actsOn(voucher: Voucher, balance: string): Acts {
  const { serialNumber, voucherCode, state, blockedAt, activatedAt, payerId } = voucher;
  if (state === 'CANCELED' || state === 'REPLACED') return [];
  const given = { serialNumber };
  const effect = `${voucherCode} · ${balance}`;
  const isInTime = !isPast(voucher.expiresAt);
  const isActive = activatedAt !== null;
  const hasMoney = voucher.balance > 0;
  const isBlocked = blockedAt !== null;
  return [
    voucher.pinLocked && { name: 'voucher.unlock-pin', given, effect },
    { name: isBlocked ? 'voucher.unblock' : 'voucher.block', given, effect },
    { name: 'voucher.extend', given, effect },
    isInTime && { name: 'voucher.replace', given, effect },
    isInTime && isActive && { name: 'voucher.adjust', given, effect },
    isInTime && hasMoney && !isBlocked && { name: 'voucher.cash-out', given, effect, isDanger: true },
    isActive && hasMoney && { name: 'voucher.escheat', given, effect, isDanger: true },
    isInTime &&
      (!isActive || (hasMoney && payerId !== null)) && {
        ...{ name: 'voucher.cancel', given, effect, isDanger: true },
      },
  ];
}

function Title({ entry, currency }: { entry: Entry; currency: string }) {
  const { kind } = useWords();
  const { declined, codes } = useTexts();
  const format = useFormat();
  const figures = useApp().operations?.get('voucher.show')?.figures;
  return (
    <Group gap="xs" justify="space-between" wrap="nowrap">
      <span className={entry.kind === 'decline' ? 'bad' : undefined}>
        {entry.transactionId ? (
          <Link to={`/transactions/${entry.transactionId}`} className="quiet-link">
            {kind(entry.what)}
          </Link>
        ) : (
          kind(entry.what)
        )}
        {entry.code && ` · ${declined.title}: ${codes[entry.code] ?? entry.code}`}
      </span>
      {entry.amount !== null && (
        <span className={`number ${entry.kind === 'decline' ? 'quiet' : ''}`}>
          <Figure of={figures?.['timeline.amount']} value={entry.amount} around={[entry]}>
            {entry.kind === 'money'
              ? format.moved(entry.amount, currency)
              : format.money(entry.amount, currency)}
          </Figure>
        </span>
      )}
    </Group>
  );
}

/** More than any currency has. */
const DECIMALS = 10_000;

/** The balance after each entry, newest first, and at the time of a decline. */
function balancesAfter(balance: number, timeline: readonly Entry[]): readonly number[] {
  let left = balance;
  return timeline.map(({ kind, amount }) => {
    const after = left;
    if (kind === 'money') left = Math.round((left - (amount ?? 0)) * DECIMALS) / DECIMALS;
    return after;
  });
}

type NoteProps = { entry: Entry; currency: string; balance: number };

function Note({ entry, currency, balance }: NoteProps) {
  const { label } = useWords();
  const texts = useTexts().voucher;
  const format = useFormat();
  const then = `${format.money(balance, currency)}`;
  return (
    <Text size="sm" className="quiet running" component="div">
      <Time at={entry.at} />
      {entry.kind !== 'change' && (
        <>
          {' · '}
          <Figure of={UNDECLARED.running} value={balance} around={[]}>
            {entry.kind === 'money' ? texts.after(then) : texts.had(then)}
          </Figure>
        </>
      )}
      {entry.merchantId && (
        <>
          {' · '}
          <Value name="merchantId" value={entry.merchantId} />
        </>
      )}
      {entry.keyId && ` · ${entry.keyId}`}
      {entry.actor && ` · ${entry.actor}`}
      {entry.approvedBy && ` · ${label('approvedBy')} ${entry.approvedBy}`}
      {entry.reference && (
        <>
          {' · '}
          <bdi>{entry.reference}</bdi>
        </>
      )}
      {entry.reason && (
        <>
          {' · '}
          <bdi>{entry.reason}</bdi>
        </>
      )}
    </Text>
  );
}
