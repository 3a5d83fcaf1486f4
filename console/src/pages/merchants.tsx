import { Anchor, Stack } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Answer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions, type Input } from '../ui/actions.tsx';
import { useParam } from '../ui/address.ts';
import { useApp } from '../ui/app.tsx';
import { Floats } from '../ui/floats.tsx';
import { useFormat } from '../ui/format.ts';
import { type Item, List, type ListProps } from '../ui/list.tsx';
import { ListPage, PageHead, PageTabs } from '../ui/page.tsx';
import { Empty, Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Copyable, Fields, State } from '../ui/value.tsx';
import { useAuditCell } from './audit.tsx';
import { keyActions, keyCell } from './keys.tsx';

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
  const path = `/merchants/${id}`;
  const { thing, instead } = useThing(path);
  const { thing: floats } = useThing<Answer<'float.show'>>('/floats', {
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
          {offers('float.show') && (
            <div className="stats">
              <Floats merchantId={id} />
            </div>
          )}
          <Panel title={texts.details} padded>
            <Fields of={thing} without={['id', 'name']} />
          </Panel>
        </div>
        <PageTabs tabs={tabs} />
      </Stack>
    </>
  );
}

/** The lists of things that belong to a merchant. */
function useMerchantTabs(merchantId: string) {
  const { nav, merchant, empty } = useTexts();
  const format = useFormat();
  const auditCell = useAuditCell();
  const { offers } = useApp();
  const fixed = { merchantId };
  const { thing: floats } = useThing<Item & { readonly items: readonly { readonly currency: string }[] }>(
    '/floats',
    { query: fixed, enabled: offers('float.show') },
  );
  const currencies = floats?.items.map(({ currency }) => currency) ?? [];
  const act = (name: string) => <Actions acts={[{ name, given: fixed }]} />;
  const tabs: readonly (ListProps & { readonly key: string; readonly label: string })[] = [
    {
      key: 'transactions',
      label: nav.transactions,
      of: 'transaction.list',
      columns: ['timestamp', 'kind', 'serialNumber', 'reference', 'amount'],
      narrow: ['timestamp', 'kind', 'amount'],
      empty: (
        <Empty
          text={empty.ofMerchant}
          action={
            offers('books.report') && (
              <Anchor
                component={Link}
                to={`/books/reports/float-statement?merchantId=${merchantId}`}
                size="sm"
              >
                {merchant.statement}
              </Anchor>
            )
          }
        />
      ),
    },
    {
      key: 'keys',
      label: nav.keys,
      of: 'api-key.list',
      columns: ['keyId', 'madeBy', 'scopes', 'lastUsedAt', 'expiresAt', 'calls'],
      narrow: ['keyId', 'lastUsedAt'],
      cell: keyCell,
      actions: keyActions,
      empty: <Empty text={empty.keys} action={act('api-key.create')} />,
    },
    {
      key: 'batches',
      label: nav.batches,
      of: 'batch.list',
      columns: ['acceptedAt', 'reference', 'status', 'value', 'quantity', 'produced'],
      narrow: ['reference', 'status', 'quantity'],
      empty: <Empty text={empty.batches} />,
    },
    {
      key: 'webhooks',
      label: nav.webhooks,
      of: 'webhook.list',
      columns: ['url', 'events', 'pending', 'failed', 'enabled'],
      narrow: ['url'],
      empty: <Empty text={empty.webhooks} action={act('webhook.add')} />,
    },
    {
      key: 'settlements',
      label: nav.settlements,
      of: 'settlement.list',
      columns: ['number', 'state', 'firstDay', 'lastDay', 'payable'],
      narrow: ['number', 'state', 'payable'],
      empty: <Empty text={empty.settlements} />,
    },
    {
      key: 'terms',
      label: merchant.terms,
      of: 'settlement.list-terms',
      columns: ['from', 'product', 'commission', 'vat', 'period', 'leastPayout'],
      cell: (name, item) => {
        if (name === 'product') return item['product'] === null ? merchant.allProducts : undefined;
        // The limit applies in every currency.
        if (name === 'leastPayout' && typeof item['leastPayout'] === 'number')
          return currencies.map((each) => format.money(item['leastPayout'] as number, each)).join(', ');
        return undefined;
      },
      empty: <Empty text={merchant.noTerms} action={act('settlement.terms')} />,
    },
    {
      key: 'users',
      label: nav.users,
      of: 'user.list',
      columns: ['email', 'name', 'roles', 'state'],
      narrow: ['email', 'roles', 'state'],
      empty: <Empty text={empty.users} action={act('user.invite')} />,
    },
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
    .map(({ key, label, ...list }) => ({ key, label, body: <List fixed={fixed} {...list} /> }));
}
