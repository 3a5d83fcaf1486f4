import { Stack } from '@mantine/core';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Input } from '../ui/actions.tsx';
import { useParam } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { PageHead, PageTabs } from '../ui/page.tsx';
import { Panel, Stat } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields } from '../ui/value.tsx';
import { useMerchantTabs } from './merchant-tabs.tsx';

export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  const format = useFormat();
  const id = useParam('id');
  const [given, ofMerchant] = [{ id }, { merchantId: id }];
  const path = `/merchants/${id}`;
  const { thing, instead } = useThing(path);
  const { thing: floats } = useThing<Floats>('/floats', {
    query: ofMerchant,
    enabled: offers('float.show'),
  });
  const tabs = useMerchantTabs(id);
  if (!thing) return instead;
  const name = String(thing['name']);
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
      <PageHead
        back="merchants"
        title={name}
        state={isSuspended ? 'suspended' : 'active'}
        note={
          <>
            {texts.merchant.number} <Copyable text={id} />
          </>
        }
        primary
        acts={[
          { name: 'float.top-up', given: ofMerchant, initial, effect: toppedUp },
          { name: 'merchant.set', given, current: thing, source: path },
          { name: 'api-key.create', given: ofMerchant },
          { name: 'merchant.permit', given, effect: name },
          { name: 'merchant.forbid', given, effect: name },
          { name: 'float.warn', given: ofMerchant, initial, effect: name },
          { name: 'float.refund', given: ofMerchant, initial, effect: name, isDanger: true },
          { name: 'settlement.draft', label: texts.merchant.draft, given: ofMerchant, effect: name },
          { name: 'settlement.terms', given: ofMerchant, effect: name },
          { name: 'webhook.add', given: ofMerchant },
          { name: 'user.invite', label: texts.merchant.invite, given: ofMerchant },
          isSuspended
            ? { name: 'merchant.resume', given, effect: name }
            : { name: 'merchant.suspend', given, effect: name, isDanger: true },
        ]}
        of="merchant.show"
        given={given}
      />
      <Stack gap="lg">
        <div className="two even">
          {offers('float.show') && <Floats merchantId={id} />}
          <Panel title={texts.details} padded>
            <Fields of={thing} without={['id', 'name']} />
          </Panel>
        </div>
        <PageTabs tabs={tabs} />
      </Stack>
    </>
  );
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
