import { Stack, Tabs } from '@mantine/core';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions, type Input } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { type Filters, List } from '../ui/list.tsx';
import { Head, Panel, Stat } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields, State } from '../ui/value.tsx';
import { useMerchantTabs } from './merchant-tabs.tsx';

export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  const navigate = useNavigate();
  const format = useFormat();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const { tab } = useSearch({ strict: false }) as Filters;
  const path = `/merchants/${id}`;
  const { thing, instead } = useThing(path);
  const { thing: floats } = useThing<Floats>('/floats', {
    query: { merchantId: id },
    enabled: offers('float.show'),
  });
  const tabs = useMerchantTabs(id).filter(({ of }) => offers(of));
  if (!thing) return instead;
  const name = String(thing['name']);
  const chosen = tabs.find(({ key }) => key === tab) ?? tabs[0];
  // Most merchants have one float.
  const [float] = floats?.items ?? [];
  const initial = float ? { currency: float['currency'] } : {};
  const toppedUp = ({ amount, currency }: Input) => {
    const { balance = 0 } = floats?.items.find((each) => each.currency === currency) ?? {};
    const added = Number(amount);
    if (!(added > 0) || typeof currency !== 'string') return name;
    return `${name}: ${format.money(balance, currency)} → ${format.money(balance + added, currency)}`;
  };
  const isSuspended = thing['suspendedAt'] !== null;
  return (
    <>
      <Head
        back={{ to: '/merchants', label: texts.nav.merchants }}
        name={name}
        title={
          <>
            <bdi>{name}</bdi> <State name={isSuspended ? 'suspended' : 'active'} />
          </>
        }
        note={
          <>
            {texts.merchant.number} <Copyable text={id} />
          </>
        }
      >
        <Actions
          primary
          acts={[
            { name: 'float.top-up', given: { merchantId: id }, initial, effect: toppedUp },
            { name: 'merchant.set', given: { id }, current: thing, source: path },
            { name: 'api-key.create', given: { merchantId: id } },
            { name: 'merchant.permit', given: { id }, effect: name },
            { name: 'merchant.forbid', given: { id }, effect: name },
            { name: 'float.warn', given: { merchantId: id }, initial, effect: name },
            { name: 'float.refund', given: { merchantId: id }, initial, effect: name, isDanger: true },
            {
              name: 'settlement.draft',
              label: texts.merchant.draft,
              given: { merchantId: id },
              effect: name,
            },
            { name: 'settlement.terms', given: { merchantId: id }, effect: name },
            { name: 'webhook.add', given: { merchantId: id } },
            { name: 'user.invite', label: texts.merchant.invite, given: { merchantId: id } },
            isSuspended
              ? { name: 'merchant.resume', given: { id }, effect: name }
              : { name: 'merchant.suspend', given: { id }, effect: name, isDanger: true },
          ]}
        />
        <Same name="merchant.show" given={{ id }} />
      </Head>
      <Stack gap="lg">
        <div className="two even">
          {offers('float.show') && <Floats merchantId={id} />}
          <Panel title={texts.merchant.details} padded>
            <Fields of={thing} without={['id', 'name']} />
          </Panel>
        </div>
        <Tabs
          value={chosen?.key ?? null}
          onChange={(next) => void navigate({ to: '.', search: { tab: next } as never, replace: true })}
          keepMounted={false}
        >
          <Tabs.List mb="md">
            {tabs.map(({ key, label }) => (
              <Tabs.Tab key={key} value={key} ref={key === chosen?.key ? tabIntoView : undefined}>
                {label}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {tabs.map(({ key, ...list }) => (
            <Tabs.Panel key={key} value={key}>
              <List {...list} />
            </Tabs.Panel>
          ))}
        </Tabs>
      </Stack>
    </>
  );
}

/** Scrolls the tabs, but not the page, until a tab is visible. */
function tabIntoView(tab: HTMLElement | null): void {
  const list = tab?.parentElement;
  if (list) list.scrollLeft = tab.offsetLeft + tab.offsetWidth - list.clientWidth;
}

type Floats = Answer<'float.show'>;

function Floats({ merchantId }: { merchantId: string }) {
  const texts = useTexts();
  const format = useFormat();
  const { thing } = useThing<Floats>('/floats', { query: { merchantId } });
  return (
    <div className="stats">
      {thing?.items.length === 0 && (
        <Stat label={texts.nav.floats} note={texts.float.none}>
          <span className="quiet">–</span>
        </Stat>
      )}
      {thing?.items.map((float) => (
        <Stat
          key={String(float['currency'])}
          label={texts.nav.floats}
          note={texts.float.lasts(float['daysLeft'] as number | null)}
        >
          {format.money(Number(float['balance']), String(float['currency']))}
        </Stat>
      ))}
    </div>
  );
}
