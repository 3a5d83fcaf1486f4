import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { type Item, List, type ListProps } from '../ui/list.tsx';
import { Empty } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { useAuditCell } from './audit.tsx';

/** The lists of things that belong to a merchant. */
export function useMerchantTabs(merchantId: string) {
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

/** A merchant should notice a key that it did not make. */
function MadeBy({ operator }: { operator: boolean }) {
  const texts = useTexts().keys;
  return operator ? <b>{texts.byOperator}</b> : texts.byMerchant;
}

/** Who made a key. */
export const keyCell = (name: string, { madeBy }: Item): ReactNode | undefined =>
  name === 'madeBy' ? <MadeBy operator={madeBy === 'operator'} /> : undefined;

/** The actions on a key. */
export function keyActions(item: Item): ReactNode {
  if (item['revokedAt']) return <span className="quiet">–</span>;
  const keyId = String(item['keyId']);
  const given = { keyId };
  return (
    <Actions
      shown={0}
      of={keyId}
      acts={[
        { name: 'api-key.rotate', given, effect: keyId },
        { name: 'api-key.limit', given, effect: keyId },
        item['blockedAt'] !== null && { name: 'api-key.pardon', given, effect: keyId },
        { name: 'api-key.revoke', given, effect: keyId, isDanger: true },
      ]}
    />
  );
}
