import { useNavigate, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { State } from '../ui/value.tsx';

export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Filters;
  const create = (
    <Actions
      primary
      acts={[{ name: 'merchant.create', onDone: ({ id }) => void navigate({ to: `/merchants/${id}` }) }]}
    />
  );
  return (
    <>
      <Head title={texts.nav.merchants}>
        {create}
        <Same name="merchant.list" given={search} />
      </Head>
      <List
        of="merchant.list"
        search={search}
        columns={['id', 'name', 'state', 'product', 'createdAt']}
        narrow={['name', 'state']}
        to={({ id }) => `/merchants/${id}`}
        cell={(name, item) =>
          name === 'state' ? <State name={item['suspendedAt'] ? 'suspended' : 'active'} /> : undefined
        }
        empty={<Empty text={texts.empty.merchants} action={create} />}
      />
    </>
  );
}
