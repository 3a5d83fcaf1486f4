import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import type { Item } from '../ui/list.tsx';
import { Empty } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { useAuditCell } from './audit.tsx';

type Tab = {
  readonly key: string;
  readonly label: string;
  readonly needs: string;
  readonly path: string;
  readonly columns: readonly string[];
  readonly wide?: readonly string[];
  readonly fixed: Readonly<Record<string, string>>;
  readonly to?: (item: Item) => string;
  readonly cell?: (name: string, item: Item) => ReactNode | undefined;
  readonly empty?: ReactNode;
};

/** The lists of things that belong to a merchant. */
export function useMerchantTabs(merchantId: string): readonly Tab[] {
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
  return [
    {
      key: 'transactions',
      label: nav.transactions,
      needs: 'transaction.list',
      path: '/transactions',
      columns: ['timestamp', 'kind', 'serialNumber', 'reference', 'amount'],
      wide: ['serialNumber', 'reference'],
      to: ({ transactionId }) => `/transactions/${transactionId}`,
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
      fixed,
    },
    {
      key: 'keys',
      label: nav.keys,
      needs: 'api-key.list',
      path: '/api-keys',
      columns: ['keyId', 'madeBy', 'scopes', 'lastUsedAt', 'expiresAt', 'calls', ''],
      wide: ['madeBy', 'scopes', 'expiresAt', 'calls'],
      cell: keyCell,
      empty: <Empty text={empty.keys} action={act('api-key.create')} />,
      fixed,
    },
    {
      key: 'batches',
      label: nav.batches,
      needs: 'batch.list',
      path: '/batches',
      columns: ['acceptedAt', 'reference', 'status', 'value', 'quantity', 'produced'],
      wide: ['acceptedAt', 'value', 'produced'],
      to: ({ transactionId }) => `/batches/${transactionId}`,
      empty: <Empty text={empty.batches} />,
      fixed,
    },
    {
      key: 'webhooks',
      label: nav.webhooks,
      needs: 'webhook.list',
      path: '/webhooks',
      columns: ['url', 'events', 'pending', 'failed', 'enabled'],
      wide: ['events', 'pending', 'failed', 'enabled'],
      to: ({ id }) => `/webhooks/${id}`,
      empty: <Empty text={empty.webhooks} action={act('webhook.add')} />,
      fixed,
    },
    {
      key: 'settlements',
      label: nav.settlements,
      needs: 'settlement.list',
      path: '/settlements',
      columns: ['number', 'state', 'firstDay', 'lastDay', 'payable'],
      wide: ['firstDay', 'lastDay'],
      to: ({ id }) => `/settlements/${id}`,
      empty: <Empty text={empty.settlements} />,
      fixed,
    },
    {
      key: 'terms',
      label: merchant.terms,
      needs: 'settlement.list-terms',
      path: '/settlement-terms',
      columns: ['from', 'product', 'commission', 'vat', 'period', 'leastPayout'],
      wide: ['vat', 'period', 'leastPayout'],
      cell: (name, item) => {
        if (name === 'product') return item['product'] === null ? merchant.allProducts : undefined;
        // The limit applies in every currency.
        if (name === 'leastPayout' && typeof item['leastPayout'] === 'number')
          return currencies.map((each) => format.money(item['leastPayout'] as number, each)).join(', ');
        return /^(commission|vat)$/.test(name) ? format.percent(String(item[name])) : undefined;
      },
      empty: <Empty text={merchant.noTerms} action={act('settlement.terms')} />,
      fixed,
    },
    {
      key: 'users',
      label: nav.users,
      needs: 'user.list',
      path: '/users',
      columns: ['email', 'name', 'roles', 'state'],
      wide: ['name'],
      empty: <Empty text={empty.users} action={act('user.invite')} />,
      fixed,
    },
    {
      key: 'audit',
      label: merchant.changes,
      needs: 'audit.list',
      path: '/audit',
      columns: ['occurredAt', 'action', 'actor', 'effect'],
      wide: ['effect'],
      cell: auditCell,
      fixed: { subject: `merchant ${merchantId}` },
    },
  ];
}

/** A merchant should notice a key that it did not make. */
function MadeBy({ operator }: { operator: boolean }) {
  const texts = useTexts().keys;
  return operator ? <b>{texts.byOperator}</b> : texts.byMerchant;
}

/** Who made a key, and the actions on it at the end of its row. */
export function keyCell(name: string, item: Item): ReactNode | undefined {
  if (name === 'madeBy') return <MadeBy operator={item['madeBy'] === 'operator'} />;
  if (name !== '') return undefined;
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
