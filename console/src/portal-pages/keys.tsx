import { useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Action } from '../ui/action.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const { nav } = useTexts();
  const search = useSearch({ strict: false }) as Filters;
  return (
    <>
      <Head title={nav.keys}>
        <Action name="api-key.create" label="New API key" primary />
        <Same name="api-key.list" given={search} />
      </Head>
      <List
        path="/api-keys"
        search={search}
        columns={['keyId', 'scopes', 'networks', 'createdAt', 'expiresAt', 'revokedAt', '']}
        cell={(name, item) => {
          if (name !== '' || item['revokedAt']) return undefined;
          const given = { keyId: String(item['keyId']) };
          return (
            <>
              <Action name="api-key.rotate" label="Rotate" given={given} effect={given.keyId} />{' '}
              <Action name="api-key.revoke" label="Revoke" danger given={given} effect={given.keyId} />
            </>
          );
        }}
      />
    </>
  );
}
