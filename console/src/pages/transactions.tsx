import { useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const { nav } = useTexts();
  const { operations } = useApp();
  const search = useSearch({ strict: false }) as Filters;
  const offered = operations?.get('transaction.list')?.fields ?? [];
  const filters = offered
    .filter(({ name }) => !['cursor', 'limit'].includes(name))
    .map(({ name, options }) => ({ name, ...(options.length > 0 ? { options } : {}) }));
  return (
    <>
      <Head title={nav.transactions}>
        <Same name="transaction.list" given={search} />
      </Head>
      <List
        path="/transactions"
        search={search}
        filters={filters}
        columns={[
          'timestamp',
          'kind',
          'merchantId',
          'serialNumber',
          'voucherCode',
          'amount',
          'currency',
          'reference',
        ]}
        to={({ transactionId, id }) => `/transactions/${transactionId ?? id}`}
      />
    </>
  );
}
