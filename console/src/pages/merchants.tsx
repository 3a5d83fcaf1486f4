import { ListPage } from '../ui/page.tsx';
import { State } from '../ui/value.tsx';

export function Screen() {
  return (
    <ListPage
      name="merchants"
      create="merchant.create"
      of="merchant.list"
      columns={['id', 'name', 'state', 'product', 'createdAt']}
      narrow={['name', 'state']}
      cell={(name, item) =>
        name === 'state' ? <State name={item['suspendedAt'] ? 'suspended' : 'active'} /> : undefined
      }
    />
  );
}
