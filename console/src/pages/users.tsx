import { Text } from '@mantine/core';
import { useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { State } from '../ui/value.tsx';

export function Screen() {
  const texts = useTexts();
  const { door } = useApp();
  const search = useSearch({ strict: false }) as Filters;
  const invite = <Actions primary acts={[{ name: 'user.invite' }]} />;
  return (
    <>
      <Head title={texts.nav.users}>
        {invite}
        <Same name="user.list" given={search} />
      </Head>
      <List
        of="user.list"
        search={search}
        columns={['email', 'name', 'roles', 'merchantId', 'state', 'factors', 'signedInAt']}
        narrow={['email', 'roles', 'state']}
        cell={(name, item) => {
          if (name !== 'state' || door !== 'operator' || item['confirmed'] !== false) return undefined;
          return (
            <>
              <State name={String(item['state'])} />
              <Text size="xs" className="quiet">
                {texts.users.unconfirmed}
              </Text>
            </>
          );
        }}
        actions={(item) => {
          const given = { id: String(item['id']) };
          const effect = String(item['email']);
          return (
            <Actions
              shown={0}
              of={effect}
              acts={[
                item['state'] === 'active' &&
                  item['confirmed'] === false && { name: 'user.confirm', given, effect },
                { name: 'user.set-roles', given, current: { roles: item['roles'] } },
                item['state'] === 'invited' && { name: 'user.remove', given, effect, isDanger: true },
                { name: 'user.end-sessions', given, effect },
                { name: 'user.reset-2fa', given, effect, isDanger: true },
                item['state'] === 'disabled'
                  ? { name: 'user.enable', given, effect }
                  : { name: 'user.disable', given, effect, isDanger: true },
              ]}
            />
          );
        }}
        empty={<Empty text={texts.empty.users} action={invite} />}
      />
    </>
  );
}
