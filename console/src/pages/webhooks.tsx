import { useTexts } from '../i18n/index.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { endpointState } from './webhook.tsx';

export function Screen() {
  const texts = useTexts();
  return (
    <ListPage
      title={texts.nav.webhooks}
      create="webhook.add"
      of="webhook.list"
      columns={['url', 'merchantId', 'state', 'events', 'pending', 'failed']}
      narrow={['url', 'state', 'failed']}
      to={({ id }) => `/webhooks/${id}`}
      cell={(name, item) => (name === 'state' ? endpointState(item) : undefined)}
      empty={texts.empty.webhooks}
    />
  );
}
