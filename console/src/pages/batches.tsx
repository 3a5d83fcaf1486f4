import { Progress } from '@mantine/core';
import { useTexts } from '../i18n/index.tsx';
import { ListPage } from '../ui/list-page.tsx';
import { useWords } from '../ui/words.ts';

export function Screen() {
  const texts = useTexts();
  const { label } = useWords();
  return (
    <ListPage
      title={texts.nav.batches}
      create="batch.generate"
      of="batch.list"
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
      empty={texts.empty.batches}
    />
  );
}
