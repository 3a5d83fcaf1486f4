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
      <Head title={nav.products}>
        <Action name="product.create" label="Create a product" primary />
        <Same name="product.list" given={search} />
      </Head>
      <List
        path="/products"
        search={search}
        columns={[
          'code',
          'name',
          'currency',
          'activation',
          'scope',
          'minValue',
          'maxValue',
          'maxQuantity',
          'onSale',
        ]}
        to={({ code }) => `/products/${code}`}
      />
    </>
  );
}
