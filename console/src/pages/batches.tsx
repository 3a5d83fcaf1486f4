import { Progress } from '@mantine/core';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useTexts } from '../i18n/index.tsx';
import { Actions } from '../ui/actions.tsx';
import { type Filters, List } from '../ui/list.tsx';
import { Empty, Head } from '../ui/parts.tsx';
import { Same } from '../ui/same.tsx';
import { useWords } from '../ui/words.ts';

export function Screen() {
  const texts = useTexts();
  const { label } = useWords();
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Filters;
  const order = (
    <Actions
      primary
      acts={[
        {
          name: 'batch.generate',
          onDone: ({ transactionId }) => void navigate({ to: `/batches/${transactionId}` }),
        },
      ]}
    />
  );
  return (
    <>
      <Head title={texts.nav.batches}>
        {order}
        <Same name="batch.list" given={search} />
      </Head>
      <List
        of="batch.list"
        search={search}
        refetchMs={5_000}
        columns={['acceptedAt', 'reference', 'merchantId', 'status', 'value', 'quantity', 'produced']}
        narrow={['reference', 'status', 'quantity']}
        to={({ transactionId }) => `/batches/${transactionId}`}
        cell={(name, item) =>
          name === 'produced' && item['status'] === 'PROCESSING' ? (
            <Progress
              value={(100 * Number(item['produced'])) / Number(item['quantity'])}
              aria-label={label('produced')}
              w={90}
              ml="auto"
            />
          ) : undefined
        }
        empty={<Empty text={texts.empty.batches} action={order} />}
      />
    </>
  );
}
