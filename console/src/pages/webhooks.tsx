import { useNavigate, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { endpointState } from './webhook.tsx';

export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Filters;
  const add = (
    <Actions
      primary
      acts={[{ name: 'webhook.add', onDone: ({ id }) => void navigate({ to: `/webhooks/${id}` }) }]}
    />
  );
  return (
    <>
      <Head title={texts.nav.webhooks}>
        {add}
        <Same name="webhook.list" given={search} />
      </Head>
      <List
        of="webhook.list"
        search={search}
        columns={['url', 'merchantId', 'state', 'events', 'pending', 'failed']}
        narrow={['url', 'state', 'failed']}
        to={({ id }) => `/webhooks/${id}`}
        cell={(name, item) => (name === 'state' ? endpointState(item) : undefined)}
        empty={<Empty text={texts.empty.webhooks} action={add} />}
      />
    </>
  );
}
