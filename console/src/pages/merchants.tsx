import { useTexts } from '../i18n/index.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { State } from '../ui/value.tsx';

export function Screen() {
  const texts = useTexts();
  return (
    <ListPage
      title={texts.nav.merchants}
      create="merchant.create"
      of="merchant.list"
      columns={['id', 'name', 'state', 'product', 'createdAt']}
      narrow={['name', 'state']}
      to={({ id }) => `/merchants/${id}`}
      cell={(name, item) =>
        name === 'state' ? <State name={item['suspendedAt'] ? 'suspended' : 'active'} /> : undefined
      }
      empty={texts.empty.merchants}
    />
  );
}
