import { Select, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Navigate, useLocation, useSearch } from '@tanstack/react-router';
import { useState } from 'react';
import { get, type Page, send } from '../api.ts';
import { useTexts } from '../i18n/index.tsx';
import { guess } from '../search.ts';
import { type Filters, type Item, Rows } from '../ui/list.tsx';
import { Busy, Empty, Head, Panel, Problem } from '../ui/parts.tsx';

/** What a search found. A full code is in no address: it comes with the navigation, and is sent in a body. */
export function Screen() {
  const texts = useTexts();
  const { text = '' } = useSearch({ strict: false }) as Filters;
  const { code } = useLocation().state as { code?: string };
  const [merchantId, setMerchantId] = useState<string | null>(null);
  const found = guess(text);
  const isReference = found?.kind === 'reference';
  const { data: merchants } = useQuery({
    queryKey: ['merchants', 'all'],
    queryFn: () => get<Page<Item>>('/merchants', { limit: 200 }),
    enabled: isReference,
  });
  const { data, error, isFetching } = useQuery({
    queryKey: ['search', text, code === undefined ? '' : 'code', merchantId],
    gcTime: 0,
    enabled: code !== undefined || (found !== undefined && (!isReference || merchantId !== null)),
    queryFn: () => look(found?.kind, found?.text ?? '', code, merchantId),
  });
  if (found?.kind === 'serial') return <Navigate to={`/vouchers/${found.text}`} replace />;
  return (
    <>
      <Head title={texts.search.label} note={code ? texts.search.isCode : text} />
      <Stack>
        {isReference && (
          <Panel>
            <Stack p="md" gap="xs">
              <Text size="sm">{texts.search.merchantNeeded}</Text>
              <Select
                w={320}
                searchable
                value={merchantId}
                onChange={setMerchantId}
                aria-label={texts.nav.merchants}
                data={(merchants?.items ?? []).map(({ id, name }) => ({
                  value: String(id),
                  label: `${name} (${id})`,
                }))}
              />
            </Stack>
          </Panel>
        )}
        {isFetching && <Busy />}
        {error && <Problem error={error} />}
        {data && data.length === 0 && (
          <Panel>
            <Empty text={texts.search.nothing} />
          </Panel>
        )}
        {data && data.length > 0 && (
          <Panel>
            <Rows
              items={data}
              columns={[
                'serialNumber',
                'voucherCode',
                'state',
                'product',
                'balance',
                'currency',
                'expiresAt',
              ]}
              to={({ serialNumber }) => `/vouchers/${serialNumber}`}
            />
          </Panel>
        )}
      </Stack>
    </>
  );
}

async function look(
  kind: string | undefined,
  text: string,
  code: string | undefined,
  merchantId: string | null,
): Promise<readonly Item[]> {
  const body =
    code !== undefined
      ? { code }
      : kind === 'masked'
        ? { masked: text }
        : kind === 'transaction'
          ? { transactionId: text }
          : { reference: text, merchantId };
  return (await send<Page<Item>>('POST', '/vouchers/find', { body })).items;
}
