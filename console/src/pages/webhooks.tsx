import { ListPage } from '../ui/page.tsx';
import { State } from '../ui/value.tsx';
import { stateOf } from './webhook.tsx';

export function Screen() {
  return (
    <ListPage
      name="webhooks"
      create="webhook.add"
      of="webhook.list"
      columns={['url', 'merchantId', 'state', 'events', 'pending', 'failed']}
      narrow={['url', 'state', 'failed']}
      cell={(name, item) => (name === 'state' ? <State name={stateOf(item)} /> : undefined)}
    />
  );
}
