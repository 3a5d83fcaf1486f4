import { useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

const STATES = ['INACTIVE', 'ACTIVE', 'REDEEMED', 'BLOCKED', 'EXPIRED', 'CANCELED', 'REPLACED'];

export function Screen() {
  const { nav } = useTexts();
  const search = useSearch({ strict: false }) as Filters;
  return (
    <>
      <Head title={nav.vouchers}>
        <Same name="voucher.list" given={search} />
      </Head>
      <List
        path="/vouchers"
        search={search}
        filters={[{ name: 'batch' }, { name: 'state', options: STATES }]}
        columns={[
          'serialNumber',
          'voucherCode',
          'state',
          'product',
          'merchantId',
          'balance',
          'currency',
          'expiresAt',
        ]}
        to={({ serialNumber }) => `/vouchers/${serialNumber}`}
      />
    </>
  );
}
