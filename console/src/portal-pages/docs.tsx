import { Anchor, Group, Select, Stack } from '@mantine/core';
import { useState } from 'react';
import type { PortalAnswer } from '../answers.ts';
import { useTexts } from '../i18n/index.tsx';
import { useItems } from '../ui/items.ts';
import { Head, Panel } from '../ui/parts.tsx';
import { useWords } from '../ui/words.ts';

/**
 * First calls to the API, with the merchant's own key. curl asks for the secret, so the page never has it.
 */
export function Screen() {
  const texts = useTexts();
  const { noun } = useWords();
  const [chosen, setChosen] = useState<string | null>(null);
  const all = useItems<PortalAnswer<'api-key.list'>['items'][number]>('/api-keys') ?? [];
  const keys = all.filter(({ revokedAt }) => revokedAt === null).map(({ keyId }) => keyId);
  const keyId = chosen ?? keys[0] ?? 'KEY-ID';
  const calls = [
    {
      title: texts.docs.order,
      path: '/api/v2/vouchers',
      body: { reference: 'order-1', quantity: 2, value: 25 },
    },
    { title: texts.docs.balance, path: '/api/v2/balance', body: { voucherCode: 'CODE', pin: 'PIN' } },
    {
      title: texts.docs.redeem,
      path: '/api/v2/redeem',
      body: { voucherCode: 'CODE', pin: 'PIN', amount: 12.5, reference: 'sale-1' },
    },
    { title: texts.docs.lookup, path: '/api/v2/transactions/sale-1', body: undefined },
  ];
  return (
    <>
      <Head title={texts.nav.docs} note={texts.docs.lead} />
      <Stack gap="lg">
        <Group align="flex-end">
          <Select
            label={noun('api-key')}
            data={keys}
            value={keyId}
            onChange={setChosen}
            w={260}
            allowDeselect={false}
          />
          <Anchor href="/docs/" size="sm" lh="36px">
            {texts.docs.reference}
          </Anchor>
        </Group>
        {calls.map(({ title, path, body }) => (
          <Panel key={path} title={title} padded>
            <pre className="code">{curl(keyId, path, body)}</pre>
          </Panel>
        ))}
      </Stack>
    </>
  );
}

function curl(keyId: string, path: string, body: object | undefined): string {
  const lines = [`curl -u ${keyId} ${location.origin}${path}`];
  if (body) lines.push(`  -H 'Content-Type: application/json'`, `  -d '${JSON.stringify(body)}'`);
  return lines.join(' \\\n');
}
