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
      acts={[{ name: 'product.create', onDone: ({ code }) => void navigate({ to: `/products/${code}` }) }]}
    />
  );
  return (
    <>
      <Head title={texts.nav.products}>
        {create}
        <Same name="product.list" given={search} />
      </Head>
      <List
        path="/products"
        search={search}
        columns={['name', 'code', 'state', 'scope', 'validityDays', 'minValue', 'maxValue']}
        wide={['scope', 'validityDays', 'minValue', 'maxValue']}
        to={({ code }) => `/products/${code}`}
        cell={(name, item) =>
          name === 'state' ? <State name={item['onSale'] ? 'on sale' : 'off sale'} /> : undefined
        }
        empty={<Empty text={texts.empty.products} action={create} />}
      />
    </>
  );
}
