import { Alert, Stack } from '@mantine/core';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useFilters, useParam } from '../ui/address.ts';
import { Dialog } from '../ui/dialog.tsx';
import type { Item } from '../ui/item.ts';
import { List } from '../ui/list.tsx';
import { stateOfWebhook } from '../ui/lists.tsx';
import { ListPage, PageHead } from '../ui/page.tsx';
import { Panel } from '../ui/parts.tsx';
import { useThing } from '../ui/thing.tsx';
import { Fields } from '../ui/value.tsx';

export function Screen() {
  return <ListPage name="webhooks" create="webhook.add" of="webhook.list" />;
}

export function Thing() {
  const texts = useTexts();
  const navigate = useNavigate();
  const id = useParam('id');
  const search = useFilters();
  const [tested, setTested] = useState<Item>();
  const [shown, setShown] = useState<string>();
  const { thing, instead } = useThing(`/webhooks/${id}`);
  if (!thing) return instead;
  const isPull = thing['url'] === null;
  const url = isPull ? texts.webhook.pull : String(thing['url']);
  const isSent = !isPull && thing['enabled'] === true;
  const given = { id };
  return (
    <>
      <PageHead
        back="webhooks"
        title={url}
        shown={<span className="mono">{url}</span>}
        state={stateOfWebhook(thing)}
        acts={[
          thing['enabled'] === false && { name: 'webhook.enable', given, effect: url },
          !isPull && { name: 'webhook.test', given, effect: url, onDone: setTested },
          // One event is sent again from its row.
          isSent && {
            name: 'webhook.resend',
            given: { id, eventId: undefined },
            initial: { failedSince: thing['failingSince'] ?? undefined },
            effect: url,
          },
          { name: 'webhook.rotate', given, effect: url },
          {
            name: 'webhook.remove',
            given,
            effect: url,
            isDanger: true,
            onDone: () => void navigate({ to: '/webhooks' }),
          },
        ]}
        of="webhook.show"
        given={given}
      />
      <Stack>
        {tested && (
          <Alert
            color={tested['delivered'] ? 'teal' : 'red'}
            variant="light"
            withCloseButton
            closeButtonLabel={texts.close}
            onClose={() => setTested(undefined)}
          >
            {tested['delivered']
              ? texts.webhook.delivered(Number(tested['status']), Number(tested['durationMs']))
              : texts.webhook.notDelivered(String(tested['error'] ?? tested['status']))}
          </Alert>
        )}
        <div className="two">
          <List
            title={texts.webhook.deliveries}
            of="webhook.deliveries"
            fixed={given}
            search={search}
            columns={['occurredAt', 'type', 'state', 'attempts']}
            narrow={['type', 'state', 'attempts']}
            cell={(name, item) =>
              name === 'attempts' ? (
                <button
                  type="button"
                  className="text-button"
                  title={texts.webhook.attempts}
                  onClick={() => setShown(String(item['eventId']))}
                >
                  {String(item['attempts'])}
                </button>
              ) : undefined
            }
            actions={({ eventId }) => (
              <Actions
                shown={0}
                of={String(eventId)}
                acts={[isSent && { name: 'webhook.resend', given: { id, eventId } }]}
              />
            )}
          />
          <Panel title={texts.details} padded>
            <Fields of={thing} without={['id', 'url', 'enabled']} />
          </Panel>
        </div>
      </Stack>
      <Dialog
        opened={shown !== undefined}
        onClose={() => setShown(undefined)}
        title={texts.webhook.attempts}
        size="lg"
      >
        {shown && (
          <List
            of="webhook.attempts"
            fixed={{ id, eventId: shown }}
            narrow={['number', 'at', 'status', 'durationMs', 'error']}
            brief
          />
        )}
      </Dialog>
    </>
  );
}
