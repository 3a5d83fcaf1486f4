import type { ReactNode } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import type { Item } from '../ui/list.tsx';
import { ListPage } from '../ui/page.tsx';

export function Screen() {
  const texts = useTexts();
  return (
    <ListPage
      name="keys"
      note={texts.keys.lead}
      create="api-key.create"
      of="api-key.list"
      columns={['keyId', 'madeBy', 'scopes', 'createdAt', 'lastUsedAt', 'expiresAt', 'revokedAt']}
      narrow={['keyId', 'madeBy', 'lastUsedAt']}
      cell={keyCell}
      actions={keyActions}
    />
  );
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
