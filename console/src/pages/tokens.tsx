import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { ListPage } from '../ui/page.tsx';
import { State } from '../ui/value.tsx';

function stateOf({ revokedAt, expiresAt, suspended }: Readonly<Record<string, unknown>>): string {
  if (revokedAt) return 'REVOKED';
  if (Date.parse(String(expiresAt)) < Date.now()) return 'EXPIRED';
  return suspended ? 'suspended' : 'active';
}

export function Screen() {
  const texts = useTexts();
  return (
    <ListPage
      name="tokens"
      note={texts.tokens.lead}
      create="token.create"
      of="token.list"
      columns={['name', 'prefix', 'roles', 'state', 'for', 'createdBy', 'expiresAt', 'lastUsedAt']}
      narrow={['name', 'roles', 'state', 'for']}
      cell={(name, item) => (name === 'state' ? <State name={stateOf(item)} /> : undefined)}
      actions={(item) =>
        item['revokedAt'] ? undefined : (
          <Actions
            of={String(item['name'] ?? item['id'])}
            acts={[
              {
                name: 'token.revoke',
                given: { id: String(item['id']) },
                effect: String(item['name'] ?? item['id']),
                isDanger: true,
              },
            ]}
          />
        )
      }
    />
  );
}
