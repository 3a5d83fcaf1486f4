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
      <Head title={nav.tokens}>
        <Action name="token.create" label="Create a token" primary />
        <Same name="token.list" given={search} />
      </Head>
      <List
        path="/tokens"
        search={search}
        columns={['id', 'name', 'roles', 'networks', 'createdAt', 'expiresAt', 'lastUsedAt', 'revokedAt', '']}
        cell={(name, item) =>
          name === '' && !item['revokedAt'] ? (
            <Action
              name="token.revoke"
              label="Revoke"
              danger
              given={{ id: String(item['id']) }}
              effect={String(item['name'] ?? item['id'])}
            />
          ) : undefined
        }
      />
    </>
  );
}
