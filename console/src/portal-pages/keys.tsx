import { useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { keyActions, keyCell } from '../pages/merchant-tabs.tsx';
import { Actions } from '../ui/actions.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const texts = useTexts();
  const search = useSearch({ strict: false }) as Filters;
  const create = <Actions primary acts={[{ name: 'api-key.create' }]} />;
  return (
    <>
      <Head title={texts.nav.keys} note={texts.keys.lead}>
        {create}
        <Same name="api-key.list" given={search} />
      </Head>
      <List
        of="api-key.list"
        columns={['keyId', 'madeBy', 'scopes', 'createdAt', 'lastUsedAt', 'expiresAt', 'revokedAt']}
        narrow={['keyId', 'madeBy', 'lastUsedAt']}
        cell={keyCell}
        actions={keyActions}
        empty={<Empty text={texts.empty.keys} action={create} />}
      />
    </>
  );
}
