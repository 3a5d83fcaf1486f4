import type { ReactNode } from 'react';
import type { PortalAnswer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import type { Input } from '../ui/act.ts';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { isPast } from '../ui/format-of.ts';
import type { Item } from '../ui/item.ts';
import { List } from '../ui/list.tsx';
import { ListPage } from '../ui/page.tsx';
import { Empty } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';

/** Scopes with which a key gets codes. Without any, it may do what its merchant may. */
const OPENING = ['generate', 'download'];

export function Screen() {
  const texts = useTexts();
  const { door, offers } = useApp();
  const { thing: merchant } = useThing<PortalAnswer<'merchant.show'>>('/merchant', {
    enabled: door === 'portal',
  });
  const warn = (values: Input) => {
    const scopes = (values['scopes'] ?? []) as readonly string[];
    const opens = scopes.length === 0 || OPENING.some((scope) => scopes.includes(scope));
    return opens && merchant?.downloadApproval ? texts.keys.withoutSecond : undefined;
  };
  return (
    <>
      <ListPage
        name="keys"
        note={texts.keys.lead}
        create="api-key.create"
        effect={warn}
        of="api-key.list"
        actions={keyActions}
      />
      {offers('daily-limit.list') && (
        <List
          title={texts.merchant.limits}
          of="daily-limit.list"
          empty={<Empty text={texts.merchant.noLimits} />}
        />
      )}
      <Actions acts={[{ name: 'daily-limit.set' }]} />
    </>
  );
}

/** The actions on a key. */
export function keyActions(item: Item): ReactNode {
  if (item['revokedAt']) return <span className="quiet">–</span>;
  const keyId = String(item['keyId']);
  const given = { keyId };
  const current = { name: item['name'] };
  return (
    <Actions
      shown={0}
      of={keyId}
      acts={[
        !isPast(item['expiresAt']) && !item['rotatedTo'] && { name: 'api-key.rotate', given, effect: keyId },
        { name: 'api-key.rename', given, current },
        { name: 'api-key.limit', given, effect: keyId },
        item['blockedAt'] !== null && { name: 'api-key.pardon', given, effect: keyId },
        { name: 'api-key.revoke', given, effect: keyId, isDanger: true },
      ]}
    />
  );
}
