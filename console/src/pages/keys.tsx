import type { ReactNode } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { type Item, List } from '../ui/list.tsx';
import { ListPage } from '../ui/page.tsx';
import { Empty } from '../ui/parts.tsx';

export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  return (
    <>
      <ListPage
        name="keys"
        note={texts.keys.lead}
        create="api-key.create"
        of="api-key.list"
        actions={keyActions}
      />
      {offers('daily-limit.list') && (
        <List
          title={texts.merchant.limits}
          of="daily-limit.list"
          columns={['flow', 'keyId', 'amount', 'used', 'refusedAt']}
          empty={<Empty text={texts.merchant.noLimits} />}
        />
      )}
      <Actions acts={[{ name: 'daily-limit.set' }]} />
    </>
  );
}

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
