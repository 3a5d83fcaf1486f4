import { Button } from '@mantine/core';
import { Link, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useWords } from '../ui/words.ts';

export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  const { action } = useWords();
  const search = useSearch({ strict: false }) as Filters;
  return (
    <>
      <Head title={texts.nav.vouchers}>
        {offers('voucher.bulk') && (
          <Button variant="default" component={Link} to="/vouchers/bulk">
            {action('voucher.bulk').label}
          </Button>
        )}
        <Same name="voucher.list" given={search} />
      </Head>
      <List
        of="voucher.list"
        search={search}
        columns={['serialNumber', 'voucherCode', 'state', 'product', 'merchantId', 'expiresAt', 'balance']}
        narrow={['voucherCode', 'state', 'balance']}
        to={({ serialNumber }) => `/vouchers/${serialNumber}`}
        empty={<Empty text={texts.empty.vouchers} />}
      />
    </>
  );
}
