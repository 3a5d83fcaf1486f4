import { useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Action, ActionMenu } from '../ui/action.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const texts = useTexts();
  const search = useSearch({ strict: false }) as Filters;
  return (
    <>
      <Head title={texts.nav.users}>
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
          const isDisabled = item['state'] === 'disabled';
          const actions = [
            { name: 'user.set-roles', label: 'Roles' },
            { name: 'user.end-sessions', label: 'End sessions' },
            { name: 'user.reset-2fa', label: 'Reset 2FA', danger: true },
            isDisabled
              ? { name: 'user.enable', label: 'Enable' }
              : { name: 'user.disable', label: 'Disable', danger: true },
          ];
          return (
            <ActionMenu
              label={`${texts.list.actions}: ${effect}`}
              actions={actions.map((action) => ({ ...action, given, effect }))}
            />
          );
        }}
      />
    </>
  );
}
