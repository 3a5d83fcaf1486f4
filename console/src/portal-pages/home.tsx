import { Stack } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Screen as Check } from './check.tsx';
import { Floats, ToBeSettled } from './numbers.tsx';

/** The float, the amount to be settled, and the latest transactions. */
export function Screen() {
  const texts = useTexts();
  const { operations, offers } = useApp();
  // Some roles only check vouchers.
  if (operations && !offers('transaction.list')) return <Check />;
  return (
    <>
      <Head title={texts.nav.overview} />
      <Stack gap="lg">
        <div className="stats">
          {offers('float.show') && <Floats />}
          {offers('settlement.list') && <ToBeSettled />}
        </div>
        {offers('transaction.list') && (
          <List
            title={texts.overview.latest}
            of="transaction.list"
            limit={10}
            refetchMs={10_000}
            columns={['timestamp', 'kind', 'voucherCode', 'reference', 'amount']}
            narrow={['timestamp', 'kind', 'amount']}
            empty={<Empty text={texts.empty.transactions} />}
            brief
          />
        )}
      </Stack>
    </>
  );
}
