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
      <Head title={nav.settlements}>
        <Action name="settlement.draft" label="Draft" primary />
        <Action name="settlement.set-terms" label="Terms" />
        <Same name="settlement.list" given={search} />
      </Head>
      <List
        path="/settlements"
        search={search}
        filters={[
          { name: 'merchantId' },
          { name: 'state', options: ['DRAFT', 'APPROVED', 'PAID', 'RETURNED'] },
        ]}
        columns={['number', 'merchantId', 'state', 'from', 'to', 'net', 'payable', 'currency']}
        to={({ id }) => `/settlements/${id}`}
      />
    </>
  );
}
