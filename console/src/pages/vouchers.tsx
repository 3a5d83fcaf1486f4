import { Button } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useApp } from '../ui/app.tsx';
import { ListPage } from '../ui/page.tsx';
import { useWords } from '../ui/words.ts';

export function Screen() {
  const { offers } = useApp();
  const { action } = useWords();
  return (
    <ListPage
      name="vouchers"
      of="voucher.list"
      columns={['serialNumber', 'voucherCode', 'state', 'product', 'merchantId', 'expiresAt', 'balance']}
      narrow={['voucherCode', 'state', 'balance']}
    >
      {offers('voucher.bulk') && (
        <Button variant="default" component={Link} to="/vouchers/bulk">
          {action('voucher.bulk').label}
        </Button>
      )}
    </ListPage>
  );
}
