import { Text } from '@mantine/core';
import type { PortalAnswer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { ListPage } from '../ui/page.tsx';
import { useThing } from '../ui/thing.tsx';
import { State } from '../ui/value.tsx';

export function Screen() {
  const texts = useTexts();
  const { door } = useApp();
  return (
    <ListPage
      name="users"
      create="user.invite"
      of="user.list"
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
        const isOpen = item['state'] === 'invited' || item['state'] === 'active';
        return (
          <Actions
            shown={0}
            of={effect}
            acts={[
              item['state'] === 'active' &&
                item['confirmed'] === false && { name: 'user.confirm', given, effect },
              isOpen && {
                name: 'user.set-roles',
                given: { ...given, merchantId: item['merchantId'] },
                current: { roles: item['roles'] },
              },
              item['state'] === 'invited' && {
                name: 'user.invite',
                label: texts.users.newLink,
                given: {
                  email: item['email'],
                  name: item['name'],
                  roles: item['roles'],
                  merchantId: item['merchantId'],
                },
                effect,
              },
              item['state'] === 'invited' && { name: 'user.remove', given, effect, isDanger: true },
              isOpen && { name: 'user.end-sessions', given, effect },
              item['state'] === 'active' && { name: 'user.reset-2fa', given, effect, isDanger: true },
              item['state'] === 'disabled' && { name: 'user.enable', given, effect },
              item['state'] === 'disabled' && { name: 'user.erase', given, effect, isDanger: true },
              isOpen && { name: 'user.disable', given, effect, isDanger: true },
            ]}
          />
        );
      }}
    >
      <Downloads />
    </ListPage>
  );
}

/** In the portal: whether downloads of codes need a second person of the merchant. */
function Downloads() {
  const { offers } = useApp();
  const name = 'merchant.set-download-approval';
  const { thing } = useThing<PortalAnswer<'merchant.show'>>('/merchant', { enabled: offers(name) });
  return thing && <Actions acts={[{ name, current: thing }]} />;
}
