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
      <Head title={nav.webhooks}>
        <Action name="webhook.add" label="Add an endpoint" primary />
        <Same name="webhook.list" given={search} />
      </Head>
      <List
        path="/webhooks"
        search={search}
        filters={[{ name: 'merchantId' }]}
        columns={['id', 'merchantId', 'url', 'events', 'pending', 'failed', 'failingSince', 'enabled']}
        to={({ id }) => `/webhooks/${id}`}
      />
    </>
  );
}
