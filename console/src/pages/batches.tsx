import { Progress } from '@mantine/core';
import { ListPage } from '../ui/page.tsx';
import { useWords } from '../ui/words.ts';

export function Screen() {
  const { label } = useWords();
  return (
    <ListPage
      name="batches"
      create="batch.generate"
      of="batch.list"
      refetchMs={5_000}
      columns={['acceptedAt', 'reference', 'merchantId', 'status', 'value', 'quantity', 'produced']}
      narrow={['reference', 'status', 'quantity']}
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
    />
  );
}
