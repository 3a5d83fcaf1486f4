import { Alert, Stack } from '@mantine/core';
import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { useApp } from '../ui/app.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { type Filters, type Item, List } from '../ui/list.tsx';
import { Head, Panel } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useThing } from '../ui/thing.tsx';
import { Fields, State } from '../ui/value.tsx';

/** Whether an endpoint works. */
export function endpointState(item: Item) {
  return <State name={item['enabled'] ? (item['failingSince'] ? 'failing' : 'active') : 'disabled'} />;
}

export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const { id = '' } = useParams({ strict: false }) as { id?: string };
  const search = useSearch({ strict: false }) as Filters;
  const { door } = useApp();
  const [tested, setTested] = useState<Item>();
  const [shown, setShown] = useState<string>();
  const { thing, instead } = useThing(`/webhooks/${id}`, { refetchMs: () => 10_000 });
  if (!thing) return instead;
  const url = String(thing['url']);
  const given = { id };
  return (
    <>
      <Head
        back={{ to: '/webhooks', label: texts.nav.webhooks }}
        name={url}
        title={
          <>
            <span className="mono">{url}</span> {endpointState(thing)}
          </>
        }
      >
        <Actions
          acts={[
            thing['enabled'] === false && { name: 'webhook.enable', given, effect: url },
            { name: 'webhook.test', given, effect: url, onDone: setTested },
            { name: 'webhook.resend', given, effect: url },
            { name: 'webhook.rotate', given, effect: url },
            {
              name: 'webhook.remove',
              given,
              effect: url,
              isDanger: true,
              onDone: () => void navigate({ to: '/webhooks' }),
            },
          ]}
        />
        <Same name="webhook.show" given={given} />
      </Head>
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
            path={`/webhooks/${id}/deliveries`}
            refetchMs={10_000}
            search={search}
            filters={['state']}
            columns={['occurredAt', 'type', 'state', 'attempts', '']}
            wide={['occurredAt']}
            cell={(name, item) => {
              const eventId = String(item['eventId']);
              if (name === 'attempts')
                return (
                  <button
                    type="button"
                    className="text-button"
                    title={texts.webhook.attempts}
                    onClick={() => setShown(eventId)}
                  >
                    {String(item['attempts'])}
                  </button>
                );
              return name === '' ? (
                <Actions
                  shown={0}
                  of={eventId}
                  acts={[{ name: 'webhook.resend', given: { id, eventId: item['eventId'] } }]}
                />
              ) : undefined;
            }}
          />
          <Panel title={texts.webhook.details} padded>
            <Fields
              of={thing}
              show={[
                ...(door === 'operator' ? ['merchantId'] : []),
                'events',
                'full',
                'createdAt',
                'pending',
                'failed',
              ]}
              also={['failingSince', 'disabledAt', 'disabledReason']}
            />
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
            path={`/webhooks/${id}/deliveries/${shown}`}
            columns={['number', 'at', 'status', 'durationMs', 'error']}
            brief
          />
        )}
      </Dialog>
    </>
  );
}
