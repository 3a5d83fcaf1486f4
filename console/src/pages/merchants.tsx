import { Anchor, Stack } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Input } from '../ui/act.ts';
import { Actions } from '../ui/actions.tsx';
import { useFilters, useParam } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { AtField } from '../ui/at.tsx';
import { Floats as FloatStats } from '../ui/floats.tsx';
import { useFormat } from '../ui/format.ts';
import { List } from '../ui/list.tsx';
import type { ListProps } from '../ui/lists.tsx';
import { ListPage, PageHead, PageTabs } from '../ui/page.tsx';
import { Empty, Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields, State } from '../ui/value.tsx';
import { useAuditCell } from './audit.tsx';
import { keyActions } from './keys.tsx';

type Floats = Answer<'float.show'>;

export function Screen() {
  return (
    <ListPage
      name="merchants"
      create="merchant.create"
      of="merchant.list"
      columns={['id', 'name', 'state', 'product', 'createdAt']}
      narrow={['name', 'state']}
      cell={(name, item) =>
        name === 'state' ? <State name={item['suspendedAt'] ? 'suspended' : 'active'} /> : undefined
      }
    />
  );
}

export function Thing() {
  const texts = useTexts();
  const { offers } = useApp();
  const format = useFormat();
  const id = useParam('id');
  const [given, ofMerchant] = [{ id }, { merchantId: id }];
  const { at } = useFilters();
  const path = `/merchants/${id}`;
  const { thing, instead } = useThing(path);
  const { thing: floats } = useThing<Floats>('/floats', {
    query: ofMerchant,
    enabled: offers('float.show'),
  });
  const tabs = useMerchantTabs(id, floats);
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
          // Only a float can be watched, or paid back.
          float && { name: 'float.warn', given: ofMerchant, initial, effect: name },
          float && { name: 'float.refund', given: ofMerchant, initial, effect: name, isDanger: true },
          { name: 'settlement.draft', label: texts.merchant.draft, given: ofMerchant, effect: name },
          { name: 'settlement.terms', given: ofMerchant, effect: name },
          { name: 'webhook.add', given: ofMerchant },
          { name: 'user.invite', label: texts.merchant.invite, given: ofMerchant },
          isSuspended
            ? { name: 'merchant.resume', given, effect: name }
            : { name: 'merchant.suspend', given, effect: name, isDanger: true },
        ]}
        of="merchant.show"
        given={{ ...given, at }}
      >
        <AtField />
      </PageHead>
      <Stack gap="lg">
        <div className="two even">
          {offers('float.show') && (
            <div className="stats">
              <FloatStats merchantId={id} at={at} />
            </div>
          )}
          <Panel title={texts.details} padded>
            <Fields of={thing} answer="merchant.show" without={['id', 'name']} />
          </Panel>
        </div>
        <PageTabs tabs={tabs} />
      </Stack>
    </>
  );
}

type Tab = ListProps & {
  readonly key: string;
  readonly label: string;
  /** The text of an empty list, and the operation that adds the first item. */
  readonly text?: string;
  readonly create?: string;
};

/** The lists of things that belong to a merchant. */
function useMerchantTabs(merchantId: string, floats: Floats | undefined) {
  const { nav, merchant, empty } = useTexts();
  const format = useFormat();
  const auditCell = useAuditCell();
  const { offers } = useApp();
  const fixed = { merchantId };
  // The limit applies in every currency.
  const inEach = (amount: number) =>
    floats?.items.map(({ currency }) => `${format.money(amount, currency)}`).join(', ');
  const tabs: readonly Tab[] = [
    {
      key: 'transactions',
      label: nav.transactions,
      of: 'transaction.list',
      empty: <NoTransactions {...fixed} />,
    },
    {
      key: 'keys',
      label: nav.keys,
      text: empty.keys,
      create: 'api-key.create',
      of: 'api-key.list',
      actions: keyActions,
    },
    {
      key: 'limits',
      label: merchant.limits,
      text: merchant.noLimits,
      create: 'daily-limit.set',
      of: 'daily-limit.list',
    },
    {
      key: 'batches',
      label: nav.batches,
      text: empty.batches,
      create: 'batch.generate',
      of: 'batch.list',
    },
    { key: 'webhooks', label: nav.webhooks, text: empty.webhooks, create: 'webhook.add', of: 'webhook.list' },
    { key: 'settlements', label: nav.settlements, text: empty.settlements, of: 'settlement.list' },
    {
      key: 'terms',
      label: merchant.terms,
      text: merchant.noTerms,
      create: 'settlement.terms',
      of: 'settlement.list-terms',
      columns: ['from', 'product', 'commission', 'vat', 'period', 'minPayout'],
      cell: (name, { product, minPayout }) => {
        if (name === 'product') return product === null ? merchant.allProducts : undefined;
        return name === 'minPayout' && typeof minPayout === 'number' ? inEach(minPayout) : undefined;
      },
    },
    { key: 'users', label: nav.users, text: empty.users, create: 'user.invite', of: 'user.list' },
    {
      key: 'audit',
      label: merchant.changes,
      of: 'audit.list',
      columns: ['occurredAt', 'action', 'actor', 'effect'],
      cell: auditCell,
      fixed: { subject: `merchant ${merchantId}` },
    },
  ];
  return tabs
    .filter(({ of }) => offers(of))
    .map(({ key, label, ...list }) => ({ key, label, body: <TabList fixed={fixed} {...list} /> }));
}

function TabList({ text = '', create, ...list }: Omit<Tab, 'key' | 'label'>) {
  const { offers } = useApp();
  // It stands beside the list, which may be read again while the dialog still shows a secret.
  const add = create && offers(create) && <Actions acts={[{ name: create, given: list.fixed }]} />;
  return <List empty={<Empty text={text} />} aside={add} {...list} />;
}

function NoTransactions({ merchantId }: { merchantId: string }) {
  const { empty, merchant } = useTexts();
  const { offers } = useApp();
  const to = `/books/reports/float-statement?merchantId=${merchantId}`;
  const link = (
    <Anchor component={Link} to={to} size="sm">
      {merchant.statement}
    </Anchor>
  );
  return <Empty text={empty.ofMerchant} action={offers('books.report') && link} />;
}
