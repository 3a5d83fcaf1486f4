import { SimpleGrid, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { get, type Page } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { useApp } from '../ui/app.tsx';
import { useFormat } from '../ui/format.ts';
import { type Item, List } from '../ui/list.tsx';
import { Head, Panel } from '../ui/parts.tsx';

/** The float, and what happened last. */
export function Screen() {
  const texts = useTexts();
  const format = useFormat();
  const { offers } = useApp();
  const { data } = useQuery({
    queryKey: ['floats'],
    queryFn: () => get<Page<Item>>('/floats'),
    enabled: offers('float.show'),
    retry: false,
  });
  return (
    <>
      <Head title={texts.nav.overview} />
      <Stack>
        <SimpleGrid cols={{ base: 1, xs: 2, md: 4 }}>
          {data?.items.map((float) => (
            <Panel key={String(float['currency'])}>
              <div style={{ padding: 16 }}>
                <Text size="sm" className="quiet">
                  {texts.nav.floats} {String(float['currency'])}
                </Text>
                <div className="stat">
                  {format.money(Number(float['balance']), String(float['currency']))}
                </div>
              </div>
            </Panel>
          ))}
        </SimpleGrid>
        {offers('transaction.list') && (
          <List
            path="/transactions"
            limit={10}
            refetchMs={10_000}
            columns={['timestamp', 'kind', 'voucherCode', 'amount', 'currency', 'reference']}
            to={({ transactionId }) => `/transactions/${transactionId}`}
          />
        )}
      </Stack>
    </>
  );
}
