import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { useWords } from '../ui/words.ts';

export function Screen() {
  const texts = useTexts();
  const { offers } = useApp();
  const { action } = useWords();
  return (
    <ListPage
      title={texts.nav.vouchers}
      of="voucher.list"
      columns={['serialNumber', 'voucherCode', 'state', 'product', 'merchantId', 'expiresAt', 'balance']}
      narrow={['voucherCode', 'state', 'balance']}
      to={({ serialNumber }) => `/vouchers/${serialNumber}`}
      empty={texts.empty.vouchers}
    >
      {offers('voucher.bulk') && (
        <Button variant="default" component={Link} to="/vouchers/bulk">
          {action('voucher.bulk').label}
        </Button>
      )}
    </ListPage>
  );
}
