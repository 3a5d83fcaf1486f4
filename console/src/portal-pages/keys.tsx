import { useTexts } from '../i18n/index.tsx';
import { keyActions, keyCell } from '../pages/merchant-tabs.tsx';
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
