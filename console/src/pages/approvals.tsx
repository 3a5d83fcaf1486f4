import { Group } from '@mantine/core';
import { useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Action } from '../ui/action.tsx';
import { useApp } from '../ui/app.tsx';
import { type Filters, type Item, List } from '../ui/list.tsx';
import { Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const texts = useTexts().approvals;
  const { session } = useApp();
  const search = useSearch({ strict: false }) as Filters;
  return (
    <>
      <Head title={texts.title}>
        <Same name="approval.list" given={search} />
      </Head>
      <List
        path="/approvals"
        search={search}
        refetchMs={10_000}
        filters={[{ name: 'state' }]}
        columns={['createdAt', 'operation', 'maker', 'effect', 'reason', 'state', 'expiresAt', '']}
        cell={(name, item) => {
          if (name !== '') return undefined;
          const given = { id: String(item['id']) };
          const effect = JSON.stringify(item['effect'] ?? item['input'] ?? {});
          const isMine = String((item['maker'] as Item)?.['id'] ?? '') === session?.user.id;
          return (
            <Group gap={4} wrap="nowrap" justify="flex-end">
              {!isMine && (
                <Action name="approval.approve" label="Approve" primary given={given} effect={effect} />
              )}
              {!isMine && (
                <Action name="approval.reject" label="Reject" danger given={given} effect={effect} />
              )}
              {isMine && <Action name="approval.withdraw" label="Withdraw" given={given} effect={effect} />}
            </Group>
          );
        }}
      />
    </>
  );
}
