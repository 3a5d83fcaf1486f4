import { Progress } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Action } from '../ui/action.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';

export function Screen() {
  const texts = useTexts();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Filters;
  const order = (
    <Action
      name="batch.generate"
      label="Generate"
      primary
      onDone={({ transactionId }) => navigate({ to: `/batches/${transactionId}` })}
    />
  );
  return (
    <>
      <Head title={texts.nav.batches}>
        {order}
        <Same name="batch.list" given={search} />
      </Head>
      <List
        path="/batches"
        search={search}
        refetchMs={5_000}
        filters={[
          { name: 'merchantId' },
          { name: 'status', options: ['PROCESSING', 'COMPLETED', 'CANCELED'] },
        ]}
        columns={['reference', 'merchantId', 'status', 'quantity', 'produced']}
        to={({ transactionId }) => `/batches/${transactionId}`}
        cell={(name, item) =>
          name === 'produced' && item['status'] === 'PROCESSING' ? (
            <Progress
              value={(100 * Number(item['produced'])) / Number(item['quantity'])}
              aria-label="produced"
              w={90}
              ml="auto"
            />
          ) : undefined
        }
        empty={<Empty text={texts.list.empty} action={order} />}
      />
    </>
  );
}
