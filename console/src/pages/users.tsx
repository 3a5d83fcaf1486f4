import { Group } from '@mantine/core';
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
      <Head title={nav.users}>
        <Action name="user.invite" label="Invite" primary />
        <Same name="user.list" given={search} />
      </Head>
      <List
        path="/users"
        search={search}
        filters={[{ name: 'merchantId' }]}
        columns={['email', 'name', 'roles', 'merchantId', 'factors', 'signedInAt', 'state', '']}
        cell={(name, item) => {
          if (name !== '') return undefined;
          const given = { id: String(item['id']) };
          const effect = String(item['email']);
          return (
            <Group gap={4} wrap="nowrap" justify="flex-end">
              <Action name="user.set-roles" label="Roles" given={given} effect={effect} />
              <Action name="user.end-sessions" label="End sessions" given={given} effect={effect} />
              <Action name="user.reset-2fa" label="Reset 2FA" danger given={given} effect={effect} />
              <Action
                name={item['state'] === 'disabled' ? 'user.enable' : 'user.disable'}
                label={item['state'] === 'disabled' ? 'Enable' : 'Disable'}
                danger={!(item['state'] === 'disabled')}
                given={given}
                effect={effect}
              />
            </Group>
          );
        }}
      />
    </>
  );
}
